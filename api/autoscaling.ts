import {
  AUTOSCALING,
  AUTOSCALING_CLASS,
  CLOUD_RUN_ANNOTATION,
  FAIRWAY_SCALING,
  FLOW_CONTROL,
  getAnnotation,
} from "./annotations.ts";
import type { AnnotationDefinition, Annotations, AutoscalingClass } from "./annotations.ts";
import { INT32_MAX, parseBool, parseDurationMs, parseFloat64, parseInteger } from "./meta/go-format.ts";

/**
 * Annotations as one record, for the autoscaler and the gateway. What admission would have refused (an object may be older
 * than the rule) counts as absent, as it does upstream; nothing here throws.
 */

/** Knative's knobs of one revision; absent: config-autoscaler's. */
export interface RevisionScaling {
  readonly metric?: "concurrency" | "rps";
  readonly aggregation?: "linear" | "weighted-exponential";
  readonly target?: number;
  /** Fraction, (0, 1]. */
  readonly targetUtilization?: number;
  /** -1: the gateway always stays in the path. */
  readonly targetBurstCapacity?: number;
  readonly windowMs?: number;
  readonly panicWindowPercentage?: number;
  readonly panicThresholdPercentage?: number;
  readonly minScale?: number;
  /** 0: no limit. */
  readonly maxScale?: number;
  readonly initialScale?: number;
  readonly activationScale?: number;
  readonly scaleDownDelayMs?: number;
  readonly scaleToZeroPodRetentionPeriodMs?: number;
}

/** A driver of the cloudrun class: scale on it with this target (a fraction), or not at all. */
export type DriverTarget = number | "disabled";

/** Knobs of the cloudrun class; absent: its defaults. */
export interface CloudRunScaling {
  /** One of the two set: scaling controls are on. */
  readonly cpuTarget?: DriverTarget;
  readonly concurrencyTarget?: DriverTarget;
  readonly cpuAlwaysAllocated?: boolean;
  readonly adaptiveConcurrency?: boolean;
  readonly idleTimeoutMs?: number;
  readonly maxScaleOvershoot?: boolean;
}

export interface RevisionAutoscaling {
  /** Absent: `podAutoscalerClass` of config-autoscaler. */
  readonly class?: AutoscalingClass;
  readonly scaling: RevisionScaling;
  readonly cloudRun: CloudRunScaling;
  /** Pods of the manual class. */
  readonly manualInstanceCount?: number;
}

/** What a Service's own annotations say; it holds for all its revisions without making a new one. */
export interface ServiceScaling {
  readonly minScale?: number;
  readonly maxScale?: number;
  /** Ours, or manual by `run.googleapis.com/scalingMode: manual`. */
  readonly class?: AutoscalingClass;
  readonly target?: number;
  /** Fraction, (0, 1]. */
  readonly targetUtilization?: number;
}

/**
 * The record of one revision. `service` are the annotations of its Service (or of the Route or Configuration, which carry
 * them too) and win over the revision's own for Fairway's keys. The service's bounds are shared by traffic:
 * `trafficPercent` is the revision's part, all when absent.
 */
export function parseRevisionAutoscaling(
  revision: Annotations | undefined,
  service?: Annotations,
  trafficPercent = 100,
): RevisionAutoscaling {
  const own = read(revision);
  const both = read({ ...revision, ...service });
  const serviceScaling = parseServiceScaling(service);
  const manualInstanceCount =
    both(FAIRWAY_SCALING.manualInstanceCount, count) ?? both(CLOUD_RUN_ANNOTATION.manualInstanceCount, count);
  const throttled = own(CLOUD_RUN_ANNOTATION.cpuThrottling, parseBool);
  return {
    ...defined({
      class: serviceScaling.class ?? own(AUTOSCALING.class, knownClass),
    }),
    scaling: defined({
      metric: own(AUTOSCALING.metric, oneOf("concurrency", "rps")),
      aggregation: own(AUTOSCALING.metricAggregationAlgorithm, aggregation),
      target: serviceScaling.target ?? own(AUTOSCALING.target, target),
      targetUtilization: serviceScaling.targetUtilization ?? own(AUTOSCALING.targetUtilization, percentageIn(1, 100)),
      targetBurstCapacity: own(AUTOSCALING.targetBurstCapacity, burstCapacity),
      windowMs: own(AUTOSCALING.window, durationIn(5000, HOUR_MS)),
      panicWindowPercentage: own(AUTOSCALING.panicWindowPercentage, floatIn(1, 100)),
      panicThresholdPercentage: own(AUTOSCALING.panicThresholdPercentage, floatIn(110, 1000)),
      minScale: largest(own(AUTOSCALING.minScale, count), shareOf(serviceScaling.minScale, trafficPercent)),
      maxScale: lowestLimit(own(AUTOSCALING.maxScale, count), shareOf(serviceScaling.maxScale, trafficPercent)),
      initialScale: own(AUTOSCALING.initialScale, count),
      activationScale: own(AUTOSCALING.activationScale, count),
      scaleDownDelayMs: own(AUTOSCALING.scaleDownDelay, durationIn(0, HOUR_MS)),
      scaleToZeroPodRetentionPeriodMs: own(AUTOSCALING.scaleToZeroPodRetentionPeriod, durationIn(0, HOUR_MS)),
    }),
    cloudRun: defined({
      cpuTarget: both(FAIRWAY_SCALING.cpuTargetPercentage, driverTarget),
      concurrencyTarget: both(FAIRWAY_SCALING.concurrencyTargetPercentage, driverTarget),
      cpuAlwaysAllocated:
        both(FAIRWAY_SCALING.cpuAlwaysAllocated, parseBool) ?? (throttled === undefined ? undefined : !throttled),
      adaptiveConcurrency: both(FAIRWAY_SCALING.adaptiveConcurrency, parseBool),
      idleTimeoutMs: both(FAIRWAY_SCALING.idleTimeout, durationIn(0, HOUR_MS)),
      maxScaleOvershoot: both(FAIRWAY_SCALING.maxScaleOvershoot, parseBool),
    }),
    ...defined({ manualInstanceCount }),
  };
}

