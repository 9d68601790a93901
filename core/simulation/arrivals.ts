/**
 * When requests come. A pattern is a rate over time; its integral L(t) counts the requests expected by t. The k-th one of an
 * even pattern comes at L^-1(k + 1/2), of a random one (a Poisson process with that rate) at L^-1 of a sum of k + 1 draws from
 * Exp(1): both by inversion of the same integral, so that the shape is exact and nothing depends on a step width.
 */
import type { Distribution } from "./distribution.ts";
import { sample } from "./distribution.ts";
import type { Random } from "./random.ts";

/** One request of a trace. */
export interface Arrival {
  readonly atMs: number;
  readonly serviceMs: number;
  /** Who sends it, for fairness; absent: all are one flow. */
  readonly flow?: string;
  /** Name of the priority level. */
  readonly level?: string;
}

export type Pattern =
  /** A constant rate. */
  | { readonly kind: "poisson"; readonly rps: number }
  | { readonly kind: "step"; readonly fromRps: number; readonly toRps: number; readonly atMs: number }
  | {
      readonly kind: "spike";
      readonly baseRps: number;
      readonly peakRps: number;
      readonly atMs: number;
      readonly lengthMs: number;
    }
  /** A sine from low at the start over high at half a period and back. */
  | { readonly kind: "diurnal"; readonly lowRps: number; readonly highRps: number; readonly periodMs: number }
  /** `size` requests at one instant every `everyMs`, the first at `everyMs`, over a constant rate. */
  | { readonly kind: "burst"; readonly size: number; readonly everyMs: number; readonly baseRps: number };

/** `even`: as regular as the rate allows. `poisson`: at random. */
export type Spacing = "even" | "poisson";

export class TooManyArrivalsError extends Error {
  readonly code = "TOO_MANY_ARRIVALS";
  constructor(expected: number, limit: number) {
    super(`the pattern gives about ${Math.round(expected)} requests, limit ${limit}`);
    this.name = "TooManyArrivalsError";
  }
}

/** Keeps a simulation within memory and minutes. */
export const MAX_ARRIVALS = 2_000_000;

/** Requests expected from 0 to `ms`, without the bursts. */
export function expectedArrivals(pattern: Pattern, ms: number): number {
  const during = (rps: number, lengthMs: number): number => (rps * Math.max(0, lengthMs)) / 1000;
  switch (pattern.kind) {
    case "poisson":
      return during(pattern.rps, ms);
    case "step":
      return during(pattern.fromRps, Math.min(ms, pattern.atMs)) + during(pattern.toRps, ms - pattern.atMs);
    case "spike": {
      const peakMs = Math.max(0, Math.min(ms - pattern.atMs, pattern.lengthMs));
      return during(pattern.peakRps, peakMs) + during(pattern.baseRps, ms - peakMs);
    }
    case "diurnal": {
      const { lowRps, highRps, periodMs } = pattern;
      const turn = (2 * Math.PI) / periodMs;
      return during(lowRps, ms) + ((highRps - lowRps) / 2000) * (ms - Math.sin(turn * ms) / turn);
    }
    case "burst":
      return during(pattern.baseRps, ms);
  }
}

/** Where `expectedArrivals` reaches `count`, between two times; to a microsecond. */
function timeOf(pattern: Pattern, count: number, fromMs: number, toMs: number): number {
  let low = fromMs;
  let high = toMs;
  while (high - low > 1e-3) {
    const middle = (low + high) / 2;
    if (expectedArrivals(pattern, middle) < count) low = middle;
    else high = middle;
  }
  return high;
}

function burstTimes(pattern: Pattern, durationMs: number): number[] {
  if (pattern.kind !== "burst") return [];
  const times: number[] = [];
  for (let atMs = pattern.everyMs; atMs < durationMs; atMs += pattern.everyMs) {
    for (let i = 0; i < pattern.size; i++) times.push(atMs);
  }
  return times;
}

/**
 * The requests of a pattern from 0 to `durationMs`, in order of time.
 * @throws TooManyArrivalsError
 */
export function generateArrivals(
  pattern: Pattern,
  spacing: Spacing,
  durationMs: number,
  service: Distribution,
  random: { readonly arrivals: Random; readonly service: Random },
): Arrival[] {
  const total = expectedArrivals(pattern, durationMs);
  const bursts = pattern.kind === "burst" ? Math.floor(durationMs / pattern.everyMs) * pattern.size : 0;
  if (total + bursts > MAX_ARRIVALS) throw new TooManyArrivalsError(total + bursts, MAX_ARRIVALS);

  const times: number[] = [];
  let count = spacing === "even" ? 0.5 : -Math.log(1 - random.arrivals());
  let atMs = 0;
  while (count <= total) {
    atMs = timeOf(pattern, count, atMs, durationMs);
    times.push(atMs);
    count += spacing === "even" ? 1 : -Math.log(1 - random.arrivals());
  }
  times.push(...burstTimes(pattern, durationMs));
  times.sort((a, b) => a - b);
  return times.map(time => ({ atMs: time, serviceMs: sample(service, random.service) }));
}
