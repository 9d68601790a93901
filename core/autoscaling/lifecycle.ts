/**
 * A revision between zero and its pods: activating, active, inactive; the path to zero with its waits; and whether the
 * gateways stay in the path.
 *
 * Source of the rules: knative.dev/serving v0.51.0 pkg/reconciler/autoscaling/kpa. The original spreads this over conditions and
 * timers; here it is one step of a state machine: `step(spec, input, state, nowMs)`.
 *
 *     activating --ready >= threshold--> active --wanted 0 for a stable window--> inactive --grace, retention--> 0 pods
 *         ^                                 |  ^                                    |
 *         +---- ready < threshold ----------+  +--------- wanted > 0 --------------+
 */
import type { BoundRule, ScaleBounds } from "./bounds.ts";
import { applyBounds } from "./bounds.ts";

export type Activity =
  /** Pods are wanted and not enough are ready. */
  | { readonly phase: "activating"; readonly sinceMs: number }
  | { readonly phase: "active"; readonly sinceMs: number }
  | { readonly phase: "inactive"; readonly sinceMs: number; readonly reason: "no-traffic" | "timed-out" };

/** Kept between steps. It is what the Revision's Active condition says, so it survives a restart of the operator. */
export interface LifecycleState {
  readonly activity: Activity;
  /** Initial scale was ready once; it does not count any more. */
  readonly initialScaleReached: boolean;
}

export interface LifecycleSpec {
  readonly bounds: ScaleBounds;
  readonly reachable: boolean;
  readonly enableScaleToZero: boolean;
  readonly stableWindowMs: number;
  readonly gracePeriodMs: number;
  /** How long the last pod stays after the revision became inactive. */
  readonly podRetentionMs: number;
  /**
   * Without ready pods for so long while pods are wanted: given up (progress deadline plus 30 s), unless it is the first start of
   * a reachable revision.
   */
  readonly activationTimeoutMs: number;
}

export interface LifecycleInput {
  /** Pods wanted by the policy; undefined while it has not decided. */
  readonly desired: number | undefined;
  readonly excessBurstCapacity: number;
  readonly readyPods: number;
  /** Since when requests to the revision can only come through the gateways; undefined while pods may be reached directly. */
  readonly gatewaysInPathSinceMs: number | undefined;
}

/** `proxy`: requests pass the gateways; `serve`: pods may be reached directly. */
export type PathMode = "proxy" | "serve";

export type LifecycleRule =
  | "desired"
  | "awaiting-decision"
  | "scale-to-zero-disabled"
  | "awaiting-activation"
  | "activation-timed-out"
  | "unreachable-never-ready"
  | "active-less-than-stable-window"
  | "deactivating"
  | "awaiting-gateways-in-path"
  | "awaiting-pod-retention"
  | "awaiting-grace-period"
  | "scaled-to-zero";

export interface LifecycleStep {
  /** Pods to have; undefined: leave the number as it is. */
  readonly replicas: number | undefined;
  /** What the revision is heading for, for status; undefined while unknown. */
  readonly wanted: number | undefined;
  readonly mode: PathMode;
  readonly rule: LifecycleRule;
  readonly bound: BoundRule;
  /** When the outcome may change by time alone; undefined when only new observations can change it. */
  readonly recheckAtMs: number | undefined;
  readonly next: LifecycleState;
}

/** A revision just created. */
export function initialLifecycleState(nowMs: number): LifecycleState {
  return { activity: { phase: "activating", sinceMs: nowMs }, initialScaleReached: false };
}

interface Outcome {
  readonly replicas: number | undefined;
  readonly wanted: number | undefined;
  readonly rule: LifecycleRule;
  readonly recheckAtMs?: number;
}

