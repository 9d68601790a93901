import {
  ANNOTATION_GROUP,
  AUTOSCALING,
  AUTOSCALING_CLASS,
  CLOUD_RUN_ANNOTATION,
  FAIRWAY_SCALING,
  FLOW_CONTROL,
  getAnnotation,
  SERVING_ANNOTATION,
} from "../../annotations.ts";
import type { AnnotationDefinition, AnnotationPlace, Annotations } from "../../annotations.ts";
import type { AutoscalerConfig } from "../../config/autoscaler.ts";
import { asWarning, atKey, generic, invalidKeyName, invalidValue, outOfBounds, SELF } from "../../meta/field-error.ts";
import type { FieldErrors } from "../../meta/field-error.ts";
import {
  formatDurationMs,
  INT32_MAX,
  INT32_MIN,
  parseBool,
  parseDurationMs,
  parseFloat64,
  parseInteger,
} from "../../meta/go-format.ts";
import { parseQuantity } from "../../meta/quantity.ts";

/**
 * Rules for annotations; paths begin at the map of annotations. Those of Knative's keys are the ones of its
 * autoscaling/annotation_validation.go, with two differences: a class that nobody here implements is refused, and a key of
 * the group that does not exist is warned of.
 */

/** The annotations of a Revision. */
export function validateRevisionAnnotations(annotations: Annotations, config: AutoscalerConfig): FieldErrors {
  return [...validateAutoscaling(annotations, config), ...validateFairway(annotations, "template")];
}

/** The annotations of spec.template.metadata. */
export function validateTemplateAnnotations(annotations: Annotations, config: AutoscalerConfig): FieldErrors {
  return [
    ...validateRevisionAnnotations(annotations, config),
    ...validateNetworking(annotations),
    ...validateQueueSidecar(annotations),
    ...check(annotations, SERVING_ANNOTATION.progressDeadline, wholeSecondsOf("progress-deadline")),
  ];
}

/** The annotations of a Service, Configuration or Route itself. */
export function validateServiceAnnotations(annotations: Annotations): FieldErrors {
  const details = `autoscaling annotations must be put under "spec.template.metadata.annotations" to work`;
  const misplaced = Object.keys(annotations)
    .filter(key => key.startsWith("autoscaling.knative.dev"))
    .map(key => invalidKeyName(key, SELF, details));
  return [...misplaced, ...validateFairway(annotations, "service"), ...validateCloudRun(annotations)];
}

/** How long a rollout takes: on a Service or a Route. */
export const validateRolloutDuration = (annotations: Annotations): FieldErrors =>
  check(annotations, SERVING_ANNOTATION.rolloutDuration, wholeSecondsOf("rollout-duration"));

type Check = (value: string, key: string) => FieldErrors;

function check(annotations: Annotations, definition: AnnotationDefinition, rule: Check): FieldErrors {
  const found = getAnnotation(annotations, definition);
  return found === undefined ? [] : rule(found.value, found.key);
}

function validateAutoscaling(annotations: Annotations, config: AutoscalerConfig): FieldErrors {
  const known = new Set<string>(Object.values(AUTOSCALING).flatMap(definition => definition.keys));
  const unknown = Object.keys(annotations)
    .filter(key => key.startsWith(ANNOTATION_GROUP.knativeAutoscaling) && !known.has(key))
    .map(key => asWarning(invalidKeyName(key, SELF, "no such autoscaling annotation; it has no effect")));
  return [
    ...unknown,
    ...check(annotations, AUTOSCALING.class, oneOf(...Object.values(AUTOSCALING_CLASS))),
    ...validateScaleBounds(annotations, config),
    ...check(annotations, AUTOSCALING.panicWindowPercentage, floatIn(1, 100)),
    ...check(annotations, AUTOSCALING.panicThresholdPercentage, floatIn(110, 1000)),
    ...check(annotations, AUTOSCALING.target, target),
    ...check(annotations, AUTOSCALING.targetUtilization, floatIn(1, 100)),
    ...check(annotations, AUTOSCALING.targetBurstCapacity, burstCapacity),
    ...check(annotations, AUTOSCALING.window, durationIn(WINDOW_MIN_MS, HOUR_MS, { wholeSeconds: true })),
    ...check(annotations, AUTOSCALING.scaleToZeroPodRetentionPeriod, durationIn(0, HOUR_MS)),
    ...check(annotations, AUTOSCALING.scaleDownDelay, durationIn(0, HOUR_MS, { wholeSeconds: true })),
    ...validateMetric(annotations, config),
    ...check(annotations, AUTOSCALING.metricAggregationAlgorithm, aggregation),
    ...check(annotations, AUTOSCALING.initialScale, initialScale(config)),
  ];
}

