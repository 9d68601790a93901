/**
 * Every annotation a user may set, in one list: validation, parsing and the reference page are made from it. Keys are in
 * order of precedence, the spelling to write first.
 */

/** Where the annotation is set: `template` is spec.template.metadata of a Service or Configuration (and a Revision). */
export type AnnotationPlace = "template" | "service" | "namespace" | "domainmapping";

export interface AnnotationDefinition {
  readonly keys: readonly [string, ...string[]];
  readonly on: readonly AnnotationPlace[];
  /** What the value looks like, with its bounds. */
  readonly value: string;
  /** What holds without the annotation. */
  readonly default: string;
  readonly description: string;
}

const KNATIVE_AUTOSCALING = "autoscaling.knative.dev/";
const FAIRWAY_AUTOSCALING = "autoscaling.fairway.dev/";
const FAIRWAY_FLOW_CONTROL = "flowcontrol.fairway.dev/";
const SERVING = "serving.knative.dev/";
const QUEUE_SIDECAR = "queue.sidecar.serving.knative.dev/";
const CLOUD_RUN = "run.googleapis.com/";

export const ANNOTATION_GROUP = {
  knativeAutoscaling: KNATIVE_AUTOSCALING,
  fairwayAutoscaling: FAIRWAY_AUTOSCALING,
  fairwayFlowControl: FAIRWAY_FLOW_CONTROL,
  cloudRun: CLOUD_RUN,
} as const;

/** Values of `autoscaling.knative.dev/class`. */
export const AUTOSCALING_CLASS = {
  kpa: "kpa.autoscaling.knative.dev",
  cloudRun: "cloudrun.autoscaling.fairway.dev",
  manual: "manual.autoscaling.fairway.dev",
} as const;
export type AutoscalingClass = (typeof AUTOSCALING_CLASS)[keyof typeof AUTOSCALING_CLASS];

const knative = (
  kebab: string,
  camel: string | undefined,
  value: string,
  defaults: string,
  description: string,
): AnnotationDefinition => ({
  keys:
    camel === undefined
      ? [`${KNATIVE_AUTOSCALING}${kebab}`]
      : [`${KNATIVE_AUTOSCALING}${kebab}`, `${KNATIVE_AUTOSCALING}${camel}`],
  on: ["template"],
  value,
  default: defaults,
  description,
});

/** Knative's autoscaling annotations. */
export const AUTOSCALING = {
  class: knative(
    "class",
    undefined,
    Object.values(AUTOSCALING_CLASS)
      .map(name => `\`${name}\``)
      .join(", "),
    "`pod-autoscaler-class` of config-autoscaler",
    "The policy that decides the number of pods.",
  ),
  metric: knative(
    "metric",
    undefined,
    "`concurrency` or `rps`",
    "`concurrency`",
    "What the kpa class scales on: requests in progress, or requests per second.",
  ),
  target: knative(
    "target",
    undefined,
    "number, 0.01 or more",
    "containerConcurrency, else the config's default for the metric",
    "Value of the metric that one pod should carry.",
  ),
  targetUtilization: knative(
    "target-utilization-percentage",
    "targetUtilizationPercentage",
    "number, 1..100",
    "`container-concurrency-target-percentage`",
    "Share of the target that is aimed at.",
  ),
  targetBurstCapacity: knative(
    "target-burst-capacity",
    "targetBurstCapacity",
    "-1, 0 or a positive number",
    "`target-burst-capacity`",
    "Burst the ready pods must be able to take before the gateway leaves the path; -1: it always stays; 0: only at zero.",
  ),
  window: knative(
    "window",
    undefined,
    "duration, 6s..1h, whole seconds",
    "`stable-window`",
    "Stable window over which the metric is averaged.",
  ),
  panicWindowPercentage: knative(
    "panic-window-percentage",
    "panicWindowPercentage",
    "number, 1..100",
    "`panic-window-percentage`",
    "Panic window as a share of the stable window.",
  ),
  panicThresholdPercentage: knative(
    "panic-threshold-percentage",
    "panicThresholdPercentage",
    "number, 110..1000",
    "`panic-threshold-percentage`",
    "Load over the panic window, relative to what the ready pods should carry, at which panic begins.",
  ),
  minScale: knative(
    "min-scale",
    "minScale",
    "integer, 0 or more",
    "`min-scale`",
    "Fewest pods of a reachable revision.",
  ),
  maxScale: knative(
    "max-scale",
    "maxScale",
    "integer, 0 or more; 0 is no limit",
    "`max-scale`",
    "Most pods of the revision; at most `max-scale-limit` where that is set.",
  ),
  initialScale: knative(
    "initial-scale",
    "initialScale",
    "integer, 1 or more; 0 where `allow-zero-initial-scale` is true",
    "`initial-scale`",
    "Pods that must have been ready once before the revision is Ready.",
  ),
  activationScale: knative(
    "activation-scale",
    undefined,
    "integer, 2 or more, between min and max scale",
    "none",
    "Pods started at once when the revision leaves zero.",
  ),
  scaleDownDelay: knative(
    "scale-down-delay",
    "scaleDownDelay",
    "duration, 0s..1h, whole seconds",
    "`scale-down-delay`",
    "How long the load must stay lower before pods are removed.",
  ),
  scaleToZeroPodRetentionPeriod: knative(
    "scale-to-zero-pod-retention-period",
    "scaleToZeroPodRetentionPeriod",
    "duration, 0s..1h",
    "`scale-to-zero-pod-retention-period`",
    "How long the last pod stays after the decision for zero.",
  ),
  metricAggregationAlgorithm: knative(
    "metric-aggregation-algorithm",
    "metricAggregationAlgorithm",
    "`linear` or `weighted-exponential`",
    "`linear`",
    "How the buckets of the windows are averaged.",
  ),
} as const satisfies Record<string, AnnotationDefinition>;

