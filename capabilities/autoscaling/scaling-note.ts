import type { ScalingNote } from "../services/revision-scaling.ts";
import type { ScaleOutcome, RevisionSpec } from "../../core/autoscaling/scale-revision.ts";
import type { Decision } from "./revision-scaler.ts";

/** A maximum that keeps the policy from what it wants. */
export interface AtMaximum {
  readonly wanted: number;
  readonly max: number;
}

/** The number is at its maximum, and the policy wants more. */
export function atMaximum(spec: RevisionSpec, outcome: ScaleOutcome): AtMaximum | undefined {
  const { decision, step, desired } = outcome;
  if (step.bound === "max-scale") return { wanted: desired ?? 0, max: spec.lifecycle.bounds.max };
  if (!decision.valid || decision.policy !== "cloud-run") return undefined;
  // This policy keeps its bounds itself.
  const { winner, beforeBounds, instances, maxInstances, onDemand } = decision.explanation;
  if (winner === "max-instances") return { wanted: beforeBounds, max: maxInstances };
  if (onDemand.atMaximum > 0 && instances >= maxInstances) return { wanted: instances + 1, max: maxInstances };
  return undefined;
}

/** Above its maximum, as the service allows it for a while. */
export function overMaximum({ decision }: ScaleOutcome): AtMaximum | undefined {
  if (!decision.valid || decision.policy !== "cloud-run") return undefined;
  const { winner, beforeBounds, maxInstances } = decision.explanation;
  return winner === "max-instances-overshoot" ? { wanted: beforeBounds, max: maxInstances } : undefined;
}

/** A pod's first CPU numbers come after two looks at its node. */
const CPU_UNKNOWN_AFTER_MS = 45_000;

/** Why Cloud Run's policy goes by concurrency alone although CPU is to count. */
export function withoutCpu({ spec, observation, atMs }: Decision): string | undefined {
  if (spec.policy.kind !== "cloud-run" || spec.policy.cloudRun.cpuTarget === "disabled") return undefined;
  if (spec.policy.cloudRun.cpus === undefined) return "a container has no CPU limit";
  const { load, instances = [] } = observation.cloudRun ?? {};
  const old = instances.some(one => one.readySinceMs !== undefined && atMs - one.readySinceMs >= CPU_UNKNOWN_AFTER_MS);
  return load !== undefined && load.cpu1m === undefined && old
    ? "neither the pods (share-process-namespace) nor the nodes' kubelets tell the CPU use"
    : undefined;
}

/** What of a decision the revision's status says. */
export function noteOf(decision: Decision): ScalingNote | undefined {
  const { spec, outcome } = decision;
  const bound = atMaximum(spec, outcome);
  if (bound !== undefined) {
    return {
      reason: "MaxScaleReached",
      message: `More than max scale (${bound.max}) is wanted: requests wait for a place.`,
    };
  }
  const over = overMaximum(outcome);
  if (over !== undefined) {
    return {
      reason: "MaxScaleExceeded",
      message: `More than max scale (${over.max}) for a while, as the service allows.`,
    };
  }
  if (!outcome.decision.valid && outcome.desired !== undefined && (decision.observation.readyPods ?? 0) > 0) {
    return {
      reason: "ScalingHeld",
      message: `No decision without data (${outcome.decision.reason}): the number of pods stays.`,
    };
  }
  const reason = withoutCpu(decision);
  return reason === undefined
    ? undefined
    : { reason: "CpuNotMeasured", message: `Scales on concurrency alone: ${reason}.` };
}
