/** A set of durations in numbers; all 0 without any. */
export interface Percentiles {
  readonly count: number;
  readonly mean: number;
  readonly p50: number;
  readonly p90: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/** The value that `fraction` of the sorted ones do not exceed (nearest rank). Of 1..100, 0.95 -> 95. */
export function percentileOf(sorted: ArrayLike<number>, fraction: number): number {
  const rank = Math.max(1, Math.ceil(Number((fraction * sorted.length).toFixed(9))));
  return sorted[Math.min(rank, sorted.length) - 1] ?? 0;
}

export function percentiles(values: readonly number[]): Percentiles {
  const sorted = Float64Array.from(values).sort();
  const sum = sorted.reduce((total, value) => total + value, 0);
  const at = (fraction: number): number => percentileOf(sorted, fraction);
  return {
    count: sorted.length,
    mean: sorted.length === 0 ? 0 : sum / sorted.length,
    p50: at(0.5),
    p90: at(0.9),
    p95: at(0.95),
    p99: at(0.99),
    max: sorted[sorted.length - 1] ?? 0,
  };
}
