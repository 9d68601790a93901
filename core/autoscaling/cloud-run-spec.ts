/** What Cloud Run's policy is told of a revision. */
import { resolveBounds } from "./bounds.ts";
import type { AutoscalerConfig, RevisionScaling } from "./config.ts";

/** A driver's target as a fraction of an instance's capacity, or the driver switched off. */
export type DriverTarget = number | "disabled";

/** Annotations of the class; absent: its defaults. */
export interface CloudRunScaling {
  /** Either target set: scaling controls are on. */
  readonly cpuTarget?: DriverTarget;
  readonly concurrencyTarget?: DriverTarget;
  readonly cpuAlwaysAllocated?: boolean;
  readonly adaptiveConcurrency?: boolean;
  readonly idleTimeoutMs?: number;
  readonly maxScaleOvershoot?: boolean;
}

/** What an instance of the revision is made of. */
export interface InstanceShape {
  /** 0: no limit was set. */
  readonly containerConcurrency: number;
  /** Sum of the CPU limits of all containers, sidecars too; undefined when one has none or CPU cannot be measured. */
  readonly cpus: number | undefined;
  readonly gpu: boolean;
}

export interface CloudRunSpec {
  readonly maxConcurrency: number;
  readonly cpus: number | undefined;
  readonly cpuTarget: DriverTarget;
  readonly concurrencyTarget: DriverTarget;
  /** `default`: up only from 90 % of the capacity on. `controls`: precise, within a tolerance of 10 %. */
  readonly mode: "default" | "controls";
  /** Instance-based billing. */
  readonly cpuAlwaysAllocated: boolean;
  readonly adaptiveConcurrency: boolean;
  readonly minInstances: number;
  readonly maxInstances: number;
  /** Fast surges may exceed the maximum for a while. */
  readonly maxScaleOvershoot: boolean;
  readonly idleTimeoutMs: number;
  readonly reachable: boolean;
}

export const DEFAULT_TARGET = 0.6;
export const DEFAULT_MAX_INSTANCES = 100;
const IDLE_TIMEOUT_MS = 15 * 60_000;
const GPU_IDLE_TIMEOUT_MS = 10 * 60_000;

export function resolveCloudRunSpec(
  config: AutoscalerConfig,
  scaling: RevisionScaling,
  cloudRun: CloudRunScaling,
  instance: InstanceShape,
  reachable: boolean,
): CloudRunSpec {
  const bounds = resolveBounds(config, scaling, reachable);
  const controls = cloudRun.cpuTarget !== undefined || cloudRun.concurrencyTarget !== undefined;
  return {
    maxConcurrency: instance.containerConcurrency || config.containerConcurrencyTargetDefault,
    cpus: instance.cpus,
    cpuTarget: cloudRun.cpuTarget ?? DEFAULT_TARGET,
    concurrencyTarget: cloudRun.concurrencyTarget ?? DEFAULT_TARGET,
    mode: controls ? "controls" : "default",
    cpuAlwaysAllocated: cloudRun.cpuAlwaysAllocated ?? false,
    adaptiveConcurrency: cloudRun.adaptiveConcurrency ?? true,
    minInstances: bounds.min,
    maxInstances: bounds.max || DEFAULT_MAX_INSTANCES,
    maxScaleOvershoot: cloudRun.maxScaleOvershoot ?? false,
    idleTimeoutMs: cloudRun.idleTimeoutMs ?? (instance.gpu ? GPU_IDLE_TIMEOUT_MS : IDLE_TIMEOUT_MS),
    reachable,
  };
}
