import type { V1Pod } from "@kubernetes/client-node";
import { findCondition } from "../../api/conditions.ts";
import { LABEL } from "../../api/labels.ts";
import type { Revision } from "../../api/serving/v1/types.ts";
import { initialLifecycleState, type LifecycleState } from "../../core/autoscaling/lifecycle.ts";

/** A pod that takes requests now. */
export interface ReadyPod {
  readonly name: string;
  readonly ip: string;
  readonly startedMs: number;
}

/** Pods that are Ready and not being deleted. */
export function readyPods(pods: readonly V1Pod[]): readonly ReadyPod[] {
  return pods.flatMap(pod => {
    const { name, deletionTimestamp } = pod.metadata ?? {};
    const { podIP, conditions, startTime } = pod.status ?? {};
    if (name === undefined || podIP === undefined || deletionTimestamp !== undefined) return [];
    if (!conditions?.some(condition => condition.type === "Ready" && condition.status === "True")) return [];
    return [{ name, ip: podIP, startedMs: startTime === undefined ? 0 : new Date(startTime).getTime() }];
  });
}

/** Pods that exist and are not being deleted, ready or not. */
export function livePods(pods: readonly V1Pod[]): number {
  return pods.filter(pod => pod.metadata?.deletionTimestamp === undefined).length;
}

/**
 * Whether some route may send requests to the revision. A revision not yet routed counts as reachable until its pods
 * are known to fail; one that a newer revision replaced does not.
 */
export function isReachable(revision: Revision): boolean {
  switch (revision.metadata.labels?.[LABEL.routingState]) {
    case "active":
      return true;
    case "reserve":
      return false;
    default:
      return !["ResourcesAvailable", "ContainerHealthy"].some(
        type => findCondition(revision, type)?.status === "False",
      );
  }
}

/** Where the revision stood when an earlier leader decided: its Active condition. A new one is activating. */
export function lifecycleFromStatus(revision: Revision, nowMs: number): LifecycleState {
  const active = findCondition(revision, "Active");
  if (active === undefined) return initialLifecycleState(nowMs);
  const sinceMs = active.lastTransitionTime === undefined ? nowMs : new Date(active.lastTransitionTime).getTime();
  switch (active.status) {
    case "True":
      return { activity: { phase: "active", sinceMs }, initialScaleReached: true };
    case "False": {
      const reason = active.reason === "TimedOut" ? "timed-out" : "no-traffic";
      return { activity: { phase: "inactive", sinceMs, reason }, initialScaleReached: reason === "no-traffic" };
    }
    default:
      return {
        activity: { phase: "activating", sinceMs },
        initialScaleReached: findCondition(revision, "Ready")?.status === "True",
      };
  }
}