const fairway = (
  key: string,
  on: readonly AnnotationPlace[],
  value: string,
  defaults: string,
  description: string,
): AnnotationDefinition => ({ keys: [`${FAIRWAY_AUTOSCALING}${key}`], on, value, default: defaults, description });

const BOTH: readonly AnnotationPlace[] = ["template", "service"];

/**
 * Fairway's own autoscaling annotations. Those allowed on the service itself change a running service in place: no new
 * revision is made, and they win over the template's.
 */
export const FAIRWAY_SCALING = {
  minScale: fairway(
    "min-scale",
    ["service"],
    "integer, 0 or more",
    "none",
    "Fewest pods of all reachable revisions together, changed without a new revision. Cloud Run's service-level minimum.",
  ),
  maxScale: fairway(
    "max-scale",
    ["service"],
    "integer, 0 or more; 0 is no limit",
    "none",
    "Most pods of all revisions with traffic together, changed without a new revision. Cloud Run's service-level maximum.",
  ),
  class: fairway(
    "class",
    ["service"],
    "as `autoscaling.knative.dev/class`",
    "the template's",
    "The policy that decides the number of pods of all revisions, changed without a new revision.",
  ),
  target: fairway(
    "target",
    ["service"],
    "number, 0.01 or more",
    "the template's",
    "kpa class: value of the metric that one pod should carry, changed without a new revision.",
  ),
  targetUtilization: fairway(
    "target-utilization-percentage",
    ["service"],
    "number, 1..100",
    "the template's",
    "kpa class: share of the target that is aimed at, changed without a new revision.",
  ),
  manualInstanceCount: fairway(
    "manual-instance-count",
    BOTH,
    "integer, 0 or more",
    "1",
    "Number of pods of the manual class.",
  ),
  cpuTargetPercentage: fairway(
    "cpu-target-percentage",
    BOTH,
    "number, 10..95, or `disabled`",
    "60, without scaling controls",
    "cloudrun class: CPU use to aim at. Setting this or the next turns scaling controls on.",
  ),
  concurrencyTargetPercentage: fairway(
    "concurrency-target-percentage",
    BOTH,
    "number, 10..95, or `disabled`",
    "60, without scaling controls",
    "cloudrun class: share of the pods' maximum concurrency to aim at.",
  ),
  cpuAlwaysAllocated: fairway(
    "cpu-always-allocated",
    BOTH,
    "`true` or `false`",
    "`false`",
    "cloudrun class: instance-based billing. Only a request scales from zero, and CPU use never keeps the last pod.",
  ),
  adaptiveConcurrency: fairway(
    "adaptive-concurrency",
    BOTH,
    "`true` or `false`",
    "`true`",
    "cloudrun class: lower a pod's maximum concurrency while its CPU is saturated. Needs `share-process-namespace`.",
  ),
  shareProcessNamespace: fairway(
    "share-process-namespace",
    ["template"],
    "`true` or `false`",
    "`false`",
    "The pod's containers share one process namespace, so that the CPU they use is known each second. Containers then see each other's processes.",
  ),
  idleTimeout: fairway(
    "idle-timeout",
    BOTH,
    "duration, 0s..1h",
    "15m",
    "cloudrun class: how long an idle pod is kept.",
  ),
  maxScaleOvershoot: fairway(
    "max-scale-overshoot",
    BOTH,
    "`true` or `false`",
    "`false`",
    "cloudrun class: replacements and fast surges may exceed max scale for up to 15 minutes.",
  ),
} as const satisfies Record<string, AnnotationDefinition>;

const flow = (key: string, value: string, defaults: string, description: string): AnnotationDefinition => ({
  keys: [`${FAIRWAY_FLOW_CONTROL}${key}`],
  on: BOTH,
  value,
  default: defaults,
  description,
});

