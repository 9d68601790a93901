/**
 * Cloud Run's policy for one revision: metric-based scaling (cloud-run-drivers.ts), on-demand scaling (on-demand.ts), bounds, and
 * demotion on the way down (demotion.ts).
 *
 *     recommended = drivers, at least what requests that wait need now, between minimum and maximum
 *     instances   = recommended + those demoted that do not stop yet
 *
 * Worked numbers: 4 instances with 20 places each, 96 % in use, 12 requests wait, a start takes 3 s, 2 places free up per second:
 * drivers ask for ceil(76.8 / 20 / 0.6) = 7; of the 12, 5 are served faster by freed places, 7 by a new instance, so at least 5;
 * recommended 7, instances 7.
 */
import type { CloudRunLoad, CountRule, Drivers } from "./cloud-run-drivers.ts";
import { drive, recommend } from "./cloud-run-drivers.ts";
import type { CloudRunSpec } from "./cloud-run-spec.ts";
import type { Demoted, Instance, Stop } from "./demotion.ts";
import { chooseStops, demote, nextIdleTimeoutMs } from "./demotion.ts";
import type { OnDemandPlan } from "./on-demand.ts";
import { planOnDemand } from "./on-demand.ts";
import type { StartHistory } from "./start-times.ts";
import { NO_HISTORY, expectedStartMs, pendingTimeoutMs, trackStarts } from "./start-times.ts";

export interface CloudRunObservation {
  /** Undefined when nothing was measured for the whole of the windows. */
  readonly load: CloudRunLoad | undefined;
  /** Instances that are not terminating. */
  readonly instances: readonly Instance[];
  /** Requests that wait for a place now, at all gateways. */
  readonly waiting: number;
  /** Of them, those that began to wait within the last second or so. */
  readonly newlyWaiting: number;
  /** Requests at instances now. */
  readonly inFlight: number;
  /** Places that freed up per second over the last seconds. */
  readonly freedPerSecond: number;
}

/** Kept between decisions; treat as opaque. */
export interface CloudRunState {
  readonly recommended: number;
  readonly demoted: readonly Demoted[];
  /** When a request last started an instance. */
  readonly lastOnDemandMs: number;
  /** Since when more instances than the maximum were wanted and allowed; undefined when not. */
  readonly overMaximumSinceMs: number | undefined;
  readonly starts: StartHistory;
}

export type CloudRunRule =
  | CountRule
  | "on-demand"
  | "on-demand-settling"
  | "idle-timeout"
  | "no-data"
  | "min-instances"
  | "max-instances"
  | "max-instances-overshoot"
  | "unreachable";

export interface CloudRunExplanation {
  readonly winner: CloudRunRule;
  readonly load: CloudRunLoad | undefined;
  readonly drivers: Drivers;
  readonly utilization: number;
  /** What the metrics recommend, before the rules below. */
  readonly byMetrics: number;
  readonly metricsRule: CountRule | "no-data";
  readonly onDemand: OnDemandPlan;
  readonly waiting: number;
  /** Of them, those for whom instances have room. */
  readonly haveRoom: number;
  readonly expectedStartMs: number;
  readonly pendingTimeoutMs: number;
  readonly recommendedBefore: number;
  readonly minInstances: number;
  readonly maxInstances: number;
  /** Recommended before minimum and maximum. */
  readonly beforeBounds: number;
  readonly instances: number;
  readonly stops: readonly Stop[];
}

export type CloudRunDecision =
  | { readonly valid: false; readonly reason: "no-data-in-window" }
  | {
      readonly valid: true;
      /** Instances to have. */
      readonly desired: number;
      /** Instances that get requests first; the others are demoted. */
      readonly recommended: number;
      readonly demoted: readonly Demoted[];
      /** Which instances to stop when `desired` is under the present number. */
      readonly stops: readonly Stop[];
      readonly pendingTimeoutMs: number;
      readonly recheckAtMs: number | undefined;
      readonly next: CloudRunState;
      readonly explanation: CloudRunExplanation;
    };

/** The drivers' window: what a request started is not undone before they have seen it. */
const SETTLING_MS = 60_000;
/** Until the gateways have heard of a ready instance, used it and reported that (times of readiness are whole seconds). */
const JUST_READY_MS = 3_000;
/** How long and how far surges may exceed the maximum, where the service allows it. */
const OVERSHOOT_MS = 15 * 60_000;
const OVERSHOOT_FACTOR = 2;

const NO_DRIVERS: Drivers = { concurrency: 0, cpu: 0, driving: "none", needed: 0 };

/** State of a revision this process sees first: what is there is recommended. */
export function initialCloudRunState(instances: number): CloudRunState {
  return {
    recommended: instances,
    demoted: [],
    lastOnDemandMs: Number.NEGATIVE_INFINITY,
    overMaximumSinceMs: undefined,
    starts: NO_HISTORY,
  };
}

/** The most instances there may be now, and since when it is more than the maximum. */
function ceiling(
  spec: CloudRunSpec,
  state: CloudRunState,
  wanted: number,
  nowMs: number,
): { most: number; sinceMs: number | undefined } {
  if (!spec.maxScaleOvershoot || wanted <= spec.maxInstances) return { most: spec.maxInstances, sinceMs: undefined };
  const sinceMs = state.overMaximumSinceMs ?? nowMs;
  const allowed = nowMs - sinceMs < OVERSHOOT_MS;
  return { most: allowed ? spec.maxInstances * OVERSHOOT_FACTOR : spec.maxInstances, sinceMs };
}

/**
 * How many of those who wait have room. Who has just begun to wait: each gateway has a part of an instance's places, and one may be
 * short of them while another is not. And who waited for an instance that has just become ready: the gateways are about to use its
 * places. Who goes on waiting counts all the same.
 */
