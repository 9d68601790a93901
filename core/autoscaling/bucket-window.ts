/**
 * Averages over a sliding window of one-second buckets.
 *
 * Source of the rule: knative.dev/serving v0.51.0 pkg/autoscaler/aggregation; equal to it value for value, so the order
 * of floating-point operations is part of the contract (hack/oracles/kpa holds it).
 *
 * A window is a mutable container owned by one collector, like a Map: no clock of its own, every call is told the time.
 */

/** Bucket width. Everything outside talks milliseconds, a bucket is one whole second. */
export const BUCKET_MS = 1000;

/** How the buckets of a window become one number. */
export type Aggregation = "linear" | "weighted-exponential";

export interface MetricWindow {
  /** Adds `value` to the bucket of `nowMs`; values a whole window older than the newest are dropped. */
  record(nowMs: number, value: number): void;
  /** Average as of `nowMs`; 0 when nothing was recorded for a window (ask `isEmpty` to tell the two apart). */
  average(nowMs: number): number;
  /** True when nothing was recorded for longer than the window. */
  isEmpty(nowMs: number): boolean;
  /** Changes the window's length and keeps what still fits. O(buckets); no-op for the same length. */
  resize(windowMs: number, nowMs: number): void;
}

const NEVER = Number.NEGATIVE_INFINITY;

function secondOf(ms: number): number {
  return Math.floor(ms / BUCKET_MS);
}

/** Six digits, halves away from zero. */
function roundToMicros(value: number): number {
  const scaled = value * 1e6;
  return (scaled < 0 ? -Math.round(-scaled) : Math.round(scaled)) / 1e6;
}

/**
 * Plain average. A young window (first write less than a window ago) is averaged over its own age, and seconds after the
 * last write do not count as zeros until a newer write makes them a gap.
 *
 * Worked numbers, window 60 s: 10 each second for the first 6 s -> 60 / 6 = 10. Then 4 s without a write -> still
 * 60 / 6 = 10. A write of 0 at second 9 -> 60 / 10 = 6.
 */
export class LinearWindow implements MetricWindow {
  protected buckets: Float64Array;
  protected windowSeconds: number;
  protected lastWrite = NEVER;
  private firstWrite = NEVER;
  private total = 0;

  constructor(windowMs: number) {
    this.windowSeconds = windowMs / BUCKET_MS;
    this.buckets = new Float64Array(Math.ceil(this.windowSeconds));
  }

  record(nowMs: number, value: number): void {
    const buckets = this.buckets;
    const size = buckets.length;
    const second = secondOf(nowMs);
    if (second !== this.lastWrite) {
      if (second + this.windowSeconds <= this.lastWrite) return;
      if (this.firstWrite === NEVER || this.firstWrite > second) this.firstWrite = second;
      if (second > this.lastWrite) {
        if (second - this.lastWrite >= this.windowSeconds) {
          this.firstWrite = second;
          buckets.fill(0);
          this.total = 0;
        } else {
          for (let i = this.lastWrite + 1; i <= second; i++) {
            const slot = i % size;
            this.total -= buckets[slot]!;
            buckets[slot] = 0;
          }
        }
        this.lastWrite = second;
      }
    }
    const slot = second % size;
    buckets[slot] = buckets[slot]! + value;
    this.total += value;
  }

  average(nowMs: number): number {
    const now = secondOf(nowMs);
    const age = now - this.lastWrite;
    if (age >= this.windowSeconds) return 0;
    const written = this.lastWrite - this.firstWrite + 1;
    const size = this.buckets.length;
    if (age <= 0) return roundToMicros(this.total / Math.min(written, size));
    let sum = this.total;
    for (let i = this.lastWrite + 1; i <= now; i++) sum -= this.buckets[i % size]!;
    return roundToMicros(sum / Math.min(written, size - age));
  }

  isEmpty(nowMs: number): boolean {
    return secondOf(nowMs) - this.lastWrite > this.windowSeconds;
  }

