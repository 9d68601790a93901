/**
 * The whole of one decision for one revision: policy -> hold -> bounds -> path to zero -> path mode. This is what the
 * operator, the simulator and `fairway why` call; the steps are in their own files and can be called alone.
 */
import type { HoldState } from "./hold.ts";
import { NO_HOLD, holdUnreadyScaleUp } from "./hold.ts";
import type { KpaExplanation, KpaInvalidReason, KpaSpec, KpaState, WindowedLoad } from "./kpa.ts";
import { decide as decideKpa, initialExcessBurstCapacity, initialKpaState } from "./kpa.ts";
import type { LifecycleSpec, LifecycleState, LifecycleStep } from "./lifecycle.ts";
import { step } from "./lifecycle.ts";

export interface RevisionSpec {
  readonly policy: { readonly kind: "kpa"; readonly kpa: KpaSpec };
  readonly lifecycle: LifecycleSpec;
}

export interface RevisionObservation {
  /** Ready pods that are not terminating; undefined when they could not be counted. */
  readonly readyPods: number | undefined;
  readonly load: WindowedLoad;
  /** See LifecycleInput. */
  readonly gatewaysInPathSinceMs: number | undefined;
}

/** Kept per revision in memory; `lifecycle` alone must survive a restart (Revision's Active condition). */
export interface RevisionState {
  readonly kpa: KpaState;
  readonly hold: HoldState;
  readonly lifecycle: LifecycleState;
  /** The last valid decision; a tick without data keeps it. */
  readonly decided: { readonly desired: number; readonly excessBurstCapacity: number } | undefined;
}

export interface ScaleOutcome {
  /** Whether this tick's data allowed a decision; when not, `why` says what was missing and the last one stays. */
  readonly decision:
    | { readonly valid: true; readonly explanation: KpaExplanation }
    | { readonly valid: false; readonly reason: KpaInvalidReason };
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
  return { kpa: initialKpaState(readyPods, nowMs), hold: NO_HOLD, lifecycle, decided: undefined };
}

/** Called every tick for a revision that is not idle, when its pods change, and at `step.recheckAtMs`. */
export function scaleRevision(
  spec: RevisionSpec,
  observation: RevisionObservation,
  state: RevisionState,
  nowMs: number,
): ScaleOutcome {
  const decision = decideKpa(spec.policy.kpa, observation, state.kpa, nowMs);
  let { kpa, hold, decided } = state;
  let held = false;
  if (decision.valid) {
    const limits = {
      reachable: spec.lifecycle.reachable,
      maxPods: spec.lifecycle.bounds.max,
      startTimeoutMs: spec.lifecycle.activationTimeoutMs,
    };
    const after = holdUnreadyScaleUp(limits, state.kpa, decision, state.hold, nowMs);
    kpa = decision.next;
    hold = after.next;
    held = after.held;
    decided = { desired: after.pods, excessBurstCapacity: decision.excessBurstCapacity };
  }
  const excessBurstCapacity =
    decided?.excessBurstCapacity ?? initialExcessBurstCapacity(spec.policy.kpa, spec.lifecycle.bounds.initial);
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
  return {
    decision: decision.valid ? { valid: true, explanation: decision.explanation } : decision,
    desired: decision.valid ? decision.desired : decided?.desired,
    held,
    excessBurstCapacity,
    step: lifecycle,
    next: { kpa, hold, lifecycle: lifecycle.next, decided },
  };
}
