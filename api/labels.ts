/** Label keys, annotation keys that carry state, and field managers. Keys a user sets: `annotations.ts`. */

const SERVING = "serving.knative.dev";

/** Labels under `serving.knative.dev/`, and the few others that are part of the contract. */
export const LABEL = {
  service: `${SERVING}/service`,
  serviceUid: `${SERVING}/serviceUID`,
  configuration: `${SERVING}/configuration`,
  configurationUid: `${SERVING}/configurationUID`,
  configurationGeneration: `${SERVING}/configurationGeneration`,
  route: `${SERVING}/route`,
  revision: `${SERVING}/revision`,
  revisionUid: `${SERVING}/revisionUID`,
  routingState: `${SERVING}/routingState`,
  domainMappingUid: `${SERVING}/domainMappingUID`,
  domainMappingNamespace: `${SERVING}/domainMappingNamespace`,
  /** `cluster-local` keeps a Service or Route off the external listener. */
  visibility: "networking.knative.dev/visibility",
  /** `app=<revision>` on pods. */
  app: "app",
  appName: "app.kubernetes.io/name",
  appComponent: "app.kubernetes.io/component",
  appManagedBy: "app.kubernetes.io/managed-by",
  /** Of EndpointSlices: the Service they belong to, and who writes them. */
  endpointSliceService: "kubernetes.io/service-name",
  endpointSliceManagedBy: "endpointslice.kubernetes.io/managed-by",
} as const;

export const VISIBILITY_CLUSTER_LOCAL = "cluster-local";

/** Annotations by which the controllers tell each other and the user what happened. */
export const STATE_ANNOTATION = {
  creator: `${SERVING}/creator`,
  lastModifier: `${SERVING}/lastModifier`,
  /** Comma-separated names of the Routes that reference a Revision or Configuration. */
  routes: `${SERVING}/routes`,
  routingStateModified: `${SERVING}/routingStateModified`,
  lastPinned: `${SERVING}/lastPinned`,
  /** `"true"`: the garbage collector leaves the Revision alone. */
  noGc: `${SERVING}/no-gc`,
} as const;

/** Values of the label `routingState`. */
export type RoutingState = "pending" | "active" | "reserve";

export const FIELD_MANAGER = "fairway";
/** Writes `.spec.replicas` of revisions' Deployments and nothing else. */
export const AUTOSCALER_FIELD_MANAGER = "fairway-autoscaler";

/**
 * Labels and annotations that name the object's place in a GitOps tool or hold kubectl's own state: never copied from a
 * parent to its children, or the tool would take the children for its own and prune them.
 */
const TRACKING_KEYS: ReadonlySet<string> = new Set([
  "kubectl.kubernetes.io/last-applied-configuration",
  "kubectl.kubernetes.io/restartedAt",
  "app.kubernetes.io/instance",
  "app.kubernetes.io/managed-by",
  "meta.helm.sh/release-name",
  "meta.helm.sh/release-namespace",
  "deployment.kubernetes.io/revision",
]);
const TRACKING_PREFIXES = [
  "argocd.argoproj.io/",
  "argoproj.io/",
  "kustomize.toolkit.fluxcd.io/",
  "helm.toolkit.fluxcd.io/",
  "config.kubernetes.io/",
  "config.k8s.io/",
  "client.lifecycle.config.k8s.io/",
];

export const isTrackingKey = (key: string): boolean =>
  TRACKING_KEYS.has(key) || TRACKING_PREFIXES.some(prefix => key.startsWith(prefix));

/** The labels or annotations of a parent that a child may carry too. */
export function withoutTracking(entries: Readonly<Record<string, string>> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(entries ?? {}).filter(([key]) => !isTrackingKey(key)));
}
