/** The area under a number that changes in steps: request-seconds, pod-seconds. In units of the number x milliseconds. */
export class TimeIntegral {
  #value = 0;
  #area = 0;
  #total = 0;
  #lastMs: number;
  #sinceMs: number;

  constructor(nowMs: number) {
    this.#lastMs = nowMs;
    this.#sinceMs = nowMs;
  }

  get value(): number {
    return this.#value;
  }

  set(value: number, nowMs: number): void {
    const area = this.#value * (nowMs - this.#lastMs);
    this.#area += area;
    this.#total += area;
    this.#lastMs = nowMs;
    this.#value = value;
  }

  add(change: number, nowMs: number): void {
    this.set(this.#value + change, nowMs);
  }

  /** The average since the last call; the present value when no time has passed. */
  takeAverage(nowMs: number): number {
    this.set(this.#value, nowMs);
    const lengthMs = nowMs - this.#sinceMs;
    const average = lengthMs > 0 ? this.#area / lengthMs : this.#value;
    this.#area = 0;
    this.#sinceMs = nowMs;
    return average;
  }

  /** As `takeAverage`, but the period goes on. */
  averageSoFar(nowMs: number): number {
    this.set(this.#value, nowMs);
    const lengthMs = nowMs - this.#sinceMs;
    return lengthMs > 0 ? this.#area / lengthMs : this.#value;
  }

  /** The area since the beginning. */
  total(nowMs: number): number {
    this.set(this.#value, nowMs);
    return this.#total;
  }
}
