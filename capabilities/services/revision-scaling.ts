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
  /** Why the number is what it is, when something bounds it that a user can change (at max scale, no metrics). */
  readonly note?: string | undefined;
}

/**
 * The autoscaler, as seen from the reconciler of revisions, which asks at each run; never blocks. `undefined` for a revision it
 * has not looked at yet: the reconciler then goes by the Deployment alone.
 */
export interface RevisionScaling {
  get(revision: ObjectKey): ScalingStatus | undefined;
  /** `listener` hears the revisions whose answer changed; it only enqueues. */
  onChange(listener: (revision: ObjectKey) => void): void;
}
