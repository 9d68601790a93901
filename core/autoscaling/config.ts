/**
 * What the autoscaler is told: the cluster's settings (ConfigMap config-autoscaler), a revision's own (annotations), and
 * how the two become the numbers a decision works with. Plain data; parsing and admission live in api/.
 *
 * Source of the rules: knative.dev/serving v0.51.0 pkg/autoscaler/config and pkg/reconciler/autoscaling/resources.
 */
import type { Aggregation } from "./bucket-window.ts";
import { BUCKET_MS } from "./bucket-window.ts";
import { resolveBounds } from "./bounds.ts";
import type { KpaSpec } from "./kpa.ts";
import type { LifecycleSpec } from "./lifecycle.ts";

export type ScalingMetric = "concurrency" | "rps";

/** One field for each key of config-autoscaler; percentages are fractions, durations milliseconds, 0 scale = no bound. */
export interface AutoscalerConfig {
  readonly enableScaleToZero: boolean;
  readonly allowZeroInitialScale: boolean;
  readonly stableWindowMs: number;
  /** Percent of the stable window, 1..100. */
  readonly panicWindowPercentage: number;
  /** Percent of the ready pods' target, 110..1000. */
  readonly panicThresholdPercentage: number;
  /** Fraction, (0, 1]. */
  readonly containerConcurrencyTargetFraction: number;
  readonly containerConcurrencyTargetDefault: number;
  readonly requestsPerSecondTargetDefault: number;
  readonly targetBurstCapacity: number;
  readonly activatorCapacity: number;
  readonly maxScaleUpRate: number;
  readonly maxScaleDownRate: number;
  readonly scaleToZeroGracePeriodMs: number;
  readonly scaleToZeroPodRetentionPeriodMs: number;
  readonly scaleDownDelayMs: number;
  readonly initialScale: number;
  readonly minScale: number;
  readonly maxScale: number;
  readonly maxScaleLimit: number;
}

export const DEFAULT_AUTOSCALER_CONFIG: AutoscalerConfig = {
  enableScaleToZero: true,
  allowZeroInitialScale: false,
  stableWindowMs: 60_000,
  panicWindowPercentage: 10,
  panicThresholdPercentage: 200,
  containerConcurrencyTargetFraction: 0.7,
  containerConcurrencyTargetDefault: 100,
  requestsPerSecondTargetDefault: 200,
  targetBurstCapacity: 211,
  activatorCapacity: 100,
  maxScaleUpRate: 1000,
  maxScaleDownRate: 2,
  scaleToZeroGracePeriodMs: 30_000,
  scaleToZeroPodRetentionPeriodMs: 0,
  scaleDownDelayMs: 0,
  initialScale: 1,
  minScale: 0,
  maxScale: 0,
  maxScaleLimit: 0,
};

/** The annotations `autoscaling.knative.dev/*` of a revision (or, for bounds and targets, of its Service), parsed. */
export interface RevisionScaling {
  readonly metric?: ScalingMetric;
  readonly aggregation?: Aggregation;
  readonly target?: number;
  /** Fraction, (0, 1]. */
  readonly targetUtilization?: number;
  readonly targetBurstCapacity?: number;
  readonly windowMs?: number;
  readonly panicWindowPercentage?: number;
  readonly panicThresholdPercentage?: number;
  readonly minScale?: number;
  readonly maxScale?: number;
  readonly initialScale?: number;
  readonly activationScale?: number;
  readonly scaleDownDelayMs?: number;
  readonly scaleToZeroPodRetentionPeriodMs?: number;
}

/** The smallest target per pod. */
const TARGET_MIN = 0.01;
/** The utilization for rps; the ConfigMap has no key for it. */
const RPS_TARGET_UTILIZATION = 0.7;

/**
 * Per pod: `totalValue` is what it can take, `targetValue` what is aimed at.
 * Worked number: containerConcurrency 10, utilization 70 % -> total 10, target 7.
 */
export function resolveTarget(
  config: AutoscalerConfig,
  scaling: RevisionScaling,
  containerConcurrency: number,
): { targetValue: number; totalValue: number } {
  const rps = scaling.metric === "rps";
  let totalValue = rps
    ? config.requestsPerSecondTargetDefault
    : containerConcurrency === 0
      ? config.containerConcurrencyTargetDefault
      : containerConcurrency;
  if (scaling.target !== undefined) {
    totalValue = !rps && containerConcurrency !== 0 ? Math.min(scaling.target, containerConcurrency) : scaling.target;
  }
  const utilization =
    scaling.targetUtilization ?? (rps ? RPS_TARGET_UTILIZATION : config.containerConcurrencyTargetFraction);
  return { targetValue: Math.max(TARGET_MIN, totalValue * utilization), totalValue };
}

/** Panic window: a percentage of the stable one in whole seconds, never under one second (60 s x 10 % = 6 s). */
export function resolvePanicWindowMs(stableWindowMs: number, percentage: number): number {
  // In nanoseconds and cut there first, as in the original: 6.499999999 s is 6 s.
  const nanoseconds = Math.trunc((stableWindowMs * 1e6 * percentage) / 100);
  return Math.max(BUCKET_MS, Math.round(nanoseconds / 1e9) * 1000);
}

/** The numbers of Knative's decision for one revision. `reachable`: some route may send it traffic. */
export function resolveKpaSpec(
  config: AutoscalerConfig,
  scaling: RevisionScaling,
  containerConcurrency: number,
  reachable: boolean,
): KpaSpec {
  const stableWindowMs = scaling.windowMs ?? config.stableWindowMs;
  return {
    metric: scaling.metric ?? "concurrency",
    ...resolveTarget(config, scaling, containerConcurrency),
    targetBurstCapacity: scaling.targetBurstCapacity ?? config.targetBurstCapacity,
    panicThreshold: (scaling.panicThresholdPercentage ?? config.panicThresholdPercentage) / 100,
    stableWindowMs,
    panicWindowMs: resolvePanicWindowMs(stableWindowMs, scaling.panicWindowPercentage ?? config.panicWindowPercentage),
    aggregation: scaling.aggregation ?? "linear",
    maxScaleUpRate: config.maxScaleUpRate,
    maxScaleDownRate: config.maxScaleDownRate,
    scaleDownDelayMs: scaling.scaleDownDelayMs ?? config.scaleDownDelayMs,
    activationScale: scaling.activationScale ?? 0,
    reachable,
  };
}

/** Pods that fail are given time to show why before the revision is given up. */
const ACTIVATION_TIMEOUT_BUFFER_MS = 30_000;

/** Bounds and waits of one revision, for every policy. `progressDeadlineMs`: how long its pods may take to become ready. */
export function resolveLifecycleSpec(
  config: AutoscalerConfig,
  scaling: RevisionScaling,
  reachable: boolean,
  progressDeadlineMs: number,
): LifecycleSpec {
  return {
    bounds: resolveBounds(config, scaling, reachable),
    reachable,
    enableScaleToZero: config.enableScaleToZero,
    stableWindowMs: scaling.windowMs ?? config.stableWindowMs,
    gracePeriodMs: config.scaleToZeroGracePeriodMs,
    podRetentionMs: scaling.scaleToZeroPodRetentionPeriodMs ?? config.scaleToZeroPodRetentionPeriodMs,
    activationTimeoutMs: progressDeadlineMs + ACTIVATION_TIMEOUT_BUFFER_MS,
  };
}
