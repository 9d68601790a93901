/**
 * Which pods to ask when there are many.
 *
 * Source of the rule: knative.dev/serving v0.51.0 pkg/autoscaler/metrics: the sample size for a mean of a finite
 * population (95 % confidence, variance 100, margin of error 5), older pods first because young ones skew low.
 */

/** (1.96^2 x 100) / 5^2: the sample for a population without end. */
const UNBOUNDED_SAMPLE = (1.96 * 1.96 * 100) / 25;

/** Pods to ask out of `readyPods`: all up to 3, then 4 of 4, 7 of 10, 14 of 100, 16 of 1000. */
export function sampleSize(readyPods: number): number {
  if (readyPods <= 3) return Math.max(readyPods, 0);
  return Math.ceil((readyPods * UNBOUNDED_SAMPLE) / (readyPods + UNBOUNDED_SAMPLE - 1));
}

export interface ScrapeCandidate {
  readonly name: string;
  readonly startedMs: number;
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const result = [...items];
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [result[i], result[j]] = [result[j]!, result[i]!];
  }
  return result;
}

/**
 * Names in the order to ask them: take `sampleSize(candidates.length)`, and the next ones for those that do not answer.
 * Pods that have seen a whole window come first, drawn at random; `random` gives numbers in [0, 1).
 */
export function scrapeOrder(
  candidates: readonly ScrapeCandidate[],
  stableWindowMs: number,
  nowMs: number,
  random: () => number,
): string[] {
  const old = candidates.filter(pod => nowMs - pod.startedMs >= stableWindowMs);
  const young = candidates.filter(pod => nowMs - pod.startedMs < stableWindowMs);
  const enough = old.length >= sampleSize(candidates.length);
  return [...(enough ? shuffled(old, random) : old), ...(enough ? young : shuffled(young, random))].map(
    pod => pod.name,
  );
}