function pathToZero(spec: LifecycleSpec, input: LifecycleInput, state: LifecycleState, nowMs: number): Outcome {
  const { activity } = state;
  if (!spec.enableScaleToZero) return { replicas: 1, wanted: 1, rule: "scale-to-zero-disabled" };
  const inPhaseMs = nowMs - activity.sinceMs;
  switch (activity.phase) {
    case "activating":
      // The first start of a revision that a route waits for is never given up (KS#12330): what it lacks may come, and at
      // zero nobody would notice. Its Deployment goes on trying, less and less often; a newer revision ends that.
      if (spec.reachable && !state.initialScaleReached) {
        const one = input.desired === undefined ? undefined : 1;
        return { replicas: one, wanted: one, rule: "awaiting-activation" };
      }
      if (inPhaseMs > spec.activationTimeoutMs) return { replicas: 0, wanted: 0, rule: "activation-timed-out" };
      if (!spec.reachable && input.readyPods === 0) return { replicas: 0, wanted: 0, rule: "unreachable-never-ready" };
      return {
        replicas: undefined,
        wanted: undefined,
        rule: "awaiting-activation",
        recheckAtMs: activity.sinceMs + spec.activationTimeoutMs + 1,
      };
    case "active":
      if (inPhaseMs >= spec.stableWindowMs)
        return { replicas: undefined, wanted: 0, rule: "deactivating", recheckAtMs: nowMs };
      return {
        replicas: 1,
        wanted: 1,
        rule: "active-less-than-stable-window",
        recheckAtMs: activity.sinceMs + spec.stableWindowMs,
      };
    case "inactive": {
      if (input.gatewaysInPathSinceMs === undefined) {
        return { replicas: undefined, wanted: 0, rule: "awaiting-gateways-in-path" };
      }
      const retentionMs = spec.reachable ? spec.podRetentionMs : 0;
      if (inPhaseMs >= Math.max(spec.gracePeriodMs, retentionMs))
        return { replicas: 0, wanted: 0, rule: "scaled-to-zero" };
      if (inPhaseMs < retentionMs) {
        return {
          replicas: undefined,
          wanted: 0,
          rule: "awaiting-pod-retention",
          recheckAtMs: activity.sinceMs + retentionMs,
        };
      }
      const graceEndsMs = input.gatewaysInPathSinceMs + spec.gracePeriodMs;
      if (graceEndsMs <= nowMs) return { replicas: 0, wanted: 0, rule: "scaled-to-zero" };
      return {
        replicas: undefined,
        wanted: 0,
        rule: "awaiting-grace-period",
        recheckAtMs: Math.min(graceEndsMs, activity.sinceMs + Math.max(spec.gracePeriodMs, retentionMs)),
      };
    }
  }
}

function outcomeOf(
  spec: LifecycleSpec,
  input: LifecycleInput,
  state: LifecycleState,
  nowMs: number,
): Outcome & { bound: BoundRule } {
  const { activity } = state;
  if (input.desired === undefined && activity.phase !== "activating") {
    return { replicas: undefined, wanted: undefined, rule: "awaiting-decision", bound: "none" };
  }
  const { pods, rule: bound } = applyBounds(
    spec.bounds,
    spec.reachable && !state.initialScaleReached,
    input.desired ?? 0,
  );
  if (pods === 0) return { ...pathToZero(spec, input, state, nowMs), bound };
  return { replicas: pods, wanted: pods, rule: input.desired === undefined ? "awaiting-decision" : "desired", bound };
}

function activityAfter(
  spec: LifecycleSpec,
  outcome: Outcome,
  readyPods: number,
  state: LifecycleState,
  nowMs: number,
): LifecycleState {
  const { activity } = state;
  const { min, initial } = spec.bounds;
  const initialScaleReached = state.initialScaleReached || readyPods >= Math.max(min, initial);
  // Initial scale holds nothing up once no route leads here: what is ready then counts as active and may go to zero.
  const threshold = Math.max(min, state.initialScaleReached || !spec.reachable ? 1 : initial);
  const to = (phase: "activating" | "active"): Activity =>
    activity.phase === phase ? activity : { phase, sinceMs: nowMs };
  let next: Activity = activity;
  if (outcome.wanted === 0 || threshold === 0) {
    if (activity.phase !== "inactive") {
      const timedOut = activity.phase === "activating" && threshold > 0 && spec.reachable;
      next = { phase: "inactive", sinceMs: nowMs, reason: timedOut ? "timed-out" : "no-traffic" };
    }
  } else if ((outcome.wanted ?? 0) > 0 || activity.phase !== "inactive") {
    next = to(readyPods < threshold ? "activating" : "active");
  }
  return next === activity && initialScaleReached === state.initialScaleReached
    ? state
    : { activity: next, initialScaleReached };
}

/**
 * One step. Called after each decision, when the pods' readiness or the path changes, and at `recheckAtMs`. Pure; repeating it
 * with the same arguments repeats the outcome.
 */
export function step(spec: LifecycleSpec, input: LifecycleInput, state: LifecycleState, nowMs: number): LifecycleStep {
  const outcome = outcomeOf(spec, input, state, nowMs);
  return {
    replicas: outcome.replicas,
    wanted: outcome.wanted,
    mode: (outcome.wanted ?? 0) > 0 && input.excessBurstCapacity >= 0 ? "serve" : "proxy",
    rule: outcome.rule,
    bound: outcome.bound,
    recheckAtMs: outcome.recheckAtMs,
    next: activityAfter(spec, outcome, input.readyPods, state, nowMs),
  };
}
