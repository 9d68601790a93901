/**
 * A new revision that takes over all traffic gets enough instances for the load of the old ones before traffic moves.
 *
 * Worked numbers: the old revision has 60 in flight (1 min) and uses 3 CPUs; an instance of the new one takes 20 requests and has 2
 * CPUs, targets 60 %: max(60 / 20, 3 / 2) / 0.6 = 5 instances.
 */
import type { CloudRunLoad, Drivers } from "./cloud-run-drivers.ts";
import { drive, wholeInstances } from "./cloud-run-drivers.ts";
import type { CloudRunSpec } from "./cloud-run-spec.ts";

export interface RolloutCapacity {
  /** Instances of the new revision to have ready before traffic moves: within its bounds, at least one. */
  readonly instances: number;
  readonly load: CloudRunLoad;
  readonly drivers: Drivers;
}

function sum(loads: readonly CloudRunLoad[]): CloudRunLoad {
  const measured = loads.flatMap(load => (load.cpu1m === undefined ? [] : [load.cpu1m]));
  return {
    concurrency1m: loads.reduce((total, load) => total + load.concurrency1m, 0),
    concurrency10m: loads.reduce((total, load) => total + load.concurrency10m, 0),
    cpu1m: measured.length === 0 ? undefined : measured.reduce((total, cpu) => total + cpu, 0),
  };
}

/** `loads`: present load of each revision that traffic leaves. Called when the new revision is made and each tick until it moves. */
export function matchCapacity(spec: CloudRunSpec, loads: readonly CloudRunLoad[]): RolloutCapacity {
  const load = sum(loads);
  const drivers = drive(spec, load);
  const instances = Math.min(Math.max(wholeInstances(drivers.needed), spec.minInstances, 1), spec.maxInstances);
  return { instances, load, drivers };
}
