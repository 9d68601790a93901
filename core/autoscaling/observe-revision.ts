/** From the collector and a revision's pods to what its policy observes. Shared by the operator and the simulator. */
import type { InstancesLoad, MetricCollector } from "./collector.ts";
import type { CloudRunObservation } from "./cloud-run.ts";
import type { CloudRunSpec } from "./cloud-run-spec.ts";
import type { Instance } from "./demotion.ts";
import type { AdaptedConcurrency, InstanceSecond } from "./adaptive-concurrency.ts";
import type { PolicySpec, RevisionObservation } from "./scale-revision.ts";

/** A pod that is not terminating. */
export interface PodView {
  readonly name: string;
  readonly createdMs: number;
  /** Undefined while it is not ready. */
  readonly readySinceMs: number | undefined;
}

/** Part of an instance's capacity in use, by the busier of concurrency and CPU. */
function utilization(spec: CloudRunSpec, concurrency: number, cpu: number | undefined): number {
  const byCpu = cpu === undefined || spec.cpus === undefined ? 0 : cpu / spec.cpus;
  return Math.max(concurrency / spec.maxConcurrency, byCpu);
}

function observeCloudRun(
  spec: CloudRunSpec,
  seen: InstancesLoad,
  pods: readonly PodView[],
  adapted: AdaptedConcurrency | undefined,
  nowMs: number,
): CloudRunObservation {
  const loads = new Map(seen.instances.map(one => [one.name, one]));
  return {
    load: seen.load,
    instances: pods.map((pod): Instance => {
      const load = loads.get(pod.name);
      return {
        name: pod.name,
        createdMs: pod.createdMs,
        readySinceMs: pod.readySinceMs,
        utilization1m: load === undefined ? 0 : utilization(spec, load.concurrency1m, load.cpu1m),
        // Who has not been heard yet is not known to be idle; who is not ready cannot be busy.
        lastBusyMs: load?.lastBusyMs ?? (pod.readySinceMs === undefined ? pod.createdMs : nowMs),
        adaptedMaximum: adapted?.get(pod.name),
      };
    }),
    waiting: seen.waiting,
    newlyWaiting: seen.newlyWaiting,
    inFlight: seen.inFlight,
    freedPerSecond: seen.freedPerSecond,
  };
}

/** Called before each decision. */
export function observeRevision(
  policy: PolicySpec,
  collector: MetricCollector,
  key: string,
  pods: readonly PodView[],
  gatewaysInPathSinceMs: number | undefined,
  nowMs: number,
  adapted?: AdaptedConcurrency,
): RevisionObservation {
  return {
    readyPods: pods.filter(pod => pod.readySinceMs !== undefined).length,
    load: collector.load(key, policy.kind === "kpa" ? policy.kpa.metric : "concurrency", nowMs),
    cloudRun:
      policy.kind === "cloud-run"
        ? observeCloudRun(policy.cloudRun, collector.instancesLoad(key, nowMs), pods, adapted, nowMs)
        : undefined,
    gatewaysInPathSinceMs,
  };
}

/** The last second of each instance, for adaptive concurrency. */
export function instanceSeconds(spec: CloudRunSpec, seen: InstancesLoad): InstanceSecond[] {
  return seen.instances.map(({ name, concurrency, cpu }) => ({
    name,
    concurrency,
    cpu: cpu === undefined || spec.cpus === undefined ? undefined : cpu / spec.cpus,
  }));
}
