/**
 * The operator's autoscaler on virtual time: production collector and decisions, called when the operator calls them (each tick
 * while the revision is not idle, at pokes, when pods change, when a wait ends), with pods asked for their numbers each second.
 */
import type { AdaptedConcurrency } from "../autoscaling/adaptive-concurrency.ts";
import { adaptConcurrency } from "../autoscaling/adaptive-concurrency.ts";
import type { CloudRunSpec } from "../autoscaling/cloud-run-spec.ts";
import type { GatewayLoadReport } from "../autoscaling/collector.ts";
import { MetricCollector, revisionKey } from "../autoscaling/collector.ts";
import { TICK_MS } from "../autoscaling/kpa.ts";
import type { LifecycleState } from "../autoscaling/lifecycle.ts";
import { instanceSeconds, observeRevision } from "../autoscaling/observe-revision.ts";
import type { WindowsSpec } from "../autoscaling/revision-windows.ts";
import { sampleSize, scrapeOrder } from "../autoscaling/sampling.ts";
import type { RevisionObservation, RevisionSpec, RevisionState, ScaleOutcome } from "../autoscaling/scale-revision.ts";
import { initialRevisionState, scaleRevision } from "../autoscaling/scale-revision.ts";
import type { EventQueue, ScheduledEvent } from "./event-queue.ts";
import type { PodSet } from "./pod-set.ts";
import type { Random } from "./random.ts";
import type { PodSecond } from "./simulated-pod.ts";

/** One decision with what it was made from. */
export interface SimulatedDecision {
  readonly atMs: number;
  readonly observation: RevisionObservation;
  readonly outcome: ScaleOutcome;
  readonly replicasBefore: number;
  /** What it was set to; equal to `replicasBefore` when it stayed. */
  readonly replicas: number;
}

export interface OperatorOptions<R> {
  readonly events: EventQueue;
  readonly random: Random;
  readonly pods: PodSet<R>;
  readonly spec: RevisionSpec;
  readonly windows: WindowsSpec;
  readonly namespace: string;
  readonly revision: string;
  readonly lifecycle: LifecycleState;
  readonly gatewaysInPathSinceMs: number;
  readonly gateways: readonly string[];
  readonly onDecision: (decision: SimulatedDecision) => void;
  /** Hears what the gateways are told: limits and demotion of pods have changed, and how long requests may wait. */
  readonly onHints: (pendingTimeoutMs: number | undefined) => void;
}

const SCRAPE_PERIOD_MS = 1000;

export class SimulatedOperator<R> {
  readonly #options: OperatorOptions<R>;
  readonly #key: string;
  readonly #collector = new MetricCollector();
  #state: RevisionState;
  #gatewaysInPathSinceMs: number | undefined;
  #active = true;
  #due: ScheduledEvent | undefined;
  #recheck: ScheduledEvent | undefined;
  #recheckedMs = Number.NaN;
  #adapted: AdaptedConcurrency = new Map();

