/**
 * What would happen: one revision under one scaling policy and one trace of requests, as a discrete-event simulation on a
 * clock of its own. Everything that decides is the production core (scaleRevision, MetricCollector, PlaceQueue); what is
 * modelled is the world around: pods that take time to start, requests that take time to run, and who calls whom when.
 *
 * Pure: the same specification gives the same result. What the model leaves out stands in README.md.
 */
import type { WindowsSpec } from "../autoscaling/revision-windows.ts";
import type { RevisionSpec } from "../autoscaling/scale-revision.ts";
import type { LifecycleState } from "../autoscaling/lifecycle.ts";
import { initialLifecycleState } from "../autoscaling/lifecycle.ts";
import type { Arrival } from "./arrivals.ts";
import type { Distribution } from "./distribution.ts";
import { EventQueue } from "./event-queue.ts";
import type { QueueSettings, SimulatedRequest } from "./gateways.ts";
import { Gateways } from "./gateways.ts";
import { PodSet } from "./pod-set.ts";
import { seededRandom } from "./random.ts";
import { Recorder } from "./recorder.ts";
import type { SimulationResult } from "./result.ts";
import type { CpuModel } from "./simulated-pod.ts";
import { SimulatedOperator } from "./simulated-operator.ts";

/** How the revision stands when the simulation begins. */
export type Beginning =
  /** At rest with so many ready pods; 0: scaled to zero. */
  | { readonly kind: "at-rest"; readonly pods: number }
  /** Just created: the pods of its initial scale are starting. */
  | { readonly kind: "created" };

export interface SimulationSpec {
  /** What the result is called, such as the policy. */
  readonly name: string;
  readonly seed: number;
  /** In order of time. */
  readonly arrivals: readonly Arrival[];
  /** Where the simulation ends; what still runs then is `unfinished`. */
  readonly horizonMs: number;
  readonly beginning: Beginning;
  readonly scaling: RevisionSpec;
  readonly windows: WindowsSpec;
  /** Requests a pod takes at a time; 0: no limit. */
  readonly containerConcurrency: number;
  /** Bound of a request from its place on. */
  readonly requestTimeoutMs: number;
  readonly queue: QueueSettings;
  readonly gateways: number;
  /** From the decision to start a pod until requests may go there. */
  readonly podStart: Distribution;
  /** How long a stopped pod stays at least. */
  readonly drainMs: number;
  /** Absent: CPU is no limit and is not measured. */
  readonly cpu?: CpuModel;
  /** Distance of the points of the timeline. */
  readonly timelineStepMs: number;
}

/** Names in the decisions and reports of a simulation. */
const NAMESPACE = "simulated";
const REVISION = "revision";

/** A revision at rest has been so for longer than any window or grace period. */
const AT_REST_SINCE_MS = -86_400_000;

function lifecycleAt(beginning: Beginning): LifecycleState {
  if (beginning.kind === "created") return initialLifecycleState(0);
  const sinceMs = AT_REST_SINCE_MS;
  return {
    activity: beginning.pods > 0 ? { phase: "active", sinceMs } : { phase: "inactive", sinceMs, reason: "no-traffic" },
    initialScaleReached: true,
  };
}

/** Cloud Run's policy has a maximum per instance even where the service sets none. */
function podConcurrencyOf({ containerConcurrency, scaling: { policy } }: SimulationSpec): number {
  if (containerConcurrency > 0) return containerConcurrency;
  return policy.kind === "cloud-run" ? policy.cloudRun.maxConcurrency : Number.POSITIVE_INFINITY;
}

export function simulate(spec: SimulationSpec): SimulationResult {
  const { arrivals, seed, scaling, windows, beginning } = spec;
  const events = new EventQueue();
  const recorder = new Recorder(spec.name, seed, spec.horizonMs, scaling);
  // The parts call each other: pods end requests, gateways hear of pods, the operator of both.
  const parts: { gateways?: Gateways; operator?: SimulatedOperator<SimulatedRequest> } = {};

  const pods = new PodSet<SimulatedRequest>({
    events,
    random: seededRandom(seed, "pod start"),
    start: spec.podStart,
    drainMs: spec.drainMs,
    podConcurrency: podConcurrencyOf(spec),
    cpu: spec.cpu,
    onChange: () => {
      parts.gateways?.podsChanged();
      parts.operator?.wake();
    },
    onEnded: request => parts.gateways?.ended(request),
  });
  const gateways = new Gateways({
    events,
    random: seededRandom(seed, "gateways"),
    count: spec.gateways,
    queue: spec.queue,
    requestTimeoutMs: spec.requestTimeoutMs,
    pods,
    namespace: NAMESPACE,
    revision: REVISION,
    pokesWhen: scaling.policy.kind === "cloud-run" ? "no-room" : "no-pod",
    onReport: report => parts.operator?.report(report),
    onEnded: request => recorder.ended(request),
  });
  parts.gateways = gateways;
  const initialPods = beginning.kind === "created" ? scaling.lifecycle.bounds.initial : beginning.pods;
  if (beginning.kind === "created") pods.scale(initialPods, []);
  else pods.begin(initialPods);
  parts.operator = new SimulatedOperator<SimulatedRequest>({
    events,
    random: seededRandom(seed, "operator"),
    pods,
    spec: scaling,
    windows,
    namespace: NAMESPACE,
    revision: REVISION,
    lifecycle: lifecycleAt(beginning),
    gatewaysInPathSinceMs: beginning.kind === "created" ? 0 : AT_REST_SINCE_MS,
    gateways: gateways.names,
    onDecision: decision => recorder.decided(decision),
    onHints: pendingTimeoutMs => gateways.advise(pendingTimeoutMs),
  });

  const arriveFrom = (index: number): void => {
    const arrival = arrivals[index];
    if (arrival === undefined || arrival.atMs > spec.horizonMs) return;
    events.at(arrival.atMs, () => {
      arriveFrom(index + 1);
      recorder.arrived(arrival, pods);
      gateways.arrive(arrival);
      recorder.waits(gateways.waiting);
    });
  };
  arriveFrom(0);
  const record = (): void => {
    recorder.observe(events.nowMs, pods, gateways);
    events.at(events.nowMs + spec.timelineStepMs, record);
  };
  events.at(0, record);

  events.run(spec.horizonMs);
  return recorder.result(pods);
}
