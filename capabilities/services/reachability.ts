import { findCondition } from "../../api/conditions.ts";
import { LABEL, type RoutingState } from "../../api/labels.ts";
import type { Revision } from "../../api/serving/v1/types.ts";

export const routingState = (revision: Pick<Revision, "metadata">): RoutingState | undefined =>
  revision.metadata.labels?.[LABEL.routingState] as RoutingState | undefined;

/**
 * False when no Route leads to the revision: then neither its minimum nor its initial scale holds pods up, and it goes to
 * zero at once. One that no Route took yet counts as reachable until its pods are known to fail. For the autoscaler.
 */
export function isReachable(revision: Pick<Revision, "metadata" | "status">): boolean {
  switch (routingState(revision)) {
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
