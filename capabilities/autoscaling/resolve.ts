import type { AutoscalerConfig } from "../../api/config/autoscaler.ts";
import { parseRevisionAutoscaling } from "../../api/autoscaling.ts";
import type { Revision } from "../../api/serving/v1/types.ts";
import { resolveKpaSpec, resolveLifecycleSpec } from "../../core/autoscaling/config.ts";
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

/** From annotations and config-autoscaler to the numbers the core decides with. */
export function resolveScaling(revision: Revision, reachable: boolean, sources: ScalingSources): ResolvedScaling {
  const { config, progressDeadlineMs, serviceAnnotations, trafficPercent } = sources;
  const { scaling } = parseRevisionAutoscaling(revision.metadata.annotations, serviceAnnotations, trafficPercent);
  const kpa = resolveKpaSpec(config, scaling, revision.spec.containerConcurrency ?? 0, reachable);
  return {
    spec: {
      policy: { kind: "kpa", kpa },
      lifecycle: resolveLifecycleSpec(config, scaling, reachable, progressDeadlineMs),
    },
    windows: {
      aggregation: kpa.aggregation,
      stableWindowMs: kpa.stableWindowMs,
      panicWindowMs: kpa.panicWindowMs,
      scraped: kpa.targetBurstCapacity !== -1,
    },
  };
}
