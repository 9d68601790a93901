/** What happened since the meter was last taken. */
export interface MeterReading {
  /** Request-seconds per second: concurrency weighted by time, exact whatever the pattern. */
  readonly averageConcurrentRequests: number;
  /** Requests that began. */
  readonly requestCount: number;
}

/**
 * Concurrency over time: the area under the number of requests, divided by the length of the period. Nothing is
 * sampled, so a burst between two readings counts fully. Worked: one request from 0 to 250 ms, two from 250 to 500 ms,
 * none until 1000 ms: (250 + 500) / 1000 = 0.75.
 *
 * Calls must bring times that do not go back (a smaller one counts as the last one).
 */
export class ConcurrencyMeter {
  #current = 0;
  #area = 0;
  #requests = 0;
  #lastMs: number;
  #sinceMs: number;

  constructor(nowMs: number) {
    this.#lastMs = nowMs;
    this.#sinceMs = nowMs;
  }

  /** Requests inside now. */
  get current(): number {
    return this.#current;
  }

  /** Requests that began since the last `take`. */
  get requestsSoFar(): number {
    return this.#requests;
  }

  enter(nowMs: number): void {
    this.#settle(nowMs);
    this.#current++;
    this.#requests++;
  }

  /** Once for each `enter`. */
  leave(nowMs: number): void {
    this.#settle(nowMs);
    if (this.#current === 0) throw new RangeError("concurrency meter: leave without enter");
    this.#current--;
  }

  /** Reads and begins the next period. A period of no length reads the present concurrency. */
  take(nowMs: number): MeterReading {
    this.#settle(nowMs);
    const periodMs = this.#lastMs - this.#sinceMs;
    const reading: MeterReading = {
      averageConcurrentRequests: periodMs > 0 ? this.#area / periodMs : this.#current,
      requestCount: this.#requests,
    };
    this.#area = 0;
    this.#requests = 0;
    this.#sinceMs = this.#lastMs;
    return reading;
  }

  #settle(nowMs: number): void {
    if (nowMs <= this.#lastMs) return;
    this.#area += this.#current * (nowMs - this.#lastMs);
    this.#lastMs = nowMs;
  }
}
