import { LABEL, STATE_ANNOTATION, withoutTracking } from "../../../api/labels.ts";
import type { OwnerReference } from "../../../api/meta/object-meta.ts";
import { SERVING_API_VERSION, type Revision, type Route } from "../../../api/serving/v1/types.ts";
import type { KubeObject } from "../../runtime/types.ts";

type StringMap = Readonly<Record<string, string>>;

/** The reference by which Kubernetes deletes a child with its parent. */
export function controllerReference(owner: KubeObject, kind: string, apiVersion = SERVING_API_VERSION): OwnerReference {
  return {
    apiVersion,
    kind,
    name: owner.metadata?.name ?? "",
    uid: owner.metadata?.uid ?? "",
    controller: true,
    blockOwnerDeletion: true,
  };
}

export const isControlledBy = (object: KubeObject, owner: KubeObject): boolean =>
  object.metadata?.ownerReferences?.some(
    reference => reference.controller === true && reference.uid === owner.metadata?.uid,
  ) ?? false;

/** The member `annotations`, or none: the API server drops an empty map, and what it drops would look like a difference. */
export const annotated = (annotations: StringMap): { readonly annotations?: Record<string, string> } =>
  Object.keys(annotations).length > 0 ? { annotations: { ...annotations } } : {};

/** A variable with a text; an empty one has no member `value`, for the same reason. */
export const variable = (name: string, value: string): { readonly name: string; readonly value?: string } =>
  value === "" ? { name } : { name, value };

const omit = (entries: StringMap, drop: (key: string) => boolean): Record<string, string> =>
  Object.fromEntries(Object.entries(entries).filter(([key]) => !drop(key)));

/** What the routing says about a revision: it changes while the revision lives and must not restart its pods. */
const ROUTING_LABELS: ReadonlySet<string> = new Set([LABEL.route, LABEL.routingState]);
const ROUTING_ANNOTATIONS: ReadonlySet<string> = new Set([
  STATE_ANNOTATION.routes,
  STATE_ANNOTATION.routingStateModified,
  STATE_ANNOTATION.lastPinned,
  STATE_ANNOTATION.noGc,
]);

/** Labels of everything that belongs to a revision, its pods included. */
export function revisionChildLabels(revision: Revision): Record<string, string> {
  const name = revision.metadata.name ?? "";
  return {
    [LABEL.app]: name,
    ...omit(withoutTracking(revision.metadata.labels), key => ROUTING_LABELS.has(key)),
    [LABEL.revision]: name,
    [LABEL.revisionUid]: revision.metadata.uid ?? "",
  };
}

/** Annotations of everything that belongs to a revision. Those for the autoscaler stay on the revision alone. */
export function revisionChildAnnotations(revision: Revision): Record<string, string> {
  return omit(
    withoutTracking(revision.metadata.annotations),
    key => ROUTING_ANNOTATIONS.has(key) || key.startsWith("autoscaling."),
  );
}

export const revisionSelector = (revision: Revision): Record<string, string> => ({
  [LABEL.revisionUid]: revision.metadata.uid ?? "",
});

/** Labels of a Route's core Services; who sees a tag is said on the core Service itself and not inherited. */
export const routeChildLabels = (route: Route): Record<string, string> => ({
  ...omit(withoutTracking(route.metadata.labels), key => key === LABEL.visibility),
  [LABEL.route]: route.metadata.name ?? "",
});
