/** Time as the runtime sees it; injected, so that tests advance it by hand (`core/testing/fake-clock.ts`). */
export interface Clock {
  /** Wall time in milliseconds since the epoch: for timestamps that others read. */
  nowMs(): number;
  /** Milliseconds that never jump: for durations and deadlines. */
  elapsedMs(): number;
  /** Calls `run` once after `delayMs`; the returned function cancels it, and may be called at any time. */
  after(delayMs: number, run: () => void): () => void;
}

/** setTimeout fires at once for delays above this. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  elapsedMs: () => performance.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS));
    return () => clearTimeout(timer);
  },
};

/** Resolves after `delayMs` or as soon as `signal` aborts; the caller looks at the signal. Never rejects. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise(resolve => {
    const end = () => {
      cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.after(delayMs, end);
    signal.addEventListener("abort", end, { once: true });
  });
}

/** Doubles from `baseMs` to `maxMs`, then takes a random part between half and all of it. `failures` counts from 1. */
export function backoffMs(
  failures: number,
  bounds: { readonly baseMs: number; readonly maxMs: number },
  random: () => number,
): number {
  const full = Math.min(bounds.maxMs, bounds.baseMs * 2 ** Math.min(failures - 1, 30));
  return full / 2 + (full / 2) * random();
}
