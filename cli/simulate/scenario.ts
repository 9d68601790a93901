import { parse } from "yaml";
import { AUTOSCALING_CLASS, type AutoscalingClass } from "../../api/annotations.ts";
import { parseQueueing, parseRevisionAutoscaling } from "../../api/autoscaling.ts";
import type { AutoscalerConfig } from "../../api/config/autoscaler.ts";
import { parseDeploymentConfig } from "../../api/config/deployment.ts";
import { podCpuLimit, usesGpu } from "../../api/serving/v1/pod-shape.ts";
import type { Service } from "../../api/serving/v1/types.ts";
import { resolveRevision, type PolicyKind } from "../../core/autoscaling/resolve-revision.ts";
import { MANDATORY_PRIORITY_LEVELS, SUGGESTED_PRIORITY_LEVELS } from "../../core/flowcontrol/bootstrap.ts";
import { sharesOf } from "../../core/flowcontrol/limits.ts";
import type { PlaceLevel, PlacePolicy } from "../../core/flowcontrol/place-queue.ts";
import type { Arrival, Pattern, Spacing } from "../../core/simulation/arrivals.ts";
import { generateArrivals, TooManyArrivalsError } from "../../core/simulation/arrivals.ts";
import type { Distribution } from "../../core/simulation/distribution.ts";
import { sample } from "../../core/simulation/distribution.ts";
import { seededRandom } from "../../core/simulation/random.ts";
import type { Beginning, SimulationSpec } from "../../core/simulation/simulate.ts";
import { CliError } from "../cli-error.ts";
import type { TraceRow } from "./trace-file.ts";

/** A policy as it is chosen on the command line: `kpa`, `cloudrun`, `manual` or `manual:COUNT`. */
export interface PolicyChoice {
  readonly name: string;
  readonly kind: PolicyKind;
  /** Pods of the manual policy; absent: those of the service. */
  readonly count?: number;
}

export function parsePolicy(text: string): PolicyChoice | undefined {
  if (text === "kpa") return { name: text, kind: "kpa" };
  if (text === "cloudrun") return { name: text, kind: "cloud-run" };
  const manual = /^manual(?::(\d{1,5}))?$/.exec(text);
  if (manual === null) return undefined;
  return { name: text, kind: "manual", ...(manual[1] === undefined ? {} : { count: Number(manual[1]) }) };
}

const POLICY_OF_CLASS: Readonly<Record<AutoscalingClass, PolicyChoice>> = {
  [AUTOSCALING_CLASS.kpa]: { name: "kpa", kind: "kpa" },
  [AUTOSCALING_CLASS.cloudRun]: { name: "cloudrun", kind: "cloud-run" },
  [AUTOSCALING_CLASS.manual]: { name: "manual", kind: "manual" },
};

export type PatternKind = Pattern["kind"];
export const PATTERN_KINDS: readonly PatternKind[] = ["step", "spike", "diurnal", "poisson", "burst"];

export interface PatternOptions {
  readonly rps: number | undefined;
  readonly peakRps: number | undefined;
  readonly atMs: number | undefined;
  readonly lengthMs: number | undefined;
  readonly periodMs: number | undefined;
  readonly burstSize: number | undefined;
}

const DEFAULT_RPS = 10;
const DEFAULT_PEAK_FACTOR = 10;
const DEFAULT_BURST_SIZE = 50;
const DEFAULT_BURST_PERIOD_MS = 60_000;

/** The pattern with what was not said filled in: the rate rises tenfold after a quarter of the time, for a fifth of it. */
export function choosePattern(kind: PatternKind, options: PatternOptions, durationMs: number): Pattern {
  const rps = options.rps ?? (kind === "burst" ? 0 : DEFAULT_RPS);
  const peakRps = options.peakRps ?? rps * DEFAULT_PEAK_FACTOR;
  const atMs = options.atMs ?? durationMs / 4;
  switch (kind) {
    case "poisson":
      return { kind, rps };
    case "step":
      return { kind, fromRps: rps, toRps: peakRps, atMs };
    case "spike":
      return { kind, baseRps: rps, peakRps, atMs, lengthMs: options.lengthMs ?? durationMs / 5 };
    case "diurnal":
      return { kind, lowRps: rps, highRps: peakRps, periodMs: options.periodMs ?? durationMs };
    case "burst":
      return {
        kind,
        baseRps: rps,
        size: options.burstSize ?? DEFAULT_BURST_SIZE,
        everyMs: options.periodMs ?? DEFAULT_BURST_PERIOD_MS,
      };
  }
}

/** Where the requests come from. */
export type Load =
  | { readonly kind: "trace"; readonly rows: readonly TraceRow[] }
  | { readonly kind: "pattern"; readonly pattern: Pattern; readonly spacing: Spacing; readonly durationMs: number };

