import type { PathMode } from "../../core/autoscaling/lifecycle.ts";
import type { ObjectKey } from "../runtime/types.ts";

/** What the autoscaler knows of a revision; the Revision's status and public endpoints show it. */
export interface ScalingStatus {
  readonly activity: /** Pods are wanted and not enough are ready. */
  | { readonly phase: "activating" }
    | { readonly phase: "active" }
    | { readonly phase: "inactive"; readonly reason: "no-traffic" | "timed-out" };
  /** Pods it heads for; undefined while it has not decided. */
  readonly wanted: number | undefined;
  readonly mode: PathMode;
  /** Pods to have ready before traffic moves to the revision; undefined once they were. */
  readonly readyBeforeTraffic?: number | undefined;
  /** Why the number is what it is, when something bounds it that a user can change (at max scale, no data). */
  readonly note?: ScalingNote | undefined;
}

/** As a condition has it. Holds as long as its cause; numbers that change all the time are not in it. */
export interface ScalingNote {
  readonly reason: string;
  readonly message: string;
}

/**
 * The autoscaler, as seen from the reconciler of revisions, which asks at each run; never blocks. `undefined` for a revision it
 * has not looked at yet: the reconciler then goes by the Deployment alone.
 */
export interface RevisionScaling {
  get(revision: ObjectKey): ScalingStatus | undefined;
  /** `listener` hears the revisions whose answer changed; it only enqueues. */
  onChange(listener: (revision: ObjectKey, change: ScalingChange) => void): void;
}

/** `path`: of something on which the way of requests depends. `report`: only of what the status tells. */
export type ScalingChange = "path" | "report";
