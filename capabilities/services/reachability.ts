import { LABEL, type RoutingState } from "../../api/labels.ts";
import type { Revision } from "../../api/serving/v1/types.ts";

export const routingState = (revision: Pick<Revision, "metadata">): RoutingState | undefined =>
  revision.metadata.labels?.[LABEL.routingState] as RoutingState | undefined;

/**
 * False when no Route leads to the revision and it was not just made: then neither its minimum nor its initial scale holds
 * pods up, and it goes to zero at once. For the autoscaler.
 */
export const isReachable = (revision: Pick<Revision, "metadata">): boolean => routingState(revision) !== "reserve";
