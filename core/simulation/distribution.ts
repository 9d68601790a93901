import type { Random } from "./random.ts";

/** How long something takes. All values in milliseconds, none negative. */
export type Distribution =
  | { readonly kind: "constant"; readonly ms: number }
  | { readonly kind: "uniform"; readonly minMs: number; readonly maxMs: number }
  | { readonly kind: "exponential"; readonly meanMs: number }
  /** Long-tailed, as service and start times mostly are: half are under `medianMs`, 95 % under `p95Ms`. */
  | { readonly kind: "lognormal"; readonly medianMs: number; readonly p95Ms: number }
  /** One of measured values, each as likely. */
  | { readonly kind: "empirical"; readonly valuesMs: readonly number[] };

/** The 95th percentile of the standard normal distribution. */
const NORMAL_P95 = 1.6448536269514722;

/** Box and Muller. */
function standardNormal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Draws one value. */
export function sample(distribution: Distribution, random: Random): number {
  switch (distribution.kind) {
    case "constant":
      return distribution.ms;
    case "uniform":
      return distribution.minMs + (distribution.maxMs - distribution.minMs) * random();
    case "exponential":
      return -distribution.meanMs * Math.log(1 - random());
    case "lognormal": {
      const sigma = Math.log(distribution.p95Ms / distribution.medianMs) / NORMAL_P95;
      return distribution.medianMs * Math.exp(sigma * standardNormal(random));
    }
    case "empirical":
      return distribution.valuesMs[Math.floor(random() * distribution.valuesMs.length)] ?? 0;
  }
}
