/**
 * The whole of one decision for one revision: policy -> hold -> bounds -> path to zero -> path mode. This is what the
 * operator, the simulator and `fairway why` call; the steps are in their own files and can be called alone.
 *
 * The policy may change from one decision to the next: its state then begins anew from what is there.
 */
import type { CloudRunExplanation, CloudRunObservation, CloudRunState } from "./cloud-run.ts";
import { decideCloudRun, initialCloudRunState } from "./cloud-run.ts";
import type { CloudRunSpec } from "./cloud-run-spec.ts";
import type { Demoted, Stop } from "./demotion.ts";
import type { HoldState } from "./hold.ts";
import { NO_HOLD, holdUnreadyScaleUp } from "./hold.ts";
import type { KpaExplanation, KpaInvalidReason, KpaSpec, KpaState, WindowedLoad } from "./kpa.ts";
import { TICK_MS, decide as decideKpa, initialExcessBurstCapacity, initialKpaState } from "./kpa.ts";
import type { LifecycleSpec, LifecycleState, LifecycleStep } from "./lifecycle.ts";
import { step } from "./lifecycle.ts";
import type { ManualExplanation, ManualSpec } from "./manual.ts";
import { decideManual } from "./manual.ts";

export type PolicySpec =
  | { readonly kind: "kpa"; readonly kpa: KpaSpec }
  | { readonly kind: "cloud-run"; readonly cloudRun: CloudRunSpec }
  | { readonly kind: "manual"; readonly manual: ManualSpec };

export interface RevisionSpec {
  readonly policy: PolicySpec;
  readonly lifecycle: LifecycleSpec;
}

export interface RevisionObservation {
  /** Ready pods that are not terminating; undefined when they could not be counted. */
  readonly readyPods: number | undefined;
  /** For Knative's policy. */
  readonly load: WindowedLoad;
  /** For Cloud Run's policy; without it that policy does not decide. */
  readonly cloudRun?: CloudRunObservation | undefined;
  /** See LifecycleInput. */
  readonly gatewaysInPathSinceMs: number | undefined;
}

type PolicyState =
  | { readonly kind: "kpa"; readonly kpa: KpaState; readonly hold: HoldState; readonly last: KpaDecided | undefined }
  | { readonly kind: "cloud-run"; readonly cloudRun: CloudRunState }
  | { readonly kind: "manual" };

/** A valid decision of Knative's policy: it holds until the next tick. */
interface KpaDecided {
  readonly atMs: number;
  readonly desired: number;
  readonly held: boolean;
  readonly explanation: KpaExplanation;
}

/** Kept per revision in memory; `lifecycle` alone must survive a restart (Revision's Active condition). */
export interface RevisionState {
  /** Undefined before the first decision. */
  readonly policy: PolicyState | undefined;
  readonly lifecycle: LifecycleState;
  /** The last valid decision; a tick without data keeps it. */
  readonly decided: Decided | undefined;
  readonly firstReadyPods: number;
  readonly firstSeenMs: number;
}

interface Decided {
  readonly desired: number;
  readonly excessBurstCapacity: number;
}

export type PolicyDecision =
  | { readonly valid: false; readonly reason: KpaInvalidReason }
  | { readonly valid: true; readonly policy: "kpa"; readonly explanation: KpaExplanation }
  | {
      readonly valid: true;
      readonly policy: "cloud-run";
      readonly explanation: CloudRunExplanation;
      /** Instances that get requests only while all others are busy: the gateways are told. */
      readonly demoted: readonly Demoted[];
      /** Which instances go first when the number falls. */
      readonly stops: readonly Stop[];
      readonly pendingTimeoutMs: number;
    }
  | { readonly valid: true; readonly policy: "manual"; readonly explanation: ManualExplanation };

export interface ScaleOutcome {
  /** Whether this tick's data allowed a decision; when not, it says what was missing and the last one stays. */
  readonly decision: PolicyDecision;
  /** Pods wanted by the policy before `held` and bounds; undefined before the first valid decision. */
  readonly desired: number | undefined;
  /** True when the rule of hold.ts raised the number. */
  readonly held: boolean;
  readonly excessBurstCapacity: number;
  /** Bounds, path to zero, mode; `step.replicas` is the number to write. */
  readonly step: LifecycleStep;
  readonly next: RevisionState;
}

/** State of a revision this process sees first; `lifecycle` from its status, or initialLifecycleState when it is new. */
export function initialRevisionState(lifecycle: LifecycleState, readyPods: number, nowMs: number): RevisionState {
  return { policy: undefined, lifecycle, decided: undefined, firstReadyPods: readyPods, firstSeenMs: nowMs };
}

interface PolicyOutcome {
  readonly decision: PolicyDecision;
  readonly desired: number | undefined;
  readonly held: boolean;
  readonly decided: Decided | undefined;
  readonly state: PolicyState;
  readonly recheckAtMs?: number | undefined;
}

/**
 * Wakes between two ticks (a pod came or went, a wait ended) do not decide anew: the rates of scaling are per decision, and pods
 * that stop would halve the number again each time one of them is gone. At zero a request decides at once.
 */
const DECISION_HOLDS_MS = 0.75 * TICK_MS;

