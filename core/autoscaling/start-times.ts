/**
 * How long instances of a revision take to start, on average: what a request that needs a new one has to expect.
 * The mean of the first LONGEST_MEMORY starts, then each new one weighs 1 / LONGEST_MEMORY.
 */
export interface StartTimes {
  readonly count: number;
  readonly meanMs: number;
}

export const NO_STARTS: StartTimes = { count: 0, meanMs: 0 };

/** Expected while nothing was measured yet. */
export const ASSUMED_START_MS = 10_000;

const LONGEST_MEMORY = 20;
/** Kubernetes tells both times in whole seconds: a start within one seems to take no time, and one that lasts would seem stuck. */
const SHORTEST_START_MS = 1_000;

/** `durationMs`: from the instance's creation until it was ready. Worked numbers: 2 s, then 4 s -> mean 3 s. */
export function recordStart(times: StartTimes, durationMs: number): StartTimes {
  const count = Math.min(times.count + 1, LONGEST_MEMORY);
  return { count, meanMs: times.meanMs + (durationMs - times.meanMs) / count };
}

/** Start times, and whose start is in them already: instances that are gone are forgotten. */
export interface StartHistory {
  readonly times: StartTimes;
  readonly counted: ReadonlySet<string>;
}

export const NO_HISTORY: StartHistory = { times: NO_STARTS, counted: new Set() };

/** Takes in the starts of instances that have become ready. Gives the same history back when there is nothing new. */
export function trackStarts(
  history: StartHistory,
  instances: readonly {
    readonly name: string;
    readonly createdMs: number;
    readonly readySinceMs: number | undefined;
  }[],
): StartHistory {
  const ready = instances.filter(one => one.readySinceMs !== undefined);
  const fresh = ready.filter(one => !history.counted.has(one.name));
  if (fresh.length === 0 && ready.length === history.counted.size) return history;
  const times = fresh
    .sort((a, b) => a.readySinceMs! - b.readySinceMs!)
    .reduce(
      (so, one) => recordStart(so, Math.max(SHORTEST_START_MS, one.readySinceMs! - one.createdMs)),
      history.times,
    );
  return { times, counted: new Set(ready.map(one => one.name)) };
}

export function expectedStartMs(times: StartTimes): number {
  return times.count === 0 ? ASSUMED_START_MS : times.meanMs;
}

const SHORTEST_PENDING_MS = 10_000;
const PENDING_STARTS = 3.5;

/**
 * How long a request may wait for a place before it is answered 429: max(10 s, 3.5 x the average start time). A wait set by
 * the user wins. Worked numbers: start 2 s -> 10 s; start 4 s -> 14 s.
 */
export function pendingTimeoutMs(times: StartTimes, configuredMs?: number): number {
  return configuredMs ?? Math.max(SHORTEST_PENDING_MS, PENDING_STARTS * expectedStartMs(times));
}
