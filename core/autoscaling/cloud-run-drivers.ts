/**
 * Cloud Run's metric-based scaling: two drivers, each asks for a number of instances, the larger counts.
 *
 *     concurrency   max(average over 1 min, average over 10 min) / maximum concurrency / target
 *     cpu           average over 1 min in CPUs / CPUs of an instance / target
 *
 * Worked numbers: 90 in flight (1 min), 40 (10 min), maximum 20, target 60 % -> 90 / 20 / 0.6 = 7.5; 2.4 CPUs used,
 * 1 each, target 60 % -> 4: concurrency asks for 7.5, so 8 instances.
 */
import type { CloudRunSpec } from "./cloud-run-spec.ts";

/** Load of the whole revision. */
export interface CloudRunLoad {
  /** Average of the per-second concurrency. */
  readonly concurrency1m: number;
  readonly concurrency10m: number;
  /** Average of the per-second CPU use, in CPUs; undefined where it cannot be measured. */
  readonly cpu1m: number | undefined;
}

export interface Drivers {
  /** Instances, not rounded; 0 when the driver is off or has no data. */
  readonly concurrency: number;
  readonly cpu: number;
  readonly driving: "concurrency" | "cpu" | "none";
  readonly needed: number;
}

/**
 * With request-based billing CPU is given for requests, so CPU use without any request asks for nothing. With instance-based
 * billing (`cpuAlwaysAllocated`) work beside requests counts, but no instance is ever quite idle: CPU alone never keeps the last one.
 */
function cpuNeed(spec: CloudRunSpec, load: CloudRunLoad, concurrencyNeed: number): number {
  if (spec.cpuTarget === "disabled" || spec.cpus === undefined || load.cpu1m === undefined) return 0;
  const need = load.cpu1m / spec.cpus / spec.cpuTarget;
  if (concurrencyNeed > 0 || load.concurrency1m > 0) return need;
  return spec.cpuAlwaysAllocated && need > 1 ? need : 0;
}

export function drive(spec: CloudRunSpec, load: CloudRunLoad): Drivers {
  const concurrency =
    spec.concurrencyTarget === "disabled"
      ? 0
      : Math.max(load.concurrency1m, load.concurrency10m) / spec.maxConcurrency / spec.concurrencyTarget;
  const cpu = cpuNeed(spec, load, concurrency);
  const needed = Math.max(concurrency, cpu);
  return { concurrency, cpu, needed, driving: needed === 0 ? "none" : cpu > concurrency ? "cpu" : "concurrency" };
}

/** In default mode instances are added only from this part of the capacity of those that exist on. */
export const FULL_CAPACITY = 0.9;
/** With scaling controls, a driver within this part of its target changes nothing. */
export const TOLERANCE = 0.1;

export type CountRule =
  | "metrics"
  | "capacity-under-90-percent"
  | "within-tolerance"
  /** With no instance only a request scales up. */
  | "zero-without-request";

export interface Count {
  readonly instances: number;
  readonly rule: CountRule;
  /** Part of the capacity of the existing instances in use, by the busier driver. */
  readonly utilization: number;
}

/** Part of the capacity of `instances` in use over the last minute. */
export function utilizationOf(spec: CloudRunSpec, load: CloudRunLoad, instances: number): number {
  const concurrency = spec.concurrencyTarget === "disabled" ? 0 : load.concurrency1m / spec.maxConcurrency;
  const cpu =
    spec.cpuTarget === "disabled" || spec.cpus === undefined || load.cpu1m === undefined ? 0 : load.cpu1m / spec.cpus;
  return Math.max(concurrency, cpu) / instances;
}

/** Whole instances for `needed`, safe against the last bits of a division (7.000000000000001 is 7). */
export function wholeInstances(needed: number): number {
  return Math.ceil(Number(needed.toFixed(9)));
}

/**
 * The number of instances the drivers recommend, given those that exist and how many of them were recommended before.
 *
 * Worked numbers, default mode, 10 exist: need 12, 72 % in use -> 10; need 15.5, 93 % in use -> 16; need 7.2 -> 8.
 * With controls, 10 recommended: need 10.9 -> within 10 %, stays 10; need 11.2 -> 12; need 8.9 -> 9.
 */
export function recommend(
  spec: CloudRunSpec,
  load: CloudRunLoad,
  drivers: Drivers,
  recommendedBefore: number,
  existing: number,
): Count {
  if (existing === 0) return { instances: 0, rule: "zero-without-request", utilization: 0 };
  const instances = wholeInstances(drivers.needed);
  const utilization = utilizationOf(spec, load, existing);
  if (spec.mode === "controls") {
    const off = Math.abs(drivers.needed / recommendedBefore - 1);
    return off <= TOLERANCE
      ? { instances: recommendedBefore, rule: "within-tolerance", utilization }
      : { instances, rule: "metrics", utilization };
  }
  if (instances > existing && utilization < FULL_CAPACITY) {
    return { instances: existing, rule: "capacity-under-90-percent", utilization };
  }
  return { instances, rule: "metrics", utilization };
}