function runKpa(
  kpa: KpaSpec,
  lifecycle: LifecycleSpec,
  observation: RevisionObservation,
  state: RevisionState,
  nowMs: number,
): PolicyOutcome {
  const before =
    state.policy?.kind === "kpa"
      ? state.policy
      : ({
          kind: "kpa",
          kpa:
            state.policy === undefined
              ? initialKpaState(state.firstReadyPods, state.firstSeenMs)
              : initialKpaState(observation.readyPods ?? 0, nowMs),
          hold: NO_HOLD,
          last: undefined,
        } as const);
  const { last } = before;
  if (last !== undefined && observation.readyPods !== 0 && nowMs - last.atMs < DECISION_HOLDS_MS) {
    const { desired, held, explanation } = last;
    const decision = { valid: true, policy: "kpa", explanation } as const;
    return { decision, desired, held, decided: state.decided, state: before };
  }
  const decision = decideKpa(kpa, observation, before.kpa, nowMs);
  if (!decision.valid) {
    return { decision, desired: state.decided?.desired, held: false, decided: state.decided, state: before };
  }
  const limits = {
    reachable: lifecycle.reachable,
    maxPods: lifecycle.bounds.max,
    startTimeoutMs: lifecycle.activationTimeoutMs,
  };
  const after = holdUnreadyScaleUp(limits, before.kpa, decision, before.hold, nowMs);
  return {
    decision: { valid: true, policy: "kpa", explanation: decision.explanation },
    desired: decision.desired,
    held: after.held,
    decided: { desired: after.pods, excessBurstCapacity: decision.excessBurstCapacity },
    state: {
      kind: "kpa",
      kpa: decision.next,
      hold: after.next,
      last: { atMs: nowMs, desired: decision.desired, held: after.held, explanation: decision.explanation },
    },
  };
}

/** Requests wait in the gateways' queue, so under this policy the gateways never leave the path. */
const ALWAYS_PROXY = -1;

function runCloudRun(
  spec: CloudRunSpec,
  observation: RevisionObservation,
  state: RevisionState,
  nowMs: number,
): PolicyOutcome {
  const seen = observation.cloudRun;
  const before =
    state.policy?.kind === "cloud-run"
      ? state.policy.cloudRun
      : initialCloudRunState(seen?.instances.length ?? observation.readyPods ?? 0);
  const decision =
    seen === undefined
      ? ({ valid: false, reason: "not-collecting" } as const)
      : decideCloudRun(spec, seen, before, nowMs);
  if (!decision.valid) {
    return {
      decision,
      desired: state.decided?.desired,
      held: false,
      decided: state.decided,
      state: { kind: "cloud-run", cloudRun: before },
    };
  }
  const { desired, demoted, stops, pendingTimeoutMs, explanation } = decision;
  return {
    decision: { valid: true, policy: "cloud-run", explanation, demoted, stops, pendingTimeoutMs },
    desired,
    held: false,
    decided: { desired, excessBurstCapacity: ALWAYS_PROXY },
    state: { kind: "cloud-run", cloudRun: decision.next },
    recheckAtMs: decision.recheckAtMs,
  };
}

function runPolicy(
  spec: RevisionSpec,
  observation: RevisionObservation,
  state: RevisionState,
  nowMs: number,
): PolicyOutcome {
  const { policy, lifecycle } = spec;
  switch (policy.kind) {
    case "kpa":
      return runKpa(policy.kpa, lifecycle, observation, state, nowMs);
    case "cloud-run":
      return runCloudRun(policy.cloudRun, observation, state, nowMs);
    case "manual": {
      const { desired, explanation } = decideManual(policy.manual, lifecycle.reachable);
      return {
        decision: { valid: true, policy: "manual", explanation },
        desired,
        held: false,
        decided: { desired, excessBurstCapacity: ALWAYS_PROXY },
        state: { kind: "manual" },
      };
    }
  }
}

function earliest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.min(a, b);
}

/** Called every tick for a revision that is not idle, when its pods change, and at `step.recheckAtMs`. */
export function scaleRevision(
  spec: RevisionSpec,
  observation: RevisionObservation,
  state: RevisionState,
  nowMs: number,
): ScaleOutcome {
  const outcome = runPolicy(spec, observation, state, nowMs);
  const { decided } = outcome;
  const excessBurstCapacity =
    decided?.excessBurstCapacity ??
    (spec.policy.kind === "kpa"
      ? initialExcessBurstCapacity(spec.policy.kpa, spec.lifecycle.bounds.initial)
      : ALWAYS_PROXY);
  const lifecycle = step(
    spec.lifecycle,
    {
      desired: decided?.desired,
      excessBurstCapacity,
      readyPods: observation.readyPods ?? 0,
      gatewaysInPathSinceMs: observation.gatewaysInPathSinceMs,
    },
    state.lifecycle,
    nowMs,
  );
  const recheckAtMs = earliest(lifecycle.recheckAtMs, outcome.recheckAtMs);
  return {
    decision: outcome.decision,
    desired: outcome.desired,
    held: outcome.held,
    excessBurstCapacity,
    step: recheckAtMs === lifecycle.recheckAtMs ? lifecycle : { ...lifecycle, recheckAtMs },
    next: {
      policy: outcome.state,
      lifecycle: lifecycle.next,
      decided,
      firstReadyPods: state.firstReadyPods,
      firstSeenMs: state.firstSeenMs,
    },
  };
}
