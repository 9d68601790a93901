import type { Clock, Timer } from "../clock.ts";

interface FakeTimer {
  readonly dueMs: number;
  readonly order: number;
  readonly callback: () => void;
}

/** A clock that stands still until `advance`; timers fire in order of their due time, each at its own time. */
export class FakeClock implements Clock {
  #nowMs: number;
  #order = 0;
  readonly #timers = new Set<FakeTimer>();
  readonly #epochMs: number;

  constructor(nowMs = 0, epochMs = 1_700_000_000_000) {
    this.#nowMs = nowMs;
    this.#epochMs = epochMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#epochMs + this.#nowMs;
  }

  after(delayMs: number, callback: () => void): Timer {
    const timer: FakeTimer = { dueMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, callback };
    this.#timers.add(timer);
    return timer;
  }

  cancel(timer: Timer): void {
    this.#timers.delete(timer as FakeTimer);
  }

  /** How many timers wait. */
  get pending(): number {
    return this.#timers.size;
  }

  advance(byMs: number): void {
    const untilMs = this.#nowMs + byMs;
    for (let next = this.#next(untilMs); next !== undefined; next = this.#next(untilMs)) {
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.callback();
    }
    this.#nowMs = untilMs;
  }

  #next(untilMs: number): FakeTimer | undefined {
    let first: FakeTimer | undefined;
    for (const timer of this.#timers) {
      if (timer.dueMs > untilMs) continue;
      if (
        first === undefined ||
        timer.dueMs < first.dueMs ||
        (timer.dueMs === first.dueMs && timer.order < first.order)
      )
        first = timer;
    }
    return first;
  }
}