const HOUR_MS = 3_600_000;
const WINDOW_MIN_MS = 6000;
const TARGET_MIN = 0.01;

const scaleOf = (annotations: Annotations, definition: AnnotationDefinition): number => {
  const value = parseInteger(getAnnotation(annotations, definition)?.value ?? "0", 0, INT32_MAX);
  return typeof value === "number" ? value : 0;
};

function validateScaleBounds(annotations: Annotations, { maxScaleLimit }: AutoscalerConfig): FieldErrors {
  const min = scaleOf(annotations, AUTOSCALING.minScale);
  const max = scaleOf(annotations, AUTOSCALING.maxScale);
  const [maxKey, minKey] = [AUTOSCALING.maxScale.keys[0], AUTOSCALING.minScale.keys[0]];
  return [
    ...check(annotations, AUTOSCALING.minScale, count),
    ...check(annotations, AUTOSCALING.maxScale, count),
    ...(max !== 0 && max < min ? [generic(`max-scale=${max} is less than min-scale=${min}`, [maxKey, minKey])] : []),
    ...check(annotations, AUTOSCALING.maxScale, (_, key) => {
      if (maxScaleLimit === 0) return [];
      if (max > maxScaleLimit) return [outOfBounds(max, 1, maxScaleLimit, key)];
      return max === 0 ? [generic(`max-scale=0 (unlimited), must be less than ${maxScaleLimit}`, [key])] : [];
    }),
    ...check(annotations, AUTOSCALING.activationScale, (value, key) => {
      const activation = parseInteger(value, INT32_MIN, INT32_MAX);
      if (typeof activation !== "number") return [invalidValue(value, key)];
      if (min > activation) return [generic(`min-scale=${min} is greater than activation-scale=${activation}`, [key])];
      if (max !== 0 && max < activation) {
        return [generic(`max-scale=${max} is less than activation-scale=${activation}`, [key])];
      }
      return activation < 2 ? [generic(`activation-scale=${activation} must be greater than 1`, [key])] : [];
    }),
  ];
}

const count: Check = (value, key) => {
  const parsed = parseInteger(value, 0, INT32_MAX);
  if (parsed === "range") return [outOfBounds(value, 0, INT32_MAX, key)];
  return parsed === undefined ? [invalidValue(value, key)] : [];
};

const integerIn =
  (min: number, max: number): Check =>
  (value, key) => {
    const parsed = parseInteger(value, min, max);
    if (parsed === "range") return [outOfBounds(value, min, max, key)];
    return parsed === undefined ? [invalidValue(value, key)] : [];
  };

const floatIn =
  (min: number, max: number): Check =>
  (value, key) => {
    const parsed = parseFloat64(value);
    if (parsed === undefined) return [invalidValue(value, key)];
    return parsed < min || parsed > max ? [outOfBounds(value, min, max, key)] : [];
  };

const durationIn =
  (minMs: number, maxMs: number, { wholeSeconds = false } = {}): Check =>
  (value, key) => {
    const ms = parseDurationMs(value);
    if (ms === undefined) return [invalidValue(value, key)];
    if (ms < minMs || ms > maxMs) return [outOfBounds(value, formatDurationMs(minMs), formatDurationMs(maxMs), key)];
    return wholeSeconds && ms % 1000 !== 0 ? [generic("must be specified with at most second precision", [key])] : [];
  };

