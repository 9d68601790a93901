/**
 * API Priority and Fairness for the seats of one gateway: priority levels with their queue sets, the schemas that lead
 * to them, limits that follow demand, Retry-After. The behaviour is that of k8s.io/apiserver's configController;
 * hack/oracles/flowcontrol holds it to that.
 *
 * Life of a request: `classify`, then `start`, which executes, queues or rejects it. A queued one is told by
 * `hooks.dispatched` or `hooks.expired`. One that executes must be finished exactly once. Nothing here waits or has
 * timers: call `tick` at `nextEventMs()`, which changes with every call. `nowMs` never goes back; its seconds are
 * those of the clock that Retry-After counts in.
 */
import type { Explanation, RequestAttributes } from "./classifier.ts";
import { Classifier } from "./classifier.ts";
import { MANDATORY_FLOW_SCHEMAS, MANDATORY_PRIORITY_LEVELS } from "./bootstrap.ts";
import type { DemandStats } from "./demand.ts";
import { DemandIntegrator, NO_DEMAND, observeDemand } from "./demand.ts";
import type { FlowHash } from "./flow-hash.ts";
import { hashFlow } from "./flow-hash.ts";
import { IndexedHeap } from "./indexed-heap.ts";
import type { SeatLimits } from "./limits.ts";
import {
  ADJUSTMENT_PERIOD_MS,
  adjustLimits,
  initialLimit,
  MAX_SEATS_ANYWHERE,
  maxSeatsPerRequest,
  nominalLimits,
  sharesOf,
} from "./limits.ts";
import type { FlowSchemaObject, PriorityLevelObject, PriorityLevelSpec } from "./objects.ts";
import {
  CATCH_ALL,
  compareFlowSchemas,
  DEFAULT_HAND_SIZE,
  DEFAULT_QUEUE_LENGTH_LIMIT,
  DEFAULT_QUEUES,
  EXEMPT,
} from "./objects.ts";
import type { QueueSnapshot, QueuingConfig, SeatRejection, SeatTicket, WorkEstimate } from "./queue-set.ts";
import { QueueSet } from "./queue-set.ts";
import { RetryAfterTracker } from "./retry-after.ts";
import { Dealer, ShuffleShardingError } from "./shuffle-sharding.ts";

/** Where a request belongs. Stays usable when the configuration changes before `start`. */
export interface Classification {
  readonly request: RequestAttributes;
  readonly schema: FlowSchemaObject;
  readonly level: PriorityLevelObject;
  /** User or namespace; empty if the schema makes one flow of all. */
  readonly flow: string;
  readonly hash: FlowHash;
  /** Seats that one request of the level may take at most. */
  readonly maxSeats: number;
}

export interface FlowRequest<T> {
  readonly classification: Classification;
  /** Seats asked for, 1 or more; taken down to `classification.maxSeats`. */
  readonly seats: number;
  /** Longest wait in a queue; the controller's `maxWaitMs` if absent. */
  readonly maxWaitMs?: number;
  readonly payload: T;
}

/** `queued` -> `executing` -> `finished`, or out of `queued` by `cancelled` or `expired`. */
export type FlowTicketState = "queued" | "executing" | "finished" | "cancelled" | "expired";

/** One request's stay. Made by `start`; only the controller changes it. */
export interface FlowTicket<T> {
  readonly payload: T;
  readonly classification: Classification;
  readonly state: FlowTicketState;
  /** Seats it takes while it executes. */
  readonly seats: number;
  readonly arrivedMs: number;
  /** When it was given its seats; NaN before. */
  readonly startedMs: number;
  /** When it stops waiting in vain. */
  readonly deadlineMs: number;
  /** How many waited in its queue when it had joined it, itself included; 0 without a queue. */
  readonly queueLength: number;
}

export type FlowRejection = SeatRejection | "time-out";

export type FlowStartResult<T> =
  | { readonly kind: "execute" | "queued"; readonly ticket: FlowTicket<T> }
  | { readonly kind: "rejected"; readonly reason: FlowRejection; readonly retryAfterS: number };

/** What the controller tells. Hooks must not call the controller: they resolve somebody's wait. */
export interface FlowControllerHooks<T> {
  /** A queued request may run now. Called from within `start`, `finish`, `configure` and `tick`. */
  readonly dispatched: (ticket: FlowTicket<T>) => void;
  /** A queued request has waited too long: to be refused with this Retry-After. Called from within `tick`. */
  readonly expired: (ticket: FlowTicket<T>, retryAfterS: number) => void;
}