  resize(windowMs: number, nowMs: number): void {
    const windowSeconds = windowMs / BUCKET_MS;
    if (windowSeconds === this.windowSeconds) return;
    const old = this.buckets;
    const fresh = new Float64Array(Math.ceil(windowSeconds));
    let total = 0;
    if (secondOf(nowMs) - this.lastWrite <= this.windowSeconds) {
      let second = this.lastWrite;
      for (let n = Math.min(fresh.length, old.length); n > 0; n--, second--) {
        const value = old[second % old.length]!;
        fresh[second % fresh.length] = value;
        total += value;
      }
      this.firstWrite = this.lastWrite - (old.length - 1);
    } else {
      this.firstWrite = NEVER;
    }
    this.windowSeconds = windowSeconds;
    this.buckets = fresh;
    this.total = total;
  }
}

/** From this many buckets on (42) the coefficient is the smallest allowed. */
const MIN_COEFFICIENT = 0.2;

/**
 * 1 - 0.0001^(1 / n) for n = 1..41 buckets, so that the weights of a full window sum up to 0.9999. Written out, to the last
 * digit of the original (Go 1.26, amd64): engines differ in the last bits of a power, and a ceil() may hang on them.
 */
const COEFFICIENTS: readonly number[] = [
  0.9999, 0.99, 0.9535841116638721, 0.9, 0.8415106807538886, 0.7845565309968116, 0.7317304204720274, 0.683772233983162,
  0.6406186336195372, 0.6018928294465027, 0.5671238718916941, 0.535841116638722, 0.507611736829326, 0.4820525320768788,
  0.45883047345353634, 0.4376586748096509, 0.41829086706256413, 0.40051574968105896, 0.3841517889339736,
  0.36904265551980675, 0.3550533228962376, 0.342066775342432, 0.3299812496490411, 0.31870793094203875,
  0.3081690290810636, 0.29829617132961717, 0.28902905676875645, 0.28031432699884795, 0.27210461560168486,
  0.2643577455403586, 0.25703604924050527, 0.2501057906675441, 0.24353667244537114, 0.23730141409765548,
  0.231375389960226, 0.2257363173188729, 0.22036398695947668, 0.21524002964853872, 0.21034771315002732,
  0.2056717652757185, 0.20119821919842973,
];

function smoothingCoefficient(buckets: number): number {
  return COEFFICIENTS[buckets - 1] ?? MIN_COEFFICIENT;
}

/** base^exponent by repeated squaring, for 0 < base < 1 and whole exponents; the order of multiplications is fixed. */
function wholePower(base: number, exponent: number): number {
  let result = 1;
  let square = base;
  for (let rest = exponent; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) result *= square;
    square *= square;
  }
  return result;
}

/**
 * Exponentially weighted average: the newest bucket weighs c, each older one (1 - c) times as much, with
 * c = max(0.2, 1 - 0.0001^(1 / buckets)). Seconds without a write count as zeros at once.
 *
 * Worked numbers, window 6 s: c = 1 - 0.0001^(1/6) = 0.7846; 10 each second -> 10 x 0.9999 = 9.999.
 */
export class WeightedWindow extends LinearWindow {
  private coefficient: number;

  constructor(windowMs: number) {
    super(windowMs);
    this.coefficient = smoothingCoefficient(this.buckets.length);
  }

  override average(nowMs: number): number {
    if (this.isEmpty(nowMs)) return 0;
    const size = this.buckets.length;
    const decay = 1 - this.coefficient;
    let weight = this.coefficient;
    let count = size;
    const age = secondOf(nowMs) - this.lastWrite;
    if (age > 0) {
      weight *= wholePower(decay, age);
      count -= age;
    }
    let sum = 0;
    for (let i = 0; i < count; i++) {
      sum += this.buckets[(this.lastWrite + size - i) % size]! * weight;
      weight *= decay;
    }
    return sum;
  }

  override resize(windowMs: number, nowMs: number): void {
    super.resize(windowMs, nowMs);
    this.coefficient = smoothingCoefficient(this.buckets.length);
  }
}

/** A window of `windowMs` (whole seconds). Called once per revision, metric and window length. */
export function createWindow(aggregation: Aggregation, windowMs: number): MetricWindow {
  return aggregation === "weighted-exponential" ? new WeightedWindow(windowMs) : new LinearWindow(windowMs);
}
