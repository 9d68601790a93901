import { AUTOSCALING_CLASS, type AutoscalingClass } from "../../api/annotations.ts";
import { parseRevisionAutoscaling } from "../../api/autoscaling.ts";
import type { AutoscalerConfig } from "../../api/config/autoscaler.ts";
import { podCpuLimit, usesGpu } from "../../api/serving/v1/pod-shape.ts";
import type { Revision } from "../../api/serving/v1/types.ts";
import { resolveRevision, type PolicyKind } from "../../core/autoscaling/resolve-revision.ts";
import type { ResolvedScaling } from "./revision-scaler.ts";

/** What decides about a revision beside the revision itself. */
export interface ScalingSources {
  readonly config: AutoscalerConfig;
  /** How long its pods may take to become ready. */
  readonly progressDeadlineMs: number;
  /** Annotations of the revision's Service: bounds set there hold without a new revision. */
  readonly serviceAnnotations: Readonly<Record<string, string>> | undefined;
  /** The revision's part of its Service's traffic, 0..100; undefined: not known, all of it. */
  readonly trafficPercent: number | undefined;
}

const POLICY: Readonly<Record<AutoscalingClass, PolicyKind>> = {
  [AUTOSCALING_CLASS.kpa]: "kpa",
  [AUTOSCALING_CLASS.cloudRun]: "cloud-run",
  [AUTOSCALING_CLASS.manual]: "manual",
};

/** From annotations and config-autoscaler to the numbers the core decides with. */
export function resolveScaling(revision: Revision, reachable: boolean, sources: ScalingSources): ResolvedScaling {
  const { config, progressDeadlineMs, serviceAnnotations, trafficPercent } = sources;
  const parsed = parseRevisionAutoscaling(revision.metadata.annotations, serviceAnnotations, trafficPercent);
  return resolveRevision({
    policy: POLICY[parsed.class ?? config.podAutoscalerClass],
    config,
    scaling: parsed.scaling,
    cloudRun: parsed.cloudRun,
    manualInstances: parsed.manualInstanceCount ?? parsed.scaling.minScale ?? 1,
    instance: {
      containerConcurrency: revision.spec.containerConcurrency ?? 0,
      cpus: podCpuLimit(revision.spec),
      gpu: usesGpu(revision.spec),
    },
    reachable,
    progressDeadlineMs,
  });
}