export interface FlowControllerOptions<T> {
  /** Seats to divide: max-requests-inflight + max-mutating-requests-inflight. */
  readonly totalSeats: number;
  /** Longest wait of a request that brings no own limit. Upstream: a quarter of the request's timeout. */
  readonly maxWaitMs: number;
  readonly hooks: FlowControllerHooks<T>;
}

/** What came of a configuration. */
export interface ConfigurationReport {
  /** Schemas that name a level which does not exist: not used until it does. */
  readonly dangling: readonly { readonly schema: string; readonly level: string }[];
  /** Levels that cannot work and are treated as if they did not exist. */
  readonly broken: readonly { readonly level: string; readonly problem: string }[];
}

export interface LevelStatus {
  readonly level: PriorityLevelObject;
  /** Named by no object any more; goes when the last of its requests has gone. */
  readonly quiescing: boolean;
  readonly limits: SeatLimits;
  readonly currentLimit: number;
  readonly demand: DemandStats;
  /** Seats that the last adjustment aimed at; undefined for an exempt level. */
  readonly targetSeats: number | undefined;
  readonly waiting: number;
  readonly seatsWaiting: number;
  readonly executing: number;
  readonly seatsInUse: number;
  /** Requests since the level came, by what became of them. */
  readonly counts: Readonly<FlowCounts>;
}

export interface FlowCounts {
  dispatched: number;
  /** At once: over the limit, or the queue full. */
  rejected: number;
  timedOut: number;
  cancelled: number;
}

/** One level in a dump. */
export interface LevelDump<T> {
  readonly level: string;
  readonly queues: readonly (Omit<QueueSnapshot<never>, "waiting" | "executing"> & {
    readonly waiting: readonly FlowTicket<T>[];
    readonly executing: readonly FlowTicket<T>[];
  })[];
  /** Executing without having been in a queue. */
  readonly unqueued: readonly FlowTicket<T>[];
}

class Ticket<T> implements FlowTicket<T> {
  heapIndex = -1;
  state: FlowTicketState = "queued";
  level!: Level<T>;
  seat!: SeatTicket<Ticket<T>>;
  readonly payload: T;
  readonly classification: Classification;
  readonly seats: number;
  readonly arrivedMs: number;
  readonly deadlineMs: number;

  constructor(request: FlowRequest<T>, nowMs: number, maxWaitMs: number) {
    this.payload = request.payload;
    this.classification = request.classification;
    this.seats = Math.max(1, Math.min(request.seats, request.classification.maxSeats));
    this.arrivedMs = nowMs;
    this.deadlineMs = nowMs + (request.maxWaitMs ?? maxWaitMs);
  }

  get startedMs(): number {
    return this.seat.startedMs;
  }

  get queueLength(): number {
    return this.seat.queueLength;
  }
}

interface Level<T> {
  object: PriorityLevelObject;
  queuing: QueuingConfig;
  quiescing: boolean;
  limits: SeatLimits;
  currentLimit: number;
  /** Seats that one request may take at most. */
  maxSeats: number;
  demand: DemandStats;
  targetSeats: number | undefined;
  readonly counts: FlowCounts;
  readonly integrator: DemandIntegrator;
  /** Made at the end of the first configuration that has the level. */
  queueSet: QueueSet<Ticket<T>> | undefined;
}

const NO_LIMITS: SeatLimits = { nominal: 0, min: 0, max: 0 };
const NO_FLOW: FlowHash = { high: 0, low: 0 };
/** Flow hashes kept; beyond that they are computed again. */
const MAX_KNOWN_FLOWS = 10_000;

export class FlowController<T> {
  readonly #options: FlowControllerOptions<T>;
  #totalSeats: number;
  #objects: readonly PriorityLevelObject[] = [];
  #schemaObjects: readonly FlowSchemaObject[] = [];
  #levels = new Map<string, Level<T>>();
  #classifier = new Classifier([]);
  #nextAdjustmentMs: number;
  #fairFraction = 0;
  readonly #retryAfter = new RetryAfterTracker();
  readonly #deadlines = new IndexedHeap<Ticket<T>>((a, b) => a.deadlineMs < b.deadlineMs);
  /** By schema, then flow. */
  #knownFlows = new Map<string, Map<string, FlowHash>>();
  #knownFlowCount = 0;

  /** Starts with the mandatory levels and schemas alone. */
  constructor(options: FlowControllerOptions<T>, nowMs: number) {
    this.#options = options;
    this.#totalSeats = options.totalSeats;
    this.#nextAdjustmentMs = nowMs + ADJUSTMENT_PERIOD_MS;
    this.#digest(nowMs);
  }

