import { LABEL, STATE_ANNOTATION, type RoutingState } from "../../../api/labels.ts";
import type { Revision } from "../../../api/serving/v1/types.ts";
import { routingState } from "../reachability.ts";
import { listOf } from "./route-references.ts";

export interface RoutingPatch {
  readonly labels?: Readonly<Record<string, string | null>>;
  readonly annotations: Readonly<Record<string, string | null>>;
}

export const carriedRoutes = (revision: Revision): readonly string[] =>
  listOf(revision.metadata.annotations?.[STATE_ANNOTATION.routes]);

/**
 * What a revision must say of its Routes, as a patch; undefined when it says so already. `active` with a Route, `reserve` when
 * it lost its last one; one that never had a Route stays `pending`. The time is that of the last change of state.
 */
export function routingPatch(revision: Revision, routes: readonly string[], now: string): RoutingPatch | undefined {
  const before = routingState(revision) ?? "pending";
  const state: RoutingState = routes.length > 0 ? "active" : before === "pending" ? "pending" : "reserve";
  const annotation = routes.length > 0 ? routes.join(",") : null;
  const stateChanges = state !== routingState(revision);
  const routesChange = annotation !== (revision.metadata.annotations?.[STATE_ANNOTATION.routes] ?? null);
  if (!stateChanges && !routesChange) return undefined;
  return {
    ...(stateChanges ? { labels: { [LABEL.routingState]: state } } : {}),
    annotations: {
      ...(routesChange ? { [STATE_ANNOTATION.routes]: annotation } : {}),
      ...(stateChanges ? { [STATE_ANNOTATION.routingStateModified]: now } : {}),
    },
  };
}