/** The requests, the same for every policy. */
export function arrivalsOf(load: Load, serviceTime: Distribution, seed: number): readonly Arrival[] {
  const random = { arrivals: seededRandom(seed, "arrivals"), service: seededRandom(seed, "service time") };
  if (load.kind === "trace") {
    return load.rows.map(row => ({ ...row, serviceMs: row.serviceMs ?? sample(serviceTime, random.service) }));
  }
  try {
    return generateArrivals(load.pattern, load.spacing, load.durationMs, serviceTime, random);
  } catch (error) {
    if (error instanceof TooManyArrivalsError) throw new CliError("usage", error.message, { cause: error });
    throw error;
  }
}

export interface ScenarioInput {
  readonly service: Service;
  readonly config: AutoscalerConfig;
  /** None: the service's own. */
  readonly policies: readonly PolicyChoice[];
  /** None: the service's own. */
  readonly queuePolicies: readonly PlacePolicy[];
  readonly arrivals: readonly Arrival[];
  readonly horizonMs: number;
  readonly podStart: Distribution;
  readonly drainMs: number;
  readonly gateways: number;
  readonly seed: number;
  /** CPUs that a running request keeps busy; absent: CPU plays no part. */
  readonly cpuPerRequest: number | undefined;
  /** CPU limit of a pod, instead of the service's. */
  readonly podCpus: number | undefined;
  /** Absent: at rest with as many pods as the policy keeps. */
  readonly beginning: Beginning | undefined;
  readonly timelineStepMs: number | undefined;
}

/** About so many points of the timeline unless told otherwise. */
const TIMELINE_POINTS = 600;

/** One specification for each policy and queue policy, on the same requests. */
export function scenariosOf(input: ScenarioInput): SimulationSpec[] {
  const { service, config, horizonMs } = input;
  const { template } = service.spec;
  const annotations = template.metadata?.annotations;
  const ofService = service.metadata.annotations;
  const scaling = parseRevisionAutoscaling(annotations, ofService);
  const queueing = parseQueueing(annotations, ofService);
  const policies =
    input.policies.length > 0 ? input.policies : [POLICY_OF_CLASS[scaling.class ?? config.podAutoscalerClass]];
  const queuePolicies = input.queuePolicies.length > 0 ? input.queuePolicies : [queueing.policy];
  const containerConcurrency = template.spec.containerConcurrency ?? 0;
  const cpu = cpuOf(input);

  return policies.flatMap(policy => {
    const { spec, windows } = resolveRevision({
      policy: policy.kind,
      config,
      scaling: scaling.scaling,
      cloudRun: scaling.cloudRun,
      manualInstances: policy.count ?? scaling.manualInstanceCount ?? scaling.scaling.minScale ?? 1,
      // Without a model of the CPU there is nothing to measure.
      instance: { containerConcurrency, cpus: cpu?.cpus, gpu: usesGpu(template.spec) },
      reachable: true,
      progressDeadlineMs: parseDeploymentConfig(undefined, parse).progressDeadlineMs,
    });
    const { bounds, enableScaleToZero } = spec.lifecycle;
    const pods = Math.max(bounds.min, enableScaleToZero ? 0 : 1);
    return queuePolicies.map(
      (queuePolicy): SimulationSpec => ({
        name: queuePolicies.length > 1 ? `${policy.name}, ${queuePolicy}` : policy.name,
        seed: input.seed,
        arrivals: input.arrivals,
        horizonMs,
        beginning: input.beginning ?? { kind: "at-rest", pods },
        scaling: spec,
        windows,
        containerConcurrency,
        requestTimeoutMs: (template.spec.timeoutSeconds ?? DEFAULT_TIMEOUT_S) * 1000,
        queue: {
          policy: queuePolicy,
          maxWaiting: queueing.queueLength,
          maxWaitMs: queueing.maxWaitMs,
          levels: LEVELS,
        },
        gateways: input.gateways,
        podStart: input.podStart,
        drainMs: input.drainMs,
        ...(cpu === undefined ? {} : { cpu }),
        timelineStepMs: input.timelineStepMs ?? Math.max(1, Math.ceil(horizonMs / 1000 / TIMELINE_POINTS)) * 1000,
      }),
    );
  });
}

/** The priority levels that a trace may name: those of a new cluster, with their shares. */
const LEVELS: ReadonlyMap<string, PlaceLevel> = new Map(
  [...MANDATORY_PRIORITY_LEVELS, ...SUGGESTED_PRIORITY_LEVELS].map(({ name, spec }): [string, PlaceLevel] => [
    name,
    spec.type === "Exempt" ? { kind: "exempt" } : { kind: "limited", weight: sharesOf(spec) },
  ]),
);

/** Admission has filled it in; this is for its type. */
const DEFAULT_TIMEOUT_S = 300;

function cpuOf({ service, cpuPerRequest, podCpus }: ScenarioInput): SimulationSpec["cpu"] {
  if (cpuPerRequest === undefined) return undefined;
  const cpus = podCpus ?? podCpuLimit(service.spec.template.spec);
  if (cpus === undefined || cpus <= 0) {
    throw new CliError("usage", "--cpu-per-request needs a CPU limit on every container of the service, or --pod-cpus");
  }
  return { cpus, perRequest: cpuPerRequest };
}
