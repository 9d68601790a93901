import { explain } from "../autoscaling/explain.ts";
import type { RevisionSpec, ScaleOutcome } from "../autoscaling/scale-revision.ts";
import type { Arrival } from "./arrivals.ts";
import type { Gateways, SimulatedRequest } from "./gateways.ts";
import { percentileOf, percentiles } from "./percentiles.ts";
import type { PodSet } from "./pod-set.ts";
import type { DecisionPoint, FlowResult, SimulationResult, TimelinePoint } from "./result.ts";
import type { SimulatedDecision } from "./simulated-operator.ts";

interface FlowRecord {
  arrived: number;
  refused: number;
  readonly latenciesMs: number[];
}

/** Writes down what happens in a simulation. */
export class Recorder {
  readonly #name: string;
  readonly #seed: number;
  readonly #horizonMs: number;
  readonly #scaling: RevisionSpec;
  readonly #latenciesMs: number[] = [];
  readonly #waitsMs: number[] = [];
  readonly #flows = new Map<string, FlowRecord>();
  readonly #timeline: TimelinePoint[] = [];
  readonly #decisions: DecisionPoint[] = [];
  #arrived = 0;
  #completed = 0;
  #queueFull = 0;
  #waitedTooLong = 0;
  #timedOut = 0;
  #coldRequests = 0;
  #coldStarts = 0;
  /** How often pods had become ready when the last cold start began; -1: there was none. */
  #coldSince = -1;
  #latest: ScaleOutcome | undefined;
  /** Since the last point of the timeline. */
  #since = { arrived: 0, completed: 0, refused: 0, waiting: 0, latenciesMs: [] as number[] };

  constructor(name: string, seed: number, horizonMs: number, scaling: RevisionSpec) {
    this.#name = name;
    this.#scaling = scaling;
    this.#seed = seed;
    this.#horizonMs = horizonMs;
  }

  arrived(arrival: Arrival, pods: PodSet<SimulatedRequest>): void {
    this.#arrived++;
    this.#since.arrived++;
    if (pods.ready.length === 0) {
      this.#coldRequests++;
      if (this.#coldSince !== pods.becameReady) this.#coldStarts++;
      this.#coldSince = pods.becameReady;
    }
    if (arrival.flow !== undefined) this.#flow(arrival.flow).arrived++;
  }

  waits(count: number): void {
    this.#since.waiting = Math.max(this.#since.waiting, count);
  }

  ended(request: SimulatedRequest): void {
    const { arrival, outcome, startedMs, endedMs } = request;
    const flow = arrival.flow === undefined ? undefined : this.#flow(arrival.flow);
    if (!Number.isNaN(startedMs)) this.#waitsMs.push(startedMs - arrival.atMs);
    if (outcome === "completed") {
      const latencyMs = endedMs - arrival.atMs;
      this.#completed++;
      this.#since.completed++;
      this.#latenciesMs.push(latencyMs);
      this.#since.latenciesMs.push(latencyMs);
      flow?.latenciesMs.push(latencyMs);
      return;
    }
    if (outcome === "queue-full") this.#queueFull++;
    else if (outcome === "waited-too-long") this.#waitedTooLong++;
    else this.#timedOut++;
    this.#since.refused++;
    if (flow !== undefined) flow.refused++;
  }

  decided({ atMs, outcome, replicasBefore, replicas }: SimulatedDecision): void {
    this.#latest = outcome;
    const { winner, lines } = explain(this.#scaling, outcome);
    if (replicas === replicasBefore && winner === this.#decisions.at(-1)?.rule) return;
    const because = lines.find(line => line.won)?.text ?? "";
    this.#decisions.push({ atMs, from: replicasBefore, to: replicas, rule: winner, because });
  }

  observe(atMs: number, pods: PodSet<SimulatedRequest>, gateways: Gateways): void {
    const { arrived, completed, refused, waiting, latenciesMs } = this.#since;
    const decision = this.#latest?.decision;
    const starting = pods.starting.length;
    this.#timeline.push({
      atMs,
      arrived,
      completed,
      refused,
      latencyP95Ms: percentileOf(
        latenciesMs.sort((a, b) => a - b),
        0.95,
      ),
      waiting,
      inFlight: gateways.inFlight,
      readyPods: pods.ready.length,
      startingPods: starting,
      drainingPods: pods.all.length - pods.ready.length - starting,
      wantedPods: pods.replicas,
      mode: this.#latest?.step.mode ?? "proxy",
      panic:
        decision?.valid === true &&
        decision.policy === "kpa" &&
        decision.explanation.panicEvent !== "none" &&
        decision.explanation.panicEvent !== "ends",
    });
    this.#since = { arrived: 0, completed: 0, refused: 0, waiting: gateways.waiting, latenciesMs: [] };
  }

  result(pods: PodSet<SimulatedRequest>): SimulationResult {
    const podMs = pods.podMs();
    const refused = this.#queueFull + this.#waitedTooLong + this.#timedOut;
    return {
      name: this.#name,
      seed: this.#seed,
      horizonMs: this.#horizonMs,
      requests: {
        arrived: this.#arrived,
        completed: this.#completed,
        queueFull: this.#queueFull,
        waitedTooLong: this.#waitedTooLong,
        timedOut: this.#timedOut,
        unfinished: this.#arrived - this.#completed - refused,
      },
      latencyMs: percentiles(this.#latenciesMs),
      waitMs: percentiles(this.#waitsMs),
      pods: {
        most: pods.most,
        started: pods.started,
        coldStarts: this.#coldStarts,
        coldRequests: this.#coldRequests,
        podSeconds: podMs.existing / 1000,
        readyPodSeconds: podMs.ready / 1000,
      },
      flows: this.#flowResults(),
      timeline: this.#timeline,
      decisions: this.#decisions,
    };
  }

  #flow(name: string): FlowRecord {
    let flow = this.#flows.get(name);
    if (flow === undefined) this.#flows.set(name, (flow = { arrived: 0, refused: 0, latenciesMs: [] }));
    return flow;
  }

  #flowResults(): FlowResult[] {
    return [...this.#flows]
      .map(([flow, { arrived, refused, latenciesMs }]) => ({
        flow,
        arrived,
        completed: latenciesMs.length,
        refused,
        latencyMs: percentiles(latenciesMs),
      }))
      .sort((a, b) => b.arrived - a.arrived || (a.flow < b.flow ? -1 : 1));
  }
}
