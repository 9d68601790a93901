import type { Clock, Timer } from "../shared/clock.ts";

/** As many requests wait for the app as may. */
export class QueueFullError extends Error {
  readonly code = "QUEUE_FULL";
  constructor(waiting: number, limit: number) {
    super(`queue full: ${waiting} requests wait for the app, limit ${limit}`);
    this.name = "QueueFullError";
  }
}

/** No place at the app became free in time. */
export class WaitTimeoutError extends Error {
  readonly code = "WAIT_TIMEOUT";
  constructor(limitMs: number) {
    super(`no place at the app became free within ${limitMs} ms`);
    this.name = "WaitTimeoutError";
  }
}

export interface BreakerOptions {
  /** Places at the app; 0 is no limit. */
  readonly limit: number;
  /** How many requests may wait for a place. */
  readonly queueDepth: number;
  /** How long a request may wait. */
  readonly maxWaitMs: number;
}

interface Waiter {
  readonly timer: Timer;
  readonly admit: () => void;
}

/**
 * Lets at most `limit` requests at the app, first come first served. The limit is hard; what waits is bounded in count
 * and time.
 */
export class Breaker {
  readonly #options: BreakerOptions;
  readonly #clock: Clock;
  /** In order of arrival. */
  readonly #waiters = new Set<Waiter>();
  #inside = 0;

  constructor(options: BreakerOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** Requests at the app. */
  get inside(): number {
    return this.#inside;
  }

  /** Requests that wait for a place. */
  get waiting(): number {
    return this.#waiters.size;
  }

  /** Takes a place if one is free; then `release` must follow. A request that gets none goes to `wait`. */
  tryEnter(): boolean {
    const { limit } = this.#options;
    if (limit > 0 && this.#inside >= limit) return false;
    this.#inside++;
    return true;
  }

  /**
   * Resolves with a place taken; then `release` must follow. Otherwise rejects with QueueFullError, WaitTimeoutError or
   * the signal's reason, and no place is taken.
   */
  wait(signal: AbortSignal): Promise<void> {
    const { queueDepth, maxWaitMs } = this.#options;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      if (this.#waiters.size >= queueDepth) return reject(new QueueFullError(this.#waiters.size, queueDepth));
      const leave = (): void => {
        this.#waiters.delete(waiter);
        this.#clock.cancel(waiter.timer);
        signal.removeEventListener("abort", onAbort);
      };
      const onAbort = (): void => {
        leave();
        reject(signal.reason as Error);
      };
      const waiter: Waiter = {
        timer: this.#clock.after(maxWaitMs, () => {
          leave();
          reject(new WaitTimeoutError(maxWaitMs));
        }),
        admit: () => {
          leave();
          resolve();
        },
      };
      this.#waiters.add(waiter);
      signal.addEventListener("abort", onAbort);
    });
  }

  /** Gives a place back, to the one that has waited longest if any. Once for each place taken. */
  release(): void {
    const [next] = this.#waiters;
    if (next !== undefined) next.admit();
    else if (this.#inside > 0) this.#inside--;
    else throw new RangeError("breaker: release without a place taken");
  }
}
