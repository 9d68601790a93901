import type { Revision } from "../../api/serving/v1/types.ts";

/** In a Revision's `status.annotations`: its initial scale was ready once. From then on it counts no more. */
export const INITIAL_SCALE_REACHED = "autoscaling.fairway.dev/initial-scale-reached";

/** What survives a restart of the operator. Also read by the autoscaler when it sees a revision for the first time. */
export const initialScaleReached = (revision: Pick<Revision, "status">): boolean =>
  revision.status?.annotations?.[INITIAL_SCALE_REACHED] === "true";