/** How requests wait for a place at the revision, and how much of the gateway they take. */
export const FLOW_CONTROL = {
  queueLength: flow(
    "queue-length",
    "integer, 0..100000",
    "1000",
    "Most requests that may wait for a place at the revision, at one gateway; more are answered 429.",
  ),
  maxWait: flow(
    "max-wait",
    "duration, 0s..1h",
    "the policy's: Cloud Run's pending rule, else the revision's timeoutSeconds",
    "Longest wait for a place; then 429.",
  ),
  queuePolicy: flow(
    "queue-policy",
    "`fair` or `fifo`",
    "`fair`",
    "Order in which waiting requests get a place: by priority level and fair among flows, or as they came.",
  ),
  width: flow(
    "width",
    "integer, 1..100",
    "1",
    "Seats one request of the service takes in its priority level at the gateway.",
  ),
} as const satisfies Record<string, AnnotationDefinition>;

const cloudRun = (
  key: string,
  on: readonly AnnotationPlace[],
  value: string,
  defaults: string,
  description: string,
): AnnotationDefinition => ({ keys: [`${CLOUD_RUN}${key}`], on, value, default: defaults, description });

/** Annotations of Cloud Run's exported YAML that mean something here. All others of `run.googleapis.com/` are ignored. */
export const CLOUD_RUN_ANNOTATION = {
  minScale: cloudRun("minScale", ["service"], "integer, 0 or more", "none", "As `autoscaling.fairway.dev/min-scale`."),
  maxScale: cloudRun("maxScale", ["service"], "integer, 0 or more", "none", "As `autoscaling.fairway.dev/max-scale`."),
  scalingMode: cloudRun(
    "scalingMode",
    ["service"],
    "`automatic` or `manual`",
    "`automatic`",
    "`manual` chooses the manual class for all revisions of the service.",
  ),
  manualInstanceCount: cloudRun(
    "manualInstanceCount",
    ["service"],
    "integer, 0 or more",
    "none",
    "As `autoscaling.fairway.dev/manual-instance-count`.",
  ),
  cpuThrottling: cloudRun(
    "cpu-throttling",
    ["template"],
    "`true` or `false`",
    "`true`",
    '`false` means `autoscaling.fairway.dev/cpu-always-allocated: "true"`.',
  ),
  ingress: cloudRun(
    "ingress",
    ["service"],
    "`all`, `internal` or `internal-and-cloud-load-balancing`",
    "`all`",
    "`internal` makes the service cluster-local, unless a visibility label says otherwise.",
  ),
} as const satisfies Record<string, AnnotationDefinition>;

const resource = (name: string, description: string): AnnotationDefinition => ({
  keys: [`${QUEUE_SIDECAR}${name}`],
  on: ["template"],
  value: "quantity",
  default: "config-deployment",
  description,
});

/** Knative Serving's other annotations. */
export const SERVING_ANNOTATION = {
  rolloutDuration: {
    keys: [`${SERVING}rollout-duration`, `${SERVING}rolloutDuration`],
    on: ["service"],
    value: "duration, 0s or more, whole seconds",
    default: "`rollout-duration` of config-network",
    description: "Checked and kept for compatibility; traffic moves at once.",
  },
  progressDeadline: {
    keys: [`${SERVING}progress-deadline`],
    on: ["template"],
    value: "duration, 0s or more, whole seconds",
    default: "`progress-deadline` of config-deployment",
    description: "How long the revision's Deployment may make no progress before the revision has failed.",
  },
  queueSidecarResourcePercentage: {
    keys: [`${QUEUE_SIDECAR}resource-percentage`, `${QUEUE_SIDECAR}resourcePercentage`],
    on: ["template"],
    value: "number, 0.1..100",
    default: "none",
    description: "Deprecated: the queue-proxy's resources as a share of the user container's. Use the next ones.",
  },
  queueSidecarCpuRequest: resource("cpu-resource-request", "CPU request of the queue-proxy."),
  queueSidecarCpuLimit: resource("cpu-resource-limit", "CPU limit of the queue-proxy."),
  queueSidecarMemoryRequest: resource("memory-resource-request", "Memory request of the queue-proxy."),
  queueSidecarMemoryLimit: resource("memory-resource-limit", "Memory limit of the queue-proxy."),
  queueSidecarEphemeralStorageRequest: resource(
    "ephemeral-storage-resource-request",
    "Ephemeral storage request of the queue-proxy.",
  ),
  queueSidecarEphemeralStorageLimit: resource(
    "ephemeral-storage-resource-limit",
    "Ephemeral storage limit of the queue-proxy.",
  ),
} as const satisfies Record<string, AnnotationDefinition>;

export type Annotations = Readonly<Record<string, string>>;

/** The annotation by the first of its keys that is set, with that key. */
export function getAnnotation(
  annotations: Annotations | undefined,
  definition: AnnotationDefinition,
): { readonly key: string; readonly value: string } | undefined {
  if (annotations === undefined) return undefined;
  for (const key of definition.keys) {
    const value = annotations[key];
    if (value !== undefined) return { key, value };
  }
  return undefined;
}