const oneOf =
  (...words: string[]): Check =>
  (value, key) =>
    words.includes(value) ? [] : [invalidValue(value, key, `must be one of: ${words.join(", ")}`)];

const bool: Check = (value, key) => (parseBool(value) === undefined ? [invalidValue(value, key)] : []);

const target: Check = (value, key) => {
  const parsed = parseFloat64(value);
  if (parsed === undefined) return [invalidValue(value, key)];
  return parsed < TARGET_MIN ? [generic(`target ${value} should be at least ${TARGET_MIN}`, [key])] : [];
};

const burstCapacity: Check = (value, key) => {
  const parsed = parseFloat64(value);
  return parsed === undefined || (parsed < 0 && parsed !== -1) ? [invalidValue(value, key)] : [];
};

const aggregation: Check = (value, key) =>
  ["", "linear", "weighted-exponential", "weightedExponential"].includes(value) ? [] : [invalidValue(value, key)];

const initialScale =
  ({ allowZeroInitialScale }: AutoscalerConfig): Check =>
  (value, key) => {
    const scale = parseInteger(value, INT32_MIN, INT32_MAX);
    if (typeof scale !== "number") return [invalidValue(value, key)];
    if (scale < 0) return [invalidValue(value, `${key} must be greater than 0`)];
    return scale === 0 && !allowZeroInitialScale ? [invalidValue(value, `${key}=0 not allowed by cluster`)] : [];
  };

/** The metric belongs to the kpa class; other classes ignore it. */
function validateMetric(annotations: Annotations, config: AutoscalerConfig): FieldErrors {
  const policy = getAnnotation(annotations, AUTOSCALING.class)?.value ?? config.podAutoscalerClass;
  if (policy !== AUTOSCALING_CLASS.kpa) return [];
  return check(annotations, AUTOSCALING.metric, (value, key) =>
    value === "concurrency" || value === "rps" ? [] : [invalidValue(value, key)],
  );
}

const driver: Check = (value, key) => (value === "disabled" ? [] : floatIn(10, 95)(value, key));

const FAIRWAY_RULES: readonly (readonly [AnnotationDefinition, Check])[] = [
  [FAIRWAY_SCALING.minScale, count],
  [FAIRWAY_SCALING.maxScale, count],
  [FAIRWAY_SCALING.class, oneOf(...Object.values(AUTOSCALING_CLASS))],
  [FAIRWAY_SCALING.target, target],
  [FAIRWAY_SCALING.targetUtilization, floatIn(1, 100)],
  [FAIRWAY_SCALING.manualInstanceCount, count],
  [FAIRWAY_SCALING.cpuTargetPercentage, driver],
  [FAIRWAY_SCALING.concurrencyTargetPercentage, driver],
  [FAIRWAY_SCALING.cpuAlwaysAllocated, bool],
  [FAIRWAY_SCALING.adaptiveConcurrency, bool],
  [FAIRWAY_SCALING.shareProcessNamespace, bool],
  [FAIRWAY_SCALING.idleTimeout, durationIn(0, HOUR_MS)],
  [FAIRWAY_SCALING.maxScaleOvershoot, bool],
  [FLOW_CONTROL.queueLength, integerIn(0, 100_000)],
  [FLOW_CONTROL.maxWait, durationIn(0, HOUR_MS)],
  [FLOW_CONTROL.queuePolicy, oneOf("fair", "fifo")],
  [FLOW_CONTROL.width, integerIn(1, 100)],
];