  /**
   * Takes on all objects of both kinds, in any order, with requests queued and executing. Levels that are gone take no
   * new requests, and stay with a part of the seats until their last request has gone.
   */
  configure(
    levels: readonly PriorityLevelObject[],
    schemas: readonly FlowSchemaObject[],
    nowMs: number,
    totalSeats = this.#totalSeats,
  ): ConfigurationReport {
    this.#objects = levels;
    this.#schemaObjects = schemas;
    this.#totalSeats = totalSeats;
    return this.#digest(nowMs);
  }

  /** The schemas in use, in the order they are tried; those that dangle are not among them. */
  get schemas(): readonly FlowSchemaObject[] {
    return this.#classifier.schemas;
  }

  /** Seats over target that the last adjustment gave to levels within their bounds; 0 when there was nothing to divide. */
  get fairFraction(): number {
    return this.#fairFraction;
  }

  /** Which schema, level and flow a request belongs to. A few microseconds at most, whatever the number of schemas. */
  classify(request: RequestAttributes): Classification {
    return this.#classificationOf(this.#classifier.classify(request)!, request);
  }

  /** As `classify`, with what stood against the schemas before. For people. */
  explain(request: RequestAttributes): Explanation & { readonly classification: Classification } {
    const explanation = this.#classifier.explain(request);
    return { ...explanation, classification: this.#classificationOf(explanation.schema!, request) };
  }

  /** The queues a flow may join in its level, and the one it would join now; undefined if the level has no queues. */
  queueOf({ level, hash }: Classification): { readonly hand: readonly number[]; readonly queue: number } | undefined {
    return this.#levels.get(level.name)?.queueSet?.peekQueue(hash);
  }

  start(request: FlowRequest<T>, nowMs: number): FlowStartResult<T> {
    const { classification } = request;
    // The level may have gone since the request was classified.
    const level = this.#levels.get(classification.level.name) ?? this.#levels.get(CATCH_ALL)!;
    const ticket = new Ticket(request, nowMs, this.#options.maxWaitMs);
    const work: WorkEstimate = { initialSeats: ticket.seats, finalSeats: 0, additionalLatencyMs: 0 };
    const queueSet = level.queueSet!;
    const result = queueSet.start(ticket, work, classification.hash, nowMs);
    if (result.kind === "rejected") {
      level.counts.rejected++;
      const retryAfterS = this.#retryAfter.refuse(level.object.name, nowMs);
      this.#reap(level, nowMs);
      return { kind: "rejected", reason: result.reason, retryAfterS };
    }
    ticket.level = level;
    ticket.seat = result.ticket;
    if (result.ticket.state === "executing") {
      level.counts.dispatched++;
      ticket.state = "executing";
      return { kind: "execute", ticket };
    }
    this.#deadlines.push(ticket);
    return { kind: "queued", ticket };
  }

  /** An executing request has come to its end, however it ended. False if it was not executing (any more). */
  finish(ticket: FlowTicket<T>, nowMs: number): boolean {
    const own = ticket as Ticket<T>;
    if (own.state !== "executing") return false;
    own.state = "finished";
    own.level.queueSet!.finish(own.seat, nowMs);
    this.#reap(own.level, nowMs);
    return true;
  }

  /** A queued request's client is gone. False if it was not queued (any more): then `finish` it if it executes. */
  cancel(ticket: FlowTicket<T>, nowMs: number): boolean {
    if (ticket.state !== "queued") return false;
    this.#leave(ticket as Ticket<T>, "cancelled", nowMs);
    return true;
  }

  /** When `tick` has something to do next. */
  nextEventMs(): number {
    let next = Math.min(this.#nextAdjustmentMs, this.#deadlines.peek()?.deadlineMs ?? Infinity);
    for (const { queueSet } of this.#levels.values()) next = Math.min(next, queueSet?.nextLingerMs() ?? Infinity);
    return next;
  }

  /** Ends waits that were too long, and adjusts the limits when it is time. */
  tick(nowMs: number): void {
    for (const { queueSet } of this.#levels.values()) queueSet?.tick(nowMs);
    for (let ticket = this.#deadlines.peek(); ticket !== undefined; ticket = this.#deadlines.peek()) {
      if (ticket.deadlineMs > nowMs) break;
      const retryAfterS = this.#leave(ticket, "expired", nowMs);
      this.#options.hooks.expired(ticket, retryAfterS);
    }
    if (nowMs < this.#nextAdjustmentMs) return;
    this.#nextAdjustmentMs = nowMs + ADJUSTMENT_PERIOD_MS;
    this.#adjust(nowMs);
  }

  /** All levels by name, for metrics and people. */
  status(): LevelStatus[] {
    return [...this.#levels.values()].map(level => {
      const queueSet = level.queueSet!;
      return {
        level: level.object,
        quiescing: level.quiescing,
        limits: level.limits,
        currentLimit: level.currentLimit,
        demand: level.demand,
        targetSeats: level.targetSeats,
        waiting: queueSet.waiting,
        seatsWaiting: queueSet.seatsWaiting,
        executing: queueSet.executing,
        seatsInUse: queueSet.seatsInUse,
        counts: { ...level.counts },
      };
    });
  }

  /** The queues and requests of each level, for people. Costs O(requests). */
  dump(): LevelDump<T>[] {
    const tickets = (seats: readonly SeatTicket<Ticket<T>>[]): Ticket<T>[] => seats.map(({ payload }) => payload);
    return [...this.#levels.values()].map(({ object, queueSet }) => {
      const { queues, unqueued } = queueSet!.snapshot();
      return {
        level: object.name,
        queues: queues.map(queue => ({
          ...queue,
          waiting: tickets(queue.waiting),
          executing: tickets(queue.executing),
        })),
        unqueued: tickets(unqueued),
      };
    });
  }

  #classificationOf(schema: FlowSchemaObject, request: RequestAttributes): Classification {
    const level = this.#levels.get(schema.spec.priorityLevelConfiguration.name)!;
    const { object, queuing, maxSeats } = level;
    if (queuing.kind === "exempt") return { request, schema, level: object, flow: "", hash: NO_FLOW, maxSeats };
    const method = schema.spec.distinguisherMethod?.type;
    const flow =
      method === "ByUser" ? request.user : method === "ByNamespace" ? (request.resource?.namespace ?? "") : "";
    return { request, schema, level: object, flow, hash: this.#hashOf(schema.name, flow), maxSeats };
  }

  #hashOf(schema: string, flow: string): FlowHash {
    let flows = this.#knownFlows.get(schema);
    const known = flows?.get(flow);
    if (known !== undefined) return known;
    if (this.#knownFlowCount >= MAX_KNOWN_FLOWS) {
      this.#knownFlows = new Map();
      this.#knownFlowCount = 0;
      flows = undefined;
    }
    if (flows === undefined) this.#knownFlows.set(schema, (flows = new Map<string, FlowHash>()));
    const hash = hashFlow(schema, flow);
    flows.set(flow, hash);
    this.#knownFlowCount++;
    return hash;
  }

  #leave(ticket: Ticket<T>, state: "cancelled" | "expired", nowMs: number): number {
    ticket.state = state;
    if (state === "expired") ticket.level.counts.timedOut++;
    else ticket.level.counts.cancelled++;
    this.#deadlines.remove(ticket);
    ticket.level.queueSet!.cancel(ticket.seat, nowMs);
    const retryAfterS = this.#retryAfter.refuse(ticket.level.object.name, nowMs);
    this.#reap(ticket.level, nowMs);
    return retryAfterS;
  }

  #dispatched(ticket: Ticket<T>): void {
    ticket.state = "executing";
    ticket.level.counts.dispatched++;
    this.#deadlines.remove(ticket);
    this.#options.hooks.dispatched(ticket);
  }

  /** A level that is unwanted goes with its last request. */
  #reap(level: Level<T>, nowMs: number): void {
    if (level.quiescing && level.queueSet!.idle) this.#digest(nowMs);
  }

