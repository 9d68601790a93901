/**
 * The gateways in front of the revision: requests wait in the production place queue until a pod has room. One queue stands for
 * all gateways, since order and capacity hold over all of them; each measures and reports its own requests.
 */
import { choosePod } from "../balancing/choose-pod.ts";
import type { GatewayLoadReport } from "../autoscaling/collector.ts";
import type { FlowHash } from "../flowcontrol/flow-hash.ts";
import { hashFlow } from "../flowcontrol/flow-hash.ts";
import type { PlaceLevel, PlacePolicy, PlaceTicket } from "../flowcontrol/place-queue.ts";
import { PlaceQueue } from "../flowcontrol/place-queue.ts";
import type { Arrival } from "./arrivals.ts";
import type { EventQueue, ScheduledEvent } from "./event-queue.ts";
import type { PodSet } from "./pod-set.ts";
import type { Random } from "./random.ts";
import type { SimulatedPod } from "./simulated-pod.ts";
import { TimeIntegral } from "./time-integral.ts";

/** How a request ended, or did not. */
export type RequestOutcome = "waiting" | "running" | "completed" | "queue-full" | "waited-too-long" | "timed-out";

export interface SimulatedRequest {
  readonly arrival: Arrival;
  readonly gateway: number;
  /** No pod was ready when it came. */
  readonly cold: boolean;
  outcome: RequestOutcome;
  /** When it got its place; NaN before. */
  startedMs: number;
  /** When it was answered; NaN before. */
  endedMs: number;
}

export interface QueueSettings {
  readonly policy: PlacePolicy;
  readonly maxWaiting: number;
  /** Longest wait; undefined: as the scaling policy says, else the request's timeout. */
  readonly maxWaitMs: number | undefined;
  readonly levels: ReadonlyMap<string, PlaceLevel>;
}

export interface GatewaysOptions {
  readonly events: EventQueue;
  readonly random: Random;
  readonly count: number;
  readonly queue: QueueSettings;
  /** Bound of a request from its place on. */
  readonly requestTimeoutMs: number;
  readonly pods: PodSet<SimulatedRequest>;
  readonly namespace: string;
  readonly revision: string;
  /** When the autoscaler is told at once of a request that waits. */
  readonly pokesWhen: "no-pod" | "no-room";
  readonly onReport: (report: GatewayLoadReport) => void;
  readonly onEnded: (request: SimulatedRequest) => void;
}

const QUEUES = 64;
const HAND_SIZE = 8;
const DEFAULT_LEVEL = "";
const REPORT_PERIOD_MS = 1000;
/** Requests that need a pod and come together are one poke. */
const POKE_GAP_MS = 50;

class Gateway {
  readonly name: string;
  readonly concurrency: TimeIntegral;
  requests = 0;
  waiting = 0;
  inFlight = 0;
  sequence = 0;
  pokedMs = Number.NEGATIVE_INFINITY;
  poke: ScheduledEvent | undefined;
  /** How many wait, as it last told. */
  toldWaiting = 0;
  /** It had traffic in the last report, so one more follows. */
  hadTraffic = false;

  constructor(name: string, nowMs: number) {
    this.name = name;
    this.concurrency = new TimeIntegral(nowMs);
  }
}

export class Gateways {
  readonly #options: GatewaysOptions;
  readonly #queue: PlaceQueue<SimulatedRequest>;
  readonly #gateways: readonly Gateway[];
  readonly #tickets = new Map<SimulatedRequest, PlaceTicket<SimulatedRequest>>();
  readonly #flows = new Map<string, FlowHash>();
  #policyWaitMs: number | undefined;
  #expiry: ScheduledEvent | undefined;