  constructor(options: OperatorOptions<R>) {
    const { events, random, pods, namespace, revision, windows, lifecycle } = options;
    this.#options = options;
    this.#key = revisionKey(namespace, revision);
    this.#gatewaysInPathSinceMs = options.gatewaysInPathSinceMs;
    this.#state = initialRevisionState(lifecycle, pods.ready.length, events.nowMs);
    this.#collector.register(this.#key, windows, events.nowMs);
    this.#collector.retainGateways(new Set(options.gateways));
    events.at(events.nowMs + random() * TICK_MS, () => this.#tick());
    events.at(events.nowMs + random() * SCRAPE_PERIOD_MS, () => this.#scrape());
    this.wake();
  }

  /** Takes a gateway's report. */
  report(report: GatewayLoadReport): void {
    const keys = this.#collector.acceptReport(report, this.#options.events.nowMs);
    if (keys.length > 0 && (report.poke || !this.#active)) this.wake();
  }

  /** Decides at this very time, once however often it is called. */
  wake(): void {
    const { events } = this.#options;
    this.#due ??= events.at(events.nowMs, () => {
      this.#due = undefined;
      this.#reconcile();
    });
  }

  #tick(): void {
    const { events } = this.#options;
    if (this.#active) this.wake();
    events.at(events.nowMs + TICK_MS, () => this.#tick());
  }

  #scrape(): void {
    const { events, pods, random, windows, spec } = this.#options;
    const { nowMs } = events;
    const { ready } = pods;
    const seconds = new Map(ready.map(pod => [pod.name, pod.takeSecond(nowMs)]));
    if (windows.scraped && ready.length > 0) {
      const candidates = ready.map(pod => ({ name: pod.name, startedMs: pod.createdMs }));
      const order = scrapeOrder(candidates, windows.stableWindowMs, nowMs, random);
      const asked = windows.perInstance === true ? order : order.slice(0, sampleSize(ready.length));
      const readings = asked.map(name => readingOf(name, seconds.get(name)!));
      this.#collector.recordScrape(this.#key, { readyPods: ready.length, readings }, nowMs);
    }
    if (spec.policy.kind === "cloud-run" && spec.policy.cloudRun.adaptiveConcurrency) {
      this.#adapt(spec.policy.cloudRun);
    }
    events.at(nowMs + SCRAPE_PERIOD_MS, () => this.#scrape());
  }

  /** Moves the pods' limits by what their CPU did in the last second. */
  #adapt(spec: CloudRunSpec): void {
    const { events, pods, onHints } = this.#options;
    const seconds = instanceSeconds(spec, this.#collector.instancesLoad(this.#key, events.nowMs));
    const { next, adaptations } = adaptConcurrency(spec.maxConcurrency, this.#adapted, seconds);
    this.#adapted = next;
    const limits = new Map(adaptations.map(({ name, maximum }) => [name, maximum]));
    for (const pod of pods.ready) pod.limit = limits.get(pod.name) ?? pod.limit;
    onHints(undefined);
  }

  #reconcile(): void {
    const { events, pods, spec, onDecision, onHints } = this.#options;
    const { nowMs } = events;
    const live = [...pods.ready, ...pods.starting].map(({ name, createdMs, readyMs }) => ({
      name,
      createdMs,
      readySinceMs: Number.isNaN(readyMs) ? undefined : readyMs,
    }));
    const inPathSinceMs = this.#gatewaysInPathSinceMs;
    const observation = observeRevision(
      spec.policy,
      this.#collector,
      this.#key,
      live,
      inPathSinceMs,
      nowMs,
      this.#adapted,
    );
    const outcome = scaleRevision(spec, observation, this.#state, nowMs);
    const { decision, step, next } = outcome;
    this.#state = next;
    this.#gatewaysInPathSinceMs = step.mode === "serve" ? undefined : (inPathSinceMs ?? nowMs);
    const replicasBefore = pods.replicas;
    const replicas = step.replicas ?? replicasBefore;
    onDecision({ atMs: nowMs, observation, outcome, replicasBefore, replicas });

    const ofCloudRun = decision.valid && decision.policy === "cloud-run" ? decision : undefined;
    if (ofCloudRun !== undefined) {
      const demoted = new Set(ofCloudRun.demoted.map(({ name }) => name));
      for (const pod of pods.ready) pod.demoted = demoted.has(pod.name);
    }
    if (replicas !== replicasBefore) pods.scale(replicas, ofCloudRun?.stops.map(({ name }) => name) ?? []);
    if (ofCloudRun !== undefined) onHints(ofCloudRun.pendingTimeoutMs);

    this.#active = replicas > 0 || pods.all.length > 0 || !this.#collector.release(this.#key, nowMs);
    if (this.#recheck !== undefined) events.cancel(this.#recheck);
    const { recheckAtMs } = step;
    // Time has to pass before the same time is asked for again.
    const passed = recheckAtMs !== undefined && recheckAtMs <= nowMs;
    const again = passed && this.#recheckedMs === nowMs;
    this.#recheck = recheckAtMs === undefined || again ? undefined : events.at(recheckAtMs, () => this.wake());
    if (passed) this.#recheckedMs = nowMs;
  }
}

function readingOf(podName: string, { concurrency, requests, cpuUsage }: PodSecond) {
  return {
    podName,
    averageConcurrentRequests: concurrency,
    averageProxiedConcurrentRequests: concurrency,
    requestCount: requests,
    proxiedRequestCount: requests,
    ...(cpuUsage === undefined ? {} : { cpuUsage }),
  };
}