  #digest(nowMs: number): ConfigurationReport {
    const levels = new Map<string, Level<T>>();
    const broken: { level: string; problem: string }[] = [];
    for (const object of [...this.#objects].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const queuing = queuingOf(object);
      if (typeof queuing === "string") {
        broken.push({ level: object.name, problem: queuing });
        continue;
      }
      const level = this.#levels.get(object.name) ?? newLevel<T>(object, queuing, nowMs);
      level.object = object;
      level.queuing = queuing;
      level.quiescing = false;
      levels.set(object.name, level);
    }
    const dangling = this.#digestSchemas(levels);
    for (const [name, level] of this.#levels) {
      if (levels.has(name)) continue;
      if (name !== EXEMPT && name !== CATCH_ALL) {
        if (level.queueSet!.idle) continue;
        level.quiescing = true;
      }
      levels.set(name, level);
    }
    for (const { name, spec } of MANDATORY_PRIORITY_LEVELS) {
      if (levels.has(name)) continue;
      const object = { name, uid: "", spec };
      levels.set(name, newLevel<T>(object, queuingOf(object) as QueuingConfig, nowMs));
    }
    const shareSum = [...levels.values()].reduce((sum, { object }) => sum + sharesOf(object.spec), 0);
    for (const level of levels.values()) {
      level.limits = nominalLimits(level.object.spec, this.#totalSeats, shareSum);
      // As upstream, a level that loses its queues keeps what it allowed while it had them.
      if (level.queuing.kind === "queue") {
        level.maxSeats = maxSeatsPerRequest(level.limits.nominal, level.queuing.handSize);
      }
      if (level.queueSet === undefined) level.currentLimit = initialLimit(level.limits);
    }
    this.#levels = levels;
    this.#retryAfter.keepOnly(new Set(levels.keys()));
    this.#adjust(nowMs);
    return { dangling, broken };
  }

  #digestSchemas(levels: ReadonlyMap<string, unknown>): ConfigurationReport["dangling"] {
    const dangling: { schema: string; level: string }[] = [];
    const usable = this.#schemaObjects.filter(({ name, spec }) => {
      const level = spec.priorityLevelConfiguration.name;
      if (levels.has(level)) return true;
      dangling.push({ schema: name, level });
      return false;
    });
    const named = (name: string): boolean => usable.some(schema => schema.name === name);
    const missing = (name: string): FlowSchemaObject[] =>
      MANDATORY_FLOW_SCHEMAS.filter(object => object.name === name && !named(name)).map(o => ({ ...o, uid: "" }));
    this.#classifier = new Classifier([...missing(EXEMPT), ...usable.sort(compareFlowSchemas), ...missing(CATCH_ALL)]);
    return dangling.sort((a, b) => (a.schema < b.schema ? -1 : 1));
  }

  #adjust(nowMs: number): void {
    const levels = [...this.#levels.values()];
    for (const level of levels) level.demand = observeDemand(level.demand, level.integrator.reset(nowMs));
    const { current, targets, fairFraction } = adjustLimits(
      levels.map(({ queuing, limits, demand, currentLimit }) => ({
        exempt: queuing.kind === "exempt",
        limits,
        demand,
        current: currentLimit,
      })),
    );
    this.#fairFraction = fairFraction;
    for (const [i, level] of levels.entries()) {
      level.currentLimit = current[i]!;
      level.targetSeats = targets[i];
      if (level.queueSet !== undefined) level.queueSet.configure(level.queuing, level.currentLimit, nowMs);
      else {
        const hooks = {
          dispatched: ({ payload }: SeatTicket<Ticket<T>>) => this.#dispatched(payload),
          demandChanged: (seats: number, atMs: number) => level.integrator.set(seats, atMs),
        };
        level.queueSet = new QueueSet<Ticket<T>>(level.queuing, level.currentLimit, hooks, nowMs);
      }
    }
  }
}