  constructor(options: GatewaysOptions) {
    this.#options = options;
    const { events, random, count } = options;
    this.#queue = new PlaceQueue(this.#queueConfig(), 0);
    this.#gateways = Array.from({ length: count }, (_, i) => new Gateway(`gateway-${i}`, events.nowMs));
    for (const gateway of this.#gateways) {
      const firstMs = events.nowMs + random() * REPORT_PERIOD_MS;
      events.at(firstMs, () => this.#reportEachSecond(gateway));
    }
  }

  get waiting(): number {
    return this.#queue.waiting;
  }

  get inFlight(): number {
    return this.#queue.inUse;
  }

  get names(): readonly string[] {
    return this.#gateways.map(gateway => gateway.name);
  }

  arrive(arrival: Arrival): void {
    const { events, random, pods, onEnded } = this.#options;
    const { nowMs } = events;
    const gatewayIndex = Math.floor(random() * this.#gateways.length);
    const gateway = this.#gateways[gatewayIndex]!;
    const request: SimulatedRequest = {
      arrival,
      gateway: gatewayIndex,
      cold: pods.ready.length === 0,
      outcome: "waiting",
      startedMs: Number.NaN,
      endedMs: Number.NaN,
    };
    gateway.requests++;
    const flow = this.#hashOf(arrival.flow ?? "");
    const result = this.#queue.enqueue({ level: arrival.level ?? DEFAULT_LEVEL, flow, payload: request }, nowMs);
    if (result.kind === "rejected") {
      request.outcome = "queue-full";
      request.endedMs = nowMs;
      onEnded(request);
      return;
    }
    this.#tickets.set(request, result.ticket);
    gateway.waiting++;
    gateway.concurrency.add(1, nowMs);
    if (result.displaced !== undefined) this.#leave(result.displaced.payload, "queue-full");
    this.#grant();
    if (request.outcome !== "waiting") return;
    this.#armExpiry();
    if (request.cold || (this.#options.pokesWhen === "no-room" && gateway.waiting > gateway.toldWaiting))
      this.#poke(gateway);
  }

  /** Takes on that pods came or went, or that their limits changed. */
  podsChanged(): void {
    this.#setCapacity();
    this.#grant();
  }

  /** Takes on the autoscaler's advice: limits and demotion of pods changed; and the longest wait, where it says one. */
  advise(pendingTimeoutMs: number | undefined): void {
    if (pendingTimeoutMs !== undefined && pendingTimeoutMs !== this.#policyWaitMs) {
      this.#policyWaitMs = pendingTimeoutMs;
      const config = this.#queueConfig();
      this.#queue.configure(config);
      this.#queue.setDeadlines(({ arrival }) => arrival.atMs + config.maxWaitMs);
      this.#armExpiry();
    }
    this.podsChanged();
  }

  /** A request has ended at its pod. */
  ended(request: SimulatedRequest): void {
    const { nowMs } = this.#options.events;
    const ticket = this.#tickets.get(request);
    if (ticket === undefined) return;
    this.#tickets.delete(request);
    this.#queue.release(ticket, nowMs);
    const gateway = this.#gateways[request.gateway]!;
    gateway.inFlight--;
    gateway.concurrency.add(-1, nowMs);
    request.outcome = request.arrival.serviceMs > this.#options.requestTimeoutMs ? "timed-out" : "completed";
    request.endedMs = nowMs;
    this.#options.onEnded(request);
    this.#setCapacity();
    this.#grant();
  }

  #queueConfig() {
    const { queue, requestTimeoutMs } = this.#options;
    return {
      policy: queue.policy,
      maxWaiting: queue.maxWaiting,
      maxWaitMs: queue.maxWaitMs ?? this.#policyWaitMs ?? requestTimeoutMs,
      levels: queue.levels,
      queues: QUEUES,
      handSize: HAND_SIZE,
    };
  }

  #hashOf(flow: string): FlowHash {
    let hash = this.#flows.get(flow);
    if (hash === undefined) this.#flows.set(flow, (hash = hashFlow("", flow)));
    return hash;
  }

  #setCapacity(): void {
    let free = 0;
    for (const pod of this.#options.pods.ready) free += Math.max(0, pod.limit - pod.inFlight);
    this.#queue.setCapacity(this.#queue.inUse + free);
  }

  #grant(): void {
    const { events, pods, random, requestTimeoutMs } = this.#options;
    const { nowMs } = events;
    let preferred: SimulatedPod<SimulatedRequest>[] | undefined;
    let demoted: SimulatedPod<SimulatedRequest>[] = [];
    for (let ticket = this.#queue.takeNext(nowMs); ticket !== undefined; ticket = this.#queue.takeNext(nowMs)) {
      if (preferred === undefined) {
        const ready = pods.ready;
        preferred = ready.filter(pod => !pod.demoted);
        demoted = ready.filter(pod => pod.demoted);
      }
      const pod = choosePod(preferred, random) ?? choosePod(demoted, random);
      if (pod === undefined) throw new Error("a place was given and no pod has room");
      const request = ticket.payload;
      const gateway = this.#gateways[request.gateway]!;
      gateway.waiting--;
      gateway.inFlight++;
      request.outcome = "running";
      request.startedMs = nowMs;
      pods.begins(pod, request, Math.min(request.arrival.serviceMs, requestTimeoutMs));
    }
  }

  #leave(request: SimulatedRequest, outcome: RequestOutcome): void {
    const { nowMs } = this.#options.events;
    this.#tickets.delete(request);
    const gateway = this.#gateways[request.gateway]!;
    gateway.waiting--;
    gateway.concurrency.add(-1, nowMs);
    request.outcome = outcome;
    request.endedMs = nowMs;
    this.#options.onEnded(request);
  }

  #armExpiry(): void {
    const { events } = this.#options;
    const dueMs = this.#queue.nextExpiryMs();
    if (dueMs === undefined || (this.#expiry !== undefined && this.#expiry.atMs <= dueMs)) return;
    if (this.#expiry !== undefined) events.cancel(this.#expiry);
    this.#expiry = events.at(dueMs, () => {
      this.#expiry = undefined;
      for (const ticket of this.#queue.expire(events.nowMs)) this.#leave(ticket.payload, "waited-too-long");
      this.#armExpiry();
    });
  }

  #poke(gateway: Gateway): void {
    const { events } = this.#options;
    gateway.poke ??= events.at(gateway.pokedMs + POKE_GAP_MS, () => {
      gateway.poke = undefined;
      gateway.pokedMs = events.nowMs;
      if (gateway.waiting > 0) this.#send(gateway, gateway.concurrency.value, true);
    });
  }

  #reportEachSecond(gateway: Gateway): void {
    const { events } = this.#options;
    const average = gateway.concurrency.takeAverage(events.nowMs);
    const hasTraffic = average > 0 || gateway.requests > 0;
    this.#send(gateway, average, false, hasTraffic || gateway.hadTraffic);
    gateway.hadTraffic = hasTraffic;
    gateway.requests = 0;
    events.at(events.nowMs + REPORT_PERIOD_MS, () => this.#reportEachSecond(gateway));
  }

  #send(gateway: Gateway, averageConcurrentRequests: number, poke: boolean, told = true): void {
    const { namespace, revision, events, onReport } = this.#options;
    gateway.toldWaiting = gateway.waiting;
    onReport({
      gateway: gateway.name,
      instance: "simulated",
      sequence: ++gateway.sequence,
      timestampMs: events.nowMs,
      poke,
      revisions: told
        ? [
            {
              namespace,
              revision,
              averageConcurrentRequests,
              requestCount: gateway.requests,
              waiting: gateway.waiting,
              inFlight: gateway.inFlight,
            },
          ]
        : [],
    });
  }
}
