import type { CloudRunScaling } from "../autoscaling/cloud-run-spec.ts";
import type { RevisionScaling } from "../autoscaling/config.ts";
import { DEFAULT_AUTOSCALER_CONFIG } from "../autoscaling/config.ts";
import { resolveRevision } from "../autoscaling/resolve-revision.ts";
import type { Arrival, Pattern, Spacing } from "../simulation/arrivals.ts";
import { generateArrivals } from "../simulation/arrivals.ts";
import type { Distribution } from "../simulation/distribution.ts";
import { seededRandom } from "../simulation/random.ts";
import type { SimulationSpec } from "../simulation/simulate.ts";

export interface ScenarioOptions {
  readonly policy?: "kpa" | "cloud-run" | { readonly manual: number };
  readonly scaling?: RevisionScaling;
  readonly cloudRun?: CloudRunScaling;
  readonly containerConcurrency?: number;
}

/** A specification as the CLI would make it from a Service and the default configuration; `change` has the last word. */
export function simulationSpec(
  arrivals: readonly Arrival[],
  { policy = "kpa", scaling = {}, cloudRun = {}, containerConcurrency = 10 }: ScenarioOptions = {},
  change: Partial<SimulationSpec> = {},
): SimulationSpec {
  const manual = typeof policy === "object" ? policy.manual : undefined;
  const { spec, windows } = resolveRevision({
    policy: typeof policy === "object" ? "manual" : policy,
    config: DEFAULT_AUTOSCALER_CONFIG,
    scaling,
    cloudRun,
    manualInstances: manual ?? 1,
    instance: { containerConcurrency, cpus: change.cpu?.cpus, gpu: false },
    reachable: true,
    progressDeadlineMs: 600_000,
  });
  return {
    name: "test",
    seed: 1,
    arrivals,
    horizonMs: 120_000,
    beginning: { kind: "at-rest", pods: manual ?? scaling.minScale ?? 0 },
    scaling: spec,
    windows,
    containerConcurrency,
    requestTimeoutMs: 300_000,
    queue: { policy: "fair", maxWaiting: 1000, maxWaitMs: undefined, levels: new Map() },
    gateways: 2,
    podStart: { kind: "constant", ms: 2000 },
    drainMs: 3000,
    timelineStepMs: 1000,
    ...change,
  };
}

export function arrivalsOf(
  pattern: Pattern,
  durationMs: number,
  service: Distribution,
  spacing: Spacing = "even",
  seed = 1,
): Arrival[] {
  return generateArrivals(pattern, spacing, durationMs, service, {
    arrivals: seededRandom(seed, "arrivals"),
    service: seededRandom(seed, "service"),
  });
}
