/**
 * Cloud Run's on-demand scaling: what a request that finds no place waits for. It is the only way up from zero and answers
 * at once; the metric-based drivers come after.
 *
 * In this order: an instance that is starting already, a place that frees up at a running one, a new instance:
 *
 *     starting   has a place not yet promised to an earlier request; ready in (expected start - time it has had)
 *     running    expected wait = position among those who wait for a running one / rate at which places free up
 *     new        expected start; not beyond the maximum of instances
 *
 * Worked numbers: 25 wait, one instance is starting, 10 places each, start 4 s, places free up at 2 a second. 10 wait for the
 * starting one, 7 for freed places (the 7th waits 3.5 s < 4 s; the 8th would wait 4 s), 8 need one new instance.
 */

export interface OnDemandInput {
  /** Requests that wait for a place now. */
  readonly waiting: number;
  /** How long each starting instance has been starting. */
  readonly startingMs: readonly number[];
  readonly placesPerInstance: number;
  readonly expectedStartMs: number;
  /** Places that free up per second over all running instances, measured. */
  readonly freedPerSecond: number;
  /** Instances that may still be added. */
  readonly room: number;
}

export type PlaceChoice =
  | { readonly kind: "starting"; readonly expectedMs: number }
  | { readonly kind: "running"; readonly expectedMs: number }
  | { readonly kind: "new"; readonly expectedMs: number }
  /** Only a new instance would be fast enough, and the maximum is reached: it waits for a running one all the same. */
  | { readonly kind: "at-maximum"; readonly expectedMs: number };

/** An instance that takes this many times the expected start is stuck: nobody counts on it. */
const STUCK_STARTS = 3.5;

/** Time left of each starting instance that is counted on, soonest first. */
function remainingMs({ startingMs, expectedStartMs }: OnDemandInput): number[] {
  return startingMs
    .filter(elapsed => elapsed <= STUCK_STARTS * expectedStartMs)
    .map(elapsed => Math.max(0, expectedStartMs - elapsed))
    .sort((a, b) => a - b);
}

/** How many may wait for a running instance: those whose turn comes before a new instance would be ready. */
function fasterThanStart({ freedPerSecond, expectedStartMs }: OnDemandInput): number {
  return Math.max(0, Math.ceil((freedPerSecond * expectedStartMs) / 1000) - 1);
}

/** What the request at `position` (1 = next in turn) waits for. */
export function choosePlace(input: OnDemandInput, position: number): PlaceChoice {
  const starting = remainingMs(input);
  const startingPlaces = starting.length * input.placesPerInstance;
  if (position <= startingPlaces) {
    return { kind: "starting", expectedMs: starting[Math.ceil(position / input.placesPerInstance) - 1]! };
  }
  const turn = position - startingPlaces;
  const faster = fasterThanStart(input);
  const runningMs = input.freedPerSecond > 0 ? (turn * 1000) / input.freedPerSecond : Number.POSITIVE_INFINITY;
  if (turn <= faster) return { kind: "running", expectedMs: runningMs };
  const behindFaster = turn - faster;
  if (Math.ceil(behindFaster / input.placesPerInstance) <= input.room) {
    return { kind: "new", expectedMs: input.expectedStartMs };
  }
  return { kind: "at-maximum", expectedMs: runningMs };
}

export interface OnDemandPlan {
  /** Requests by what they wait for; they sum up to `waiting`. */
  readonly byStarting: number;
  readonly byRunning: number;
  readonly byNew: number;
  readonly atMaximum: number;
  /** Instances to start now. */
  readonly newInstances: number;
}

/** All waiting requests at once: what `choosePlace` gives for positions 1..waiting, summed up. */
export function planOnDemand(input: OnDemandInput): OnDemandPlan {
  const byStarting = Math.min(input.waiting, remainingMs(input).length * input.placesPerInstance);
  const byRunning = Math.min(input.waiting - byStarting, fasterThanStart(input));
  const rest = input.waiting - byStarting - byRunning;
  const newInstances = Math.min(Math.ceil(rest / input.placesPerInstance), input.room);
  const byNew = Math.min(rest, newInstances * input.placesPerInstance);
  return { byStarting, byRunning, byNew, atMaximum: rest - byNew, newInstances };
}
