import type { V1Pod } from "@kubernetes/client-node";
import { findCondition } from "../../api/conditions.ts";
import type { Revision } from "../../api/serving/v1/types.ts";
import { initialLifecycleState, type LifecycleState } from "../../core/autoscaling/lifecycle.ts";
import type { PodView } from "../../core/autoscaling/observe-revision.ts";
import { initialScaleReached } from "../services/initial-scale.ts";

/** A pod that is not being deleted, with its address once it has one. */
export interface LivePod extends PodView {
  readonly ip: string | undefined;
  readonly hostIp: string | undefined;
}

/** A pod that takes requests now. */
export interface ReadyPod {
  readonly name: string;
  readonly ip: string;
  /** Of its node. */
  readonly hostIp: string | undefined;
  readonly startedMs: number;
}

/** All pods but those that are being deleted. */
export function livePods(pods: readonly V1Pod[]): readonly LivePod[] {
  return pods.flatMap(({ metadata, status }) => {
    const { name, creationTimestamp, deletionTimestamp } = metadata ?? {};
    if (name === undefined || deletionTimestamp !== undefined) return [];
    const ready = status?.conditions?.find(condition => condition.type === "Ready" && condition.status === "True");
    return [
      {
        name,
        ip: status?.podIP,
        hostIp: status?.hostIP,
        createdMs: timeOf(creationTimestamp),
        readySinceMs: ready === undefined ? undefined : timeOf(ready.lastTransitionTime),
      },
    ];
  });
}

export function readyPods(pods: readonly LivePod[]): readonly ReadyPod[] {
  return pods.flatMap(({ name, ip, hostIp, createdMs, readySinceMs }) =>
    ip === undefined || readySinceMs === undefined ? [] : [{ name, ip, hostIp, startedMs: createdMs }],
  );
}

/** Milliseconds since the epoch; 0 when there is no time. Objects in the caches carry times as texts. */
const timeOf = (time: Date | string | undefined): number => (time === undefined ? 0 : new Date(time).getTime());

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
