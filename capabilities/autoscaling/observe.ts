import type { V1Pod } from "@kubernetes/client-node";
import { findCondition } from "../../api/conditions.ts";
import type { Revision } from "../../api/serving/v1/types.ts";
import { initialLifecycleState, type LifecycleState } from "../../core/autoscaling/lifecycle.ts";
import { initialScaleReached } from "../services/initial-scale.ts";

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

/** Where the revision stood when an earlier leader decided: its Active condition. A new one is activating. */
export function lifecycleFromStatus(revision: Revision, nowMs: number): LifecycleState {
  const active = findCondition(revision, "Active");
  const reached = initialScaleReached(revision);
  if (active === undefined) return { ...initialLifecycleState(nowMs), initialScaleReached: reached };
  const sinceMs = active.lastTransitionTime === undefined ? nowMs : new Date(active.lastTransitionTime).getTime();
  const activity = (): LifecycleState["activity"] => {
    switch (active.status) {
      case "True":
        return { phase: "active", sinceMs };
      case "False":
        return { phase: "inactive", sinceMs, reason: active.reason === "TimedOut" ? "timed-out" : "no-traffic" };
      default:
        return { phase: "activating", sinceMs };
    }
  };
  return { activity: activity(), initialScaleReached: reached };
}
