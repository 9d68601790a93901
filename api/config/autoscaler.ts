import { z } from "zod";
import { AUTOSCALING_CLASS } from "../annotations.ts";
import { bool, choice, duration, float, integer, parseConfigMap } from "./config-map.ts";
import type { ConfigData } from "./config-map.ts";

/** ConfigMap config-autoscaler: what holds for a revision without annotations of its own. */
export const AUTOSCALER_CONFIG_NAME = "config-autoscaler";

const TARGET_MIN = 0.01;
const HOUR_MS = 3_600_000;

export const autoscalerShape = {
  "pod-autoscaler-class": choice(
    AUTOSCALING_CLASS.kpa,
    "The policy that decides the number of pods.",
    Object.values(AUTOSCALING_CLASS),
  ),
  "enable-scale-to-zero": bool("true", "When false, no revision goes below one pod."),
  "allow-zero-initial-scale": bool("false", "Whether an initial scale of 0 may be asked for."),
  "stable-window": duration("60s", "Window over which the metric is averaged.", {
    min: 5000,
    max: HOUR_MS,
    wholeSeconds: true,
  }),
  "panic-window-percentage": float(
    "10",
    "The panic window as a share of the stable window; the result is not under a second.",
    { min: 1, max: 100 },
  ),
  "panic-threshold-percentage": float(
    "200",
    "Load over the panic window, relative to what the ready pods should carry, at which panic begins.",
    { min: 110, max: 1000 },
  ),
  "container-concurrency-target-percentage": float(
    "70",
    "Share of a pod's concurrency that is aimed at. Values up to 1 are taken as fractions.",
    { above: 0, max: 100 },
  ),
  "container-concurrency-target-default": float("100", "Target of a revision without containerConcurrency.", {
    above: 0,
  }),
  "requests-per-second-target-default": float("200", "Target of the metric rps.", { min: TARGET_MIN }),
  "target-burst-capacity": float(
    "211",
    "Burst the ready pods must be able to take before the gateway leaves the path; -1: it always stays; 0: only at zero.",
    { min: 0, or: -1 },
  ),
  "activator-capacity": float("100", "Concurrent requests that one gateway is counted for when gateways are chosen.", {
    min: 1,
  }),
  "max-scale-up-rate": float("1000", "Most pods after a decision, as a multiple of the ready ones.", { above: 1 }),
  "max-scale-down-rate": float("2", "Fewest pods after a decision, as a fraction of the ready ones.", { above: 1 }),
  "scale-to-zero-grace-period": duration("30s", "How long the last pod stays while the gateway takes over the path.", {
    above: 0,
  }),
  "scale-to-zero-pod-retention-period": duration("0s", "How long the last pod stays at least.", { min: 0 }),
  "scale-down-delay": duration("0s", "How long the load must stay lower before pods are removed.", {
    min: 0,
    max: HOUR_MS,
    wholeSeconds: true,
  }),
  "initial-scale": integer("1", "Pods that must have been ready once before a revision is Ready.", { min: 0 }),
  "min-scale": integer("0", "Fewest pods of a reachable revision.", { min: 0 }),
  "max-scale": integer("0", "Most pods of a revision; 0: no limit.", { min: 0 }),
  "max-scale-limit": integer("0", "Most that max scale may be set to; 0: no limit.", { min: 0 }),
};

const AutoscalerConfigSchema = z
  .object(autoscalerShape)
  .superRefine((c, context) => {
    const refuse = (key: keyof typeof autoscalerShape, message: string) =>
      context.addIssue({ code: "custom", path: [key], message });
    const panicWindowMs = (c["stable-window"] * c["panic-window-percentage"]) / 100;
    if (panicWindowMs < 1000) {
      refuse("panic-window-percentage", `must make a panic window of at least 1s, was ${panicWindowMs}ms`);
    }
    const target = fraction(c["container-concurrency-target-percentage"]) * c["container-concurrency-target-default"];
    if (target < TARGET_MIN) {
      refuse(
        "container-concurrency-target-default",
        `times container-concurrency-target-percentage must be at least ${TARGET_MIN}, was ${target}`,
      );
    }
    if (c["initial-scale"] === 0 && !c["allow-zero-initial-scale"]) {
      refuse("initial-scale", "must be at least 1 when allow-zero-initial-scale is false, was 0");
    }
    const limit = c["max-scale-limit"];
    if (limit > 0 && (c["max-scale"] < 1 || c["max-scale"] > limit)) {
      refuse("max-scale", `must be in [1, max-scale-limit(${limit})], was ${c["max-scale"]}`);
    }
    if (c["max-scale"] > 0 && c["min-scale"] > c["max-scale"]) {
      refuse("min-scale", `must be at most max-scale(${c["max-scale"]}), was ${c["min-scale"]}`);
    }
  })
  .transform(c => ({
    podAutoscalerClass: c["pod-autoscaler-class"],
    enableScaleToZero: c["enable-scale-to-zero"],
    allowZeroInitialScale: c["allow-zero-initial-scale"],
    stableWindowMs: c["stable-window"],
    panicWindowPercentage: c["panic-window-percentage"],
    panicThresholdPercentage: c["panic-threshold-percentage"],
    /** In (0, 1]. */
    containerConcurrencyTargetFraction: fraction(c["container-concurrency-target-percentage"]),
    containerConcurrencyTargetDefault: c["container-concurrency-target-default"],
    requestsPerSecondTargetDefault: c["requests-per-second-target-default"],
    /** -1: the gateway always stays in the path. */
    targetBurstCapacity: c["target-burst-capacity"],
    activatorCapacity: c["activator-capacity"],
    maxScaleUpRate: c["max-scale-up-rate"],
    maxScaleDownRate: c["max-scale-down-rate"],
    scaleToZeroGracePeriodMs: c["scale-to-zero-grace-period"],
    scaleToZeroPodRetentionPeriodMs: c["scale-to-zero-pod-retention-period"],
    scaleDownDelayMs: c["scale-down-delay"],
    initialScale: c["initial-scale"],
    minScale: c["min-scale"],
    /** 0: no limit. */
    maxScale: c["max-scale"],
    /** 0: no limit. */
    maxScaleLimit: c["max-scale-limit"],
  }));

/** Knative allows fractions where it says percentage: values up to 1 are fractions. */
function fraction(percentage: number): number {
  return percentage > 1 ? percentage / 100 : percentage;
}

export type AutoscalerConfig = Readonly<z.infer<typeof AutoscalerConfigSchema>>;

export function parseAutoscalerConfig(data?: ConfigData): AutoscalerConfig {
  return parseConfigMap(AUTOSCALER_CONFIG_NAME, AutoscalerConfigSchema, data);
}