function newLevel<T>(object: PriorityLevelObject, queuing: QueuingConfig, nowMs: number): Level<T> {
  return {
    object,
    queuing,
    quiescing: false,
    limits: NO_LIMITS,
    currentLimit: 0,
    maxSeats: MAX_SEATS_ANYWHERE,
    demand: NO_DEMAND,
    targetSeats: undefined,
    counts: { dispatched: 0, rejected: 0, timedOut: 0, cancelled: 0 },
    integrator: new DemandIntegrator(nowMs),
    queueSet: undefined,
  };
}

/** What a level does with requests over its limit, or what is wrong with it. */
function queuingOf({ name, spec }: { name: string; spec: PriorityLevelSpec }): QueuingConfig | string {
  if ((spec.type === "Limited") !== (spec.limited !== undefined)) return `type ${spec.type} and limited do not agree`;
  if ((spec.type === "Exempt") !== (spec.exempt !== undefined)) return `type ${spec.type} and exempt do not agree`;
  if ((spec.type === "Exempt") !== (name === EXEMPT)) return `only the level ${EXEMPT} may be and must be Exempt`;
  if (spec.limited === undefined) return { kind: "exempt" };
  const { type, queuing } = spec.limited.limitResponse;
  if (type === "Reject") return queuing === undefined ? { kind: "reject" } : "limitResponse Reject has queuing";
  if (queuing === undefined) return "limitResponse Queue lacks queuing";
  const queues = queuing.queues ?? DEFAULT_QUEUES;
  const handSize = queuing.handSize ?? DEFAULT_HAND_SIZE;
  const queueLengthLimit = queuing.queueLengthLimit ?? DEFAULT_QUEUE_LENGTH_LIMIT;
  try {
    new Dealer(queues, handSize);
  } catch (error) {
    if (error instanceof ShuffleShardingError) return error.message;
    throw error;
  }
  return { kind: "queue", queues, handSize, queueLengthLimit };
}
