/**
 * How many seats a priority level asks for: integrated over time between two adjustments, then smoothed over several.
 * The sums are taken in the steps of k8s.io/apiserver (fairqueuing/integrator.go, seatDemandStats of the controller).
 */
import { nanoseconds } from "./seat-seconds.ts";

/** What was seen in one period. `average` and `deviation` are NaN when no time passed. */
export interface DemandObservation {
  readonly durationS: number;
  /** Over time. */
  readonly average: number;
  /** Standard deviation over time. */
  readonly deviation: number;
  readonly min: number;
  readonly max: number;
}

/** Integrates the 0th, 1st and 2nd power of a level's seat demand over time. */
export class DemandIntegrator {
  #lastMs: number;
  #x = 0;
  #min = 0;
  #max = 0;
  #durationS = 0;
  #integral = 0;
  #integralOfSquare = 0;

  constructor(nowMs: number) {
    this.#lastMs = nowMs;
  }

  set(x: number, nowMs: number): void {
    this.#advance(nowMs);
    this.#x = x;
    if (x < this.#min) this.#min = x;
    if (x > this.#max) this.#max = x;
  }

  /** What was seen since the last reset; the next period starts now. */
  reset(nowMs: number): DemandObservation {
    this.#advance(nowMs);
    const durationS = this.#durationS;
    const average = durationS > 0 ? this.#integral / durationS : Number.NaN;
    const variance = this.#integralOfSquare / durationS - average * average;
    const observation = {
      durationS,
      average,
      deviation: variance >= 0 ? Math.sqrt(variance) : Number.NaN,
      min: this.#min,
      max: this.#max,
    };
    this.#durationS = 0;
    this.#integral = 0;
    this.#integralOfSquare = 0;
    this.#min = this.#x;
    this.#max = this.#x;
    return observation;
  }

  #advance(nowMs: number): void {
    const ns = nanoseconds(nowMs - this.#lastMs);
    this.#lastMs = nowMs;
    const seconds = Math.trunc(ns / 1e9) + (ns % 1e9) / 1e9;
    this.#durationS += seconds;
    this.#integral += this.#x * seconds;
    this.#integralOfSquare += this.#x * this.#x * seconds;
  }
}

export interface DemandStats {
  readonly average: number;
  readonly deviation: number;
  /** Most seats asked for at once in the last period. */
  readonly highWatermark: number;
  /** Rises at once to average + deviation, falls slowly. */
  readonly smoothed: number;
}

export const NO_DEMAND: DemandStats = { average: 0, deviation: 0, highWatermark: 0, smoothed: 0 };

/** Share of the old value that is kept each 10 s: half of it is left after 5 minutes. */
export const SMOOTHING_COEFFICIENT = 0.977;
/** 1 - 0.977, exactly so: the original's compiler takes it without rounding. */
const SMOOTHING_COMPLEMENT = 0.023;

/**
 * Takes in a period. With envelope = average + deviation, smoothed becomes max(envelope, A smoothed + (1-A) envelope):
 * after 100 seats, one idle period leaves 97.7.
 */
export function observeDemand(stats: DemandStats, seen: DemandObservation): DemandStats {
  const highWatermark = Math.round(seen.max);
  if (seen.durationS <= 0) return { ...stats, highWatermark };
  const deviation = Number.isNaN(seen.deviation) ? 0 : seen.deviation;
  const envelope = seen.average + deviation;
  const decayed = SMOOTHING_COEFFICIENT * stats.smoothed + SMOOTHING_COMPLEMENT * envelope;
  return { average: seen.average, deviation, highWatermark, smoothed: Math.max(envelope, decayed) };
}