/** Whether the pods share one process namespace, which tells the CPU of each second. */
export const sharesProcessNamespace = (revision: Annotations | undefined): boolean =>
  read(revision)(FAIRWAY_SCALING.shareProcessNamespace, parseBool) === true;

export function parseServiceScaling(service: Annotations | undefined): ServiceScaling {
  const own = read(service);
  return defined({
    minScale: own(FAIRWAY_SCALING.minScale, count) ?? own(CLOUD_RUN_ANNOTATION.minScale, count),
    maxScale: own(FAIRWAY_SCALING.maxScale, count) ?? own(CLOUD_RUN_ANNOTATION.maxScale, count),
    class:
      own(FAIRWAY_SCALING.class, knownClass) ??
      own(CLOUD_RUN_ANNOTATION.scalingMode, mode => (mode === "manual" ? AUTOSCALING_CLASS.manual : undefined)),
    target: own(FAIRWAY_SCALING.target, target),
    targetUtilization: own(FAIRWAY_SCALING.targetUtilization, percentageIn(1, 100)),
  });
}

/** How requests wait for a place at a revision. */
export interface Queueing {
  /** Most requests that wait, at one gateway. */
  readonly queueLength: number;
  /** Longest wait; absent: the scaling policy's. */
  readonly maxWaitMs?: number;
  readonly policy: "fair" | "fifo";
  /** Seats of one request at the gateway. */
  readonly width: number;
}

const DEFAULT_QUEUE_LENGTH = 1000;

/** `service` as in `parseRevisionAutoscaling`: it wins. */
export function parseQueueing(revision: Annotations | undefined, service?: Annotations): Queueing {
  const both = read({ ...revision, ...service });
  return {
    queueLength: both(FLOW_CONTROL.queueLength, integerIn(0, 100_000)) ?? DEFAULT_QUEUE_LENGTH,
    ...defined({ maxWaitMs: both(FLOW_CONTROL.maxWait, durationIn(0, HOUR_MS)) }),
    policy: both(FLOW_CONTROL.queuePolicy, oneOf("fair", "fifo")) ?? "fair",
    width: both(FLOW_CONTROL.width, integerIn(1, 100)) ?? 1,
  };
}

const HOUR_MS = 3_600_000;

/** The revision's part of a number of pods: rounded up, so that a share is never lost; nothing without traffic. */
const shareOf = (total: number | undefined, percent: number): number | undefined =>
  total === undefined || percent <= 0 ? undefined : Math.ceil((total * percent) / 100);

const largest = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : b === undefined ? a : Math.max(a, b);

/** 0 is no limit. */
const lowestLimit = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || a === 0 ? (b ?? a) : b === undefined || b === 0 ? a : Math.min(a, b);

type Parse<T> = (text: string) => T | undefined;

const read =
  (annotations: Annotations | undefined) =>
  <T>(definition: AnnotationDefinition, parse: Parse<T>): T | undefined => {
    const found = getAnnotation(annotations, definition);
    return found === undefined ? undefined : parse(found.value);
  };

/** Without the fields that are undefined. */
function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

const integerIn =
  (min: number, max: number): Parse<number> =>
  text => {
    const value = parseInteger(text, min, max);
    return typeof value === "number" ? value : undefined;
  };
const count = integerIn(0, INT32_MAX);

const floatIn =
  (min: number, max: number): Parse<number> =>
  text => {
    const value = parseFloat64(text);
    return value !== undefined && value >= min && value <= max ? value : undefined;
  };

const percentageIn =
  (min: number, max: number): Parse<number> =>
  text => {
    const value = floatIn(min, max)(text);
    return value === undefined ? undefined : value / 100;
  };

const durationIn =
  (min: number, max: number): Parse<number> =>
  text => {
    const value = parseDurationMs(text);
    return value !== undefined && value >= min && value <= max ? value : undefined;
  };

const target = floatIn(0.01, Infinity);

const burstCapacity: Parse<number> = text => {
  const value = parseFloat64(text);
  return value === -1 || (value !== undefined && value >= 0) ? value : undefined;
};

const oneOf =
  <T extends string>(...words: readonly T[]): Parse<T> =>
  text =>
    words.find(word => word === text);

const knownClass = oneOf(...Object.values(AUTOSCALING_CLASS));

/** Upstream's older spelling is `weightedExponential`. */
const aggregation: Parse<"linear" | "weighted-exponential"> = text =>
  text === "weightedExponential" ? "weighted-exponential" : oneOf("linear", "weighted-exponential")(text);

const driverTarget: Parse<DriverTarget> = text => (text === "disabled" ? text : percentageIn(10, 95)(text));
