/** From everything configured for a revision to the numbers its decisions work with, for each policy. */
import type { CloudRunScaling, InstanceShape } from "./cloud-run-spec.ts";
import { resolveCloudRunSpec } from "./cloud-run-spec.ts";
import type { AutoscalerConfig, RevisionScaling } from "./config.ts";
import { resolveKpaSpec, resolveLifecycleSpec } from "./config.ts";
import type { LifecycleSpec } from "./lifecycle.ts";
import type { WindowsSpec } from "./revision-windows.ts";
import type { PolicySpec, RevisionSpec } from "./scale-revision.ts";

export type PolicyKind = PolicySpec["kind"];

export interface RevisionSettings {
  readonly policy: PolicyKind;
  readonly config: AutoscalerConfig;
  readonly scaling: RevisionScaling;
  readonly cloudRun: CloudRunScaling;
  /** Pods of the manual policy. */
  readonly manualInstances: number;
  readonly instance: InstanceShape;
  readonly reachable: boolean;
  /** How long its pods may take to become ready. */
  readonly progressDeadlineMs: number;
}

/**
 * Policies with waits of their own need none of Knative's: an instance that Cloud Run's or the manual policy no longer wants has
 * been idle long enough. Their bounds are in their numbers already, and the last step must not cut an allowed overshoot.
 */
function lifecycleOf(policy: PolicySpec, base: LifecycleSpec): LifecycleSpec {
  const noWaits = { stableWindowMs: 0, gracePeriodMs: 0, podRetentionMs: 0 };
  switch (policy.kind) {
    case "kpa":
      return base;
    case "cloud-run": {
      const { minInstances, maxInstances, maxScaleOvershoot } = policy.cloudRun;
      const max = maxScaleOvershoot ? 0 : maxInstances;
      return { ...base, ...noWaits, bounds: { ...base.bounds, min: minInstances, max } };
    }
    case "manual": {
      const { instances } = policy.manual;
      return {
        ...base,
        ...noWaits,
        // Zero was asked for: it is not the scale to zero that can be disabled.
        enableScaleToZero: true,
        bounds: { min: base.reachable ? instances : 0, max: instances, initial: instances },
      };
    }
  }
}

function policyOf(settings: RevisionSettings): PolicySpec {
  const { config, scaling, cloudRun, instance, reachable } = settings;
  switch (settings.policy) {
    case "kpa":
      return { kind: "kpa", kpa: resolveKpaSpec(config, scaling, instance.containerConcurrency, reachable) };
    case "cloud-run":
      return { kind: "cloud-run", cloudRun: resolveCloudRunSpec(config, scaling, cloudRun, instance, reachable) };
    case "manual":
      return { kind: "manual", manual: { instances: settings.manualInstances } };
  }
}

/** `windows` is what the collector is to keep for the revision. */
export function resolveRevision(settings: RevisionSettings): { spec: RevisionSpec; windows: WindowsSpec } {
  const { config, scaling, instance, reachable, progressDeadlineMs } = settings;
  const policy = policyOf(settings);
  // The windows do not depend on the policy, so that data outlive a change of it.
  const kpa = resolveKpaSpec(config, scaling, instance.containerConcurrency, reachable);
  return {
    spec: {
      policy,
      lifecycle: lifecycleOf(policy, resolveLifecycleSpec(config, scaling, reachable, progressDeadlineMs)),
    },
    windows: {
      aggregation: kpa.aggregation,
      stableWindowMs: kpa.stableWindowMs,
      panicWindowMs: kpa.panicWindowMs,
      // Also where all requests pass the gateways: pods tell what a silent gateway does not, and that there are none.
      scraped: true,
      perInstance: policy.kind === "cloud-run",
    },
  };
}
