/**
 * The bounds that apply after a decision: minimum, maximum and initial scale.
 *
 * Source of the rules: knative.dev/serving v0.51.0 pkg/reconciler/autoscaling/kpa (scaler) and the PodAutoscaler's bounds.
 */
import type { AutoscalerConfig, RevisionScaling } from "./config.ts";

/** 0 means no bound. */
export interface ScaleBounds {
  readonly min: number;
  readonly max: number;
  readonly initial: number;
}

/**
 * Annotations first, then the cluster's settings. A maximum over max-scale-limit (or none at all where a limit is set)
 * becomes the limit; an unreachable revision has no minimum; initial scale 0 counts only where the cluster allows it.
 */
export function resolveBounds(config: AutoscalerConfig, scaling: RevisionScaling, reachable: boolean): ScaleBounds {
  let max = scaling.maxScale ?? config.maxScale;
  if (config.maxScaleLimit > 0 && (max === 0 || max > config.maxScaleLimit)) max = config.maxScaleLimit;
  const wished = scaling.initialScale;
  const initial =
    wished === undefined || (wished === 0 && !config.allowZeroInitialScale) ? config.initialScale : wished;
  return { min: reachable ? (scaling.minScale ?? config.minScale) : 0, max, initial };
}

export type BoundRule = "none" | "min-scale" | "max-scale" | "initial-scale";

/**
 * Puts `desired` between the bounds; a maximum under the minimum yields to the minimum.
 * `awaitingInitial`: the revision is reachable and has not yet had `initial` pods ready.
 * Worked number: desired 1, min 2, initial 5, not yet reached -> 5; once reached -> 2.
 */
export function applyBounds(
  bounds: ScaleBounds,
  awaitingInitial: boolean,
  desired: number,
): { pods: number; rule: BoundRule } {
  const byInitial = awaitingInitial && bounds.initial > 1 && bounds.initial > bounds.min;
  const min = byInitial ? bounds.initial : bounds.min;
  if (desired < min) return { pods: min, rule: byInitial ? "initial-scale" : "min-scale" };
  if (bounds.max > 0 && desired > bounds.max) return { pods: bounds.max, rule: "max-scale" };
  return { pods: desired, rule: "none" };
}
