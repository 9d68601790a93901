/**
 * The operator's autoscaler on virtual time: production collector and decisions, called when the operator calls them (each tick
 * while the revision is not idle, at pokes, when pods change, when a wait ends), with pods asked for their numbers each second.
 */
import type { GatewayLoadReport } from "../autoscaling/collector.ts";
import { MetricCollector, revisionKey } from "../autoscaling/collector.ts";
import { TICK_MS } from "../autoscaling/kpa.ts";
import type { WindowsSpec } from "../autoscaling/revision-windows.ts";
import { sampleSize, scrapeOrder } from "../autoscaling/sampling.ts";
import type { LifecycleState } from "../autoscaling/lifecycle.ts";
import type { RevisionObservation, RevisionSpec, RevisionState, ScaleOutcome } from "../autoscaling/scale-revision.ts";
import { initialRevisionState, scaleRevision } from "../autoscaling/scale-revision.ts";
import type { EventQueue, ScheduledEvent } from "./event-queue.ts";
import type { PodSet } from "./pod-set.ts";
import type { Random } from "./random.ts";

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
  readonly onDecision: (decision: SimulatedDecision) => void;
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

  constructor(options: OperatorOptions<R>) {
    const { events, random, pods, namespace, revision, windows, lifecycle } = options;
    this.#options = options;
    this.#key = revisionKey(namespace, revision);
    this.#gatewaysInPathSinceMs = events.nowMs;
    this.#state = initialRevisionState(lifecycle, pods.ready.length, events.nowMs);
    this.#collector.register(this.#key, windows, events.nowMs);
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
    const { events, pods, random, windows } = this.#options;
    const { nowMs } = events;
    const { ready } = pods;
    const seconds = new Map(ready.map(pod => [pod.name, pod.takeSecond(nowMs)]));
    if (windows.scraped && ready.length > 0) {
      const candidates = ready.map(pod => ({ name: pod.name, startedMs: pod.createdMs }));
      const order = scrapeOrder(candidates, windows.stableWindowMs, nowMs, random);
      const readings = order.slice(0, sampleSize(ready.length)).map(podName => {
        const { concurrency, requests, cpuUsage } = seconds.get(podName)!;
        return {
          podName,
          averageConcurrentRequests: concurrency,
          averageProxiedConcurrentRequests: concurrency,
          requestCount: requests,
          proxiedRequestCount: requests,
          ...(cpuUsage === undefined ? {} : { cpuUsage }),
        };
      });
      this.#collector.recordScrape(this.#key, { readyPods: ready.length, readings }, nowMs);
    }
    events.at(nowMs + SCRAPE_PERIOD_MS, () => this.#scrape());
  }

  #reconcile(): void {
    const { events, pods, spec, onDecision } = this.#options;
    const { nowMs } = events;
    const observation: RevisionObservation = {
      readyPods: pods.ready.length,
      load: this.#collector.load(this.#key, spec.policy.kpa.metric, nowMs),
      gatewaysInPathSinceMs: this.#gatewaysInPathSinceMs,
    };
    const outcome = scaleRevision(spec, observation, this.#state, nowMs);
    const { step, next } = outcome;
    this.#state = next;
    this.#gatewaysInPathSinceMs = step.mode === "serve" ? undefined : (this.#gatewaysInPathSinceMs ?? nowMs);
    const replicasBefore = pods.replicas;
    const replicas = step.replicas ?? replicasBefore;
    onDecision({ atMs: nowMs, observation, outcome, replicasBefore, replicas });
    if (replicas !== replicasBefore) pods.scale(replicas, []);
    this.#active = replicas > 0 || pods.all.length > 0 || !this.#collector.release(this.#key, nowMs);

    if (this.#recheck !== undefined) events.cancel(this.#recheck);
    this.#recheck =
      step.recheckAtMs === undefined || step.recheckAtMs <= nowMs
        ? undefined
        : events.at(step.recheckAtMs, () => this.wake());
    if (step.recheckAtMs !== undefined && step.recheckAtMs <= nowMs) this.wake();
  }
}
