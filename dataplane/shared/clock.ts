/** A running timer; give it back to `cancel` of the clock that made it. */
export type Timer = object;

/** Time as the data plane sees it. Tests bring their own (`testing/fake-clock.ts`). */
export interface Clock {
  /** Monotonic milliseconds: for every duration and deadline. */
  nowMs(): number;
  /** Milliseconds since the epoch: for what leaves the process. */
  wallMs(): number;
  /** Calls `callback` once after `delayMs`; never keeps the process alive. */
  after(delayMs: number, callback: () => void): Timer;
  /** Harmless when the timer has fired or was cancelled. */
  cancel(timer: Timer): void;
}

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  after: (delayMs, callback) => setTimeout(callback, delayMs).unref(),
  cancel: timer => clearTimeout(timer as NodeJS.Timeout),
};