function validateFairway(annotations: Annotations, place: AnnotationPlace): FieldErrors {
  const here = FAIRWAY_RULES.filter(([definition]) => definition.on.includes(place));
  const known = new Set(here.flatMap(([definition]) => definition.keys));
  const elsewhere = new Set(FAIRWAY_RULES.flatMap(([definition]) => definition.keys));
  const unknown = Object.keys(annotations)
    .filter(key => FAIRWAY_GROUPS.some(group => key.startsWith(group)) && !known.has(key))
    .map(key =>
      elsewhere.has(key)
        ? invalidKeyName(key, SELF, `must be put on the Service's own "metadata.annotations" to work`)
        : invalidKeyName(key, SELF, "no such annotation"),
    );
  const min = scaleOf(annotations, FAIRWAY_SCALING.minScale);
  const max = scaleOf(annotations, FAIRWAY_SCALING.maxScale);
  return [
    ...unknown,
    ...here.flatMap(([definition, rule]) => check(annotations, definition, rule)),
    ...(place === "service" && max !== 0 && max < min
      ? [
          generic(`max-scale=${max} is less than min-scale=${min}`, [
            FAIRWAY_SCALING.maxScale.keys[0],
            FAIRWAY_SCALING.minScale.keys[0],
          ]),
        ]
      : []),
  ];
}

const FAIRWAY_GROUPS = [ANNOTATION_GROUP.fairwayAutoscaling, ANNOTATION_GROUP.fairwayFlowControl];

/** Of Cloud Run's annotations those that are read here must be readable. */
const validateCloudRun = (annotations: Annotations): FieldErrors => [
  ...check(annotations, CLOUD_RUN_ANNOTATION.minScale, count),
  ...check(annotations, CLOUD_RUN_ANNOTATION.maxScale, count),
  ...check(annotations, CLOUD_RUN_ANNOTATION.manualInstanceCount, count),
  ...check(annotations, CLOUD_RUN_ANNOTATION.scalingMode, oneOf("automatic", "manual")),
];

const NETWORKING_KEYS: ReadonlySet<string> = new Set(
  [
    "ingress.class",
    "ingress-class",
    "certificate.class",
    "certificate-class",
    "disableAutoTLS",
    "disable-auto-tls",
    "disable-external-domain-tls",
    "httpOption",
    "http-protocol",
  ].map(name => `networking.knative.dev/${name}`),
);

const validateNetworking = (annotations: Annotations): FieldErrors =>
  Object.keys(annotations)
    .filter(key => key.startsWith("networking.knative.dev") && !NETWORKING_KEYS.has(key))
    .map(key => invalidKeyName(key, SELF));

function validateQueueSidecar(annotations: Annotations): FieldErrors {
  const resources = [
    SERVING_ANNOTATION.queueSidecarCpuRequest,
    SERVING_ANNOTATION.queueSidecarCpuLimit,
    SERVING_ANNOTATION.queueSidecarMemoryRequest,
    SERVING_ANNOTATION.queueSidecarMemoryLimit,
    SERVING_ANNOTATION.queueSidecarEphemeralStorageRequest,
    SERVING_ANNOTATION.queueSidecarEphemeralStorageLimit,
  ];
  return [
    ...check(annotations, SERVING_ANNOTATION.queueSidecarResourcePercentage, (value, key) => [
      asWarning(generic("deprecated: set the queue-proxy's resources by their own annotations", [`[${key}]`])),
      ...atKey(key, resourcePercentage(value)),
    ]),
    ...resources.flatMap(definition =>
      check(annotations, definition, (value, key) =>
        parseQuantity(value) === undefined ? atKey(key, [invalidValue(value, SELF)]) : [],
      ),
    ),
  ];
}

function resourcePercentage(value: string): FieldErrors {
  const parsed = parseFloat64(value);
  if (parsed === undefined) return [invalidValue(value, SELF)];
  return parsed < 0.1 || parsed > 100 ? [outOfBounds(parsed, 0.1, 100, SELF)] : [];
}

const wholeSecondsOf =
  (name: string): Check =>
  (value, key) => {
    if (value === "") return [];
    const ms = parseDurationMs(value);
    if (ms === undefined) return [invalidValue(value, key)];
    if (ms % 1000 !== 0) return [generic(`${name}=${value} is not at second precision`, [key])];
    return ms < 0 ? [generic(`${name}=${value} must be positive`, [key])] : [];
  };