function haveRoom(spec: CloudRunSpec, observation: CloudRunObservation, nowMs: number): number {
  const { instances, waiting, newlyWaiting, inFlight } = observation;
  let places = 0;
  let newPlaces = 0;
  for (const { readySinceMs, adaptedMaximum = spec.maxConcurrency } of instances) {
    if (readySinceMs === undefined) continue;
    places += adaptedMaximum;
    if (nowMs - readySinceMs < JUST_READY_MS) newPlaces += adaptedMaximum;
  }
  const served = Math.min(waiting - newlyWaiting, newPlaces);
  return Math.min(newlyWaiting + served, Math.max(0, places - inFlight));
}

/** What `waiting` requests ask for, given the most instances there may be. */
function demand(
  spec: CloudRunSpec,
  observation: CloudRunObservation,
  waiting: number,
  most: number,
  startMs: number,
  nowMs: number,
): OnDemandPlan {
  return planOnDemand({
    waiting,
    startingMs: observation.instances.filter(one => one.readySinceMs === undefined).map(one => nowMs - one.createdMs),
    placesPerInstance: spec.maxConcurrency,
    expectedStartMs: startMs,
    // The rate is of the last seconds: without a running instance nothing frees up any more.
    freedPerSecond: observation.instances.some(one => one.readySinceMs !== undefined) ? observation.freedPerSecond : 0,
    room: Math.max(0, most - observation.instances.length),
  });
}

/** Ready instances without a request for so long; none counts while any request is in progress or waits. */
function idleFor(idleTimeoutMs: number, { instances, inFlight, waiting }: CloudRunObservation, nowMs: number): number {
  if (inFlight > 0 || waiting > 0) return 0;
  return instances.filter(one => one.readySinceMs !== undefined && nowMs - one.lastBusyMs >= idleTimeoutMs).length;
}

/**
 * One decision. Called every tick, and at once when a request finds no place. Without any data and nobody waiting it is not
 * valid and nothing changes.
 */
export function decideCloudRun(
  spec: CloudRunSpec,
  observation: CloudRunObservation,
  state: CloudRunState,
  nowMs: number,
): CloudRunDecision {
  const { load, instances, waiting } = observation;
  if (load === undefined && waiting === 0) return { valid: false, reason: "no-data-in-window" };

  const drivers = load === undefined ? NO_DRIVERS : drive(spec, load);
  const count =
    load === undefined
      ? { instances: state.recommended, rule: "no-data" as const, utilization: 0 }
      : recommend(spec, load, drivers, state.recommended, instances.length);
  let wanted = count.instances;
  let winner: CloudRunRule = count.rule;

  const starts = trackStarts(state.starts, instances);
  const startMs = expectedStartMs(starts.times);
  const withRoom = haveRoom(spec, observation, nowMs);
  const unlimited = demand(spec, observation, waiting - withRoom, Number.POSITIVE_INFINITY, startMs, nowMs);
  const needed = instances.length + unlimited.newInstances;
  const { most, sinceMs } = ceiling(spec, state, Math.max(wanted, needed), nowMs);
  const onDemand = demand(spec, observation, waiting - withRoom, most, startMs, nowMs);
  const lastOnDemandMs = onDemand.newInstances > 0 ? nowMs : state.lastOnDemandMs;
  if (unlimited.newInstances > 0 && needed > wanted) {
    wanted = needed;
    winner = "on-demand";
  } else if (wanted < state.recommended && nowMs - lastOnDemandMs < SETTLING_MS) {
    wanted = state.recommended;
    winner = "on-demand-settling";
  }
  // The averages remember requests for ten minutes; an idle time-out that is shorter was asked for.
  const busyOrFresh = instances.length - idleFor(spec.idleTimeoutMs, observation, nowMs);
  if (busyOrFresh < instances.length && wanted > busyOrFresh) {
    wanted = busyOrFresh;
    winner = "idle-timeout";
  }

  const beforeBounds = wanted;
  if (wanted < spec.minInstances) {
    wanted = spec.minInstances;
    winner = "min-instances";
  }
  if (wanted > most) {
    wanted = most;
    winner = "max-instances";
  } else if (wanted > spec.maxInstances) {
    winner = "max-instances-overshoot";
  }
  if (!spec.reachable && observation.inFlight === 0 && waiting === 0) {
    wanted = 0;
    winner = "unreachable";
  }

  const demoted = demote(instances, wanted, state.demoted, nowMs);
  const stops = chooseStops(
    { idleTimeoutMs: spec.idleTimeoutMs, most, reachable: spec.reachable },
    instances,
    demoted,
    nowMs,
  );
  const desired = Math.max(wanted, instances.length - stops.length);
  const pendingMs = pendingTimeoutMs(starts.times);
  return {
    valid: true,
    desired,
    recommended: wanted,
    demoted,
    stops,
    pendingTimeoutMs: pendingMs,
    recheckAtMs: nextIdleTimeoutMs(spec.idleTimeoutMs, instances, demoted),
    next: { recommended: wanted, demoted, lastOnDemandMs, overMaximumSinceMs: sinceMs, starts },
    explanation: {
      winner,
      load,
      drivers,
      utilization: count.utilization,
      byMetrics: count.instances,
      metricsRule: count.rule,
      onDemand,
      waiting,
      haveRoom: withRoom,
      expectedStartMs: startMs,
      pendingTimeoutMs: pendingMs,
      recommendedBefore: state.recommended,
      minInstances: spec.minInstances,
      maxInstances: spec.maxInstances,
      beforeBounds,
      instances: instances.length,
      stops,
    },
  };
}
