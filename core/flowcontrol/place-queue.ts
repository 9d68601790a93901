/**
 * The queue for a place at a revision: who may send the next request to the revision's pods.
 *
 * Theory. Capacity is a number of places D; a request holds one place for as long as it runs, which nobody knows
 * beforehand. Two stages of start-time fair queuing share the places: priority levels by weight, and inside a level its
 * queues evenly. (P. Goyal, H. Vin, H. Cheng, "Start-time Fair Queuing", SIGCOMM 1996: fair whatever the rate of the
 * server, hence usable as a stage inside a stage; W. Jin, J. Chase, J. Kaur, "Interposed Proportional Sharing", SIGMETRICS
 * 2004: with D requests in service, SFQ(D).) Shuffle sharding deals a flow a hand of queues; it stays with the one that
 * holds its requests, else takes the shortest. So a flow has one queue's share however much it brings, and nearly always
 * a queue to itself: with 64 queues and hands of 8, 16 flows at work leave a further one none with a chance of less than
 * (16/64)^8 = 1.5e-5.
 *
 * Each level and each queue has a start tag. The one with the smallest tag goes next and its tag moves on by the
 * request's cost over its weight: at first an estimate, put right when the request leaves its place and its place-time
 * is known. An idle one that comes back starts at the virtual time (the tag last served), so it neither saves up
 * credit nor pays for having used what nobody wanted.
 *
 * Bounds. Let c be the longest place-time (and estimate) of f and g, two levels (or two queues of one level) that have
 * requests waiting throughout an interval, and w their weights. The place-time of the requests they are given in it
 * differs by
 *
 *     |W_f / w_f - W_g / w_g| <= (4 D + 1) (c_f / w_f + c_g / w_g)
 *
 * and by no more than c_f / w_f + c_g / w_g where the estimates are exact (then this is plain SFQ). Derivation: tags of
 * f and g drift apart by at most one charge when f is served, plus the corrections of the at most D requests that are
 * running (2 D + 1 at both ends together), and tags differ from place-time by the corrections still owed at both ends
 * (2 D). Each service moves a tag by at least 1 ms of cost, so every waiting level with shares and every queue in it is
 * served after finitely many others: no starvation among them.
 *
 * Classes. `exempt` levels go before all others, levels of weight 0 after all others (they have no share of their own).
 * Work-conserving: `takeNext` gives a place whenever one is free and anybody waits. Hard: never more than `capacity`.
 */
import type { FlowHash } from "./flow-hash.ts";
import { IndexedHeap } from "./indexed-heap.ts";
import { Dealer } from "./shuffle-sharding.ts";

/** `fair`: as above. `fifo`: in order of arrival, levels and flows notwithstanding. */
export type PlacePolicy = "fair" | "fifo";

/** How a priority level takes part. `weight` = its nominal concurrency shares, 0 or more. */
export type PlaceLevel = { readonly kind: "exempt" } | { readonly kind: "limited"; readonly weight: number };

export interface PlaceQueueConfig {
  readonly policy: PlacePolicy;
  /** Requests that may wait, all levels together; further ones displace one of the longest queue or are rejected. */
  readonly maxWaiting: number;
  /** Longest wait of a request that brings no own limit. */
  readonly maxWaitMs: number;
  /** By name. A level that is not in it takes part with weight 1. */
  readonly levels: ReadonlyMap<string, PlaceLevel>;
  /** Queues of a level, and how many of them a flow is dealt. As for a priority level: 64 and 8. */
  readonly queues: number;
  readonly handSize: number;
}

export interface PlaceRequest<T> {
  /** Name of the priority level. */
  readonly level: string;
  readonly flow: FlowHash;
  /** Longest wait of this request; the configuration's `maxWaitMs` if absent. */
  readonly maxWaitMs?: number;
  /** Whatever the caller wants back with the ticket. */
  readonly payload: T;
}

/**
 * `waiting` -> `granted` (holds a place) -> `released`; or out of `waiting` by `cancelled` (the caller left), `expired`
 * (waited too long) or `displaced` (pushed out by a request of a shorter queue).
 */
export type PlaceState = "waiting" | "granted" | "released" | "cancelled" | "expired" | "displaced";

/** One request's stay. Made by `enqueue`; only the queue changes it. */
export interface PlaceTicket<T> {
  readonly payload: T;
  readonly level: string;
  readonly state: PlaceState;
  readonly enqueuedMs: number;
  readonly deadlineMs: number;
  /** When the place was given; NaN before. */
  readonly grantedMs: number;
}

/** No room to wait. */
export class PlaceQueueFullError extends Error {
  readonly code = "PLACE_QUEUE_FULL";
  readonly waiting: number;
  readonly limit: number;
  constructor(waiting: number, limit: number) {
    super(`place queue full: ${waiting} waiting, limit ${limit}`);
    this.name = "PlaceQueueFullError";
    this.waiting = waiting;
    this.limit = limit;
  }
}

/** `displaced`: a ticket that had to leave for this one; its caller is to be told as if it had been rejected. */
export type EnqueueResult<T> =
  | { readonly kind: "queued"; readonly ticket: PlaceTicket<T>; readonly displaced: PlaceTicket<T> | undefined }
  | { readonly kind: "rejected"; readonly error: PlaceQueueFullError };

/** One priority level in a snapshot. */
export interface PlaceLevelSnapshot {
  readonly level: string;
  readonly waiting: number;
  readonly inUse: number;
  /** Lengths of its queues that have requests, longest first. */
  readonly queueLengths: readonly number[];
}

const FIRST_ESTIMATE_MS = 100;
const MIN_COST_MS = 1;
/** Weight of the newest place-time in the moving average that estimates the next. */
const ESTIMATE_GAIN = 1 / 8;
/** Level and queue of everybody under the policy `fifo`. */
const FIFO = "";
const FIFO_HAND: readonly number[] = [0];

/** What start-time fair queuing orders: a level among levels, or a queue among the queues of its level. */
interface Node {
  heapIndex: number;
  startTag: number;
  /** Requests waiting in a queue; 0 for a level. */
  length: number;
  /** When it was last served, as a count of services: the longer ago, the earlier among equal tags. */
  lastServed: number;
  /** When it last came to wait, as a count of arrivals: the last resort among equals. */
  entered: number;
  /** The busy period that startTag belongs to. */
  busyPeriod: number;
}

/** Among equal tags the shorter queue goes first: requests alike in cost make many, and a mouse must not lose them all. */
function goesBefore(a: Node, b: Node): boolean {
  if (a.startTag !== b.startTag) return a.startTag < b.startTag;
  if (a.length !== b.length) return a.length < b.length;
  if (a.lastServed !== b.lastServed) return a.lastServed < b.lastServed;
  return a.entered < b.entered;
}

/** A stage: the waiting nodes in order of their tags, and the virtual time. */
class Stage<N extends Node> {
  readonly waiting = new IndexedHeap<N>(goesBefore);
  virtualTime = 0;
  busyPeriod = 0;

  /** The tag that a node has, or would have on entering now; a node that does not exist yet enters as any new one. */
  tagOf(node: N | undefined, busyPeriod: number): number {
    const virtualTime = this.busyPeriod === busyPeriod ? this.virtualTime : 0;
    return node?.busyPeriod === busyPeriod ? Math.max(node.startTag, virtualTime) : virtualTime;
  }

  enter(node: N, busyPeriod: number, arrival: number): void {
    if (this.busyPeriod !== busyPeriod) {
      this.busyPeriod = busyPeriod;
      this.virtualTime = 0;
    }
    if (node.busyPeriod !== busyPeriod) {
      node.busyPeriod = busyPeriod;
      node.startTag = 0;
    }
    if (node.startTag < this.virtualTime) node.startTag = this.virtualTime;
    node.entered = arrival;
    this.waiting.push(node);
  }

  serve(node: N, cost: number, count: number): void {
    if (node.startTag > this.virtualTime) this.virtualTime = node.startTag;
    node.startTag += cost;
    node.lastServed = count;
  }

  /** Puts a node back in order after its tag or its length changed. */
  settle(node: N, empty: boolean): void {
    if (node.heapIndex < 0) return;
    if (empty) this.waiting.remove(node);
    else this.waiting.update(node);
  }
}

class Ticket<T> implements PlaceTicket<T> {
  heapIndex = -1;
  state: PlaceState = "waiting";
  grantedMs = Number.NaN;
  estimateMs = 0;
  /** The level's when it was charged for the estimate: what is put right is what was charged. */
  chargedWeight = 1;
  /** Its neighbours in its queue while it waits. */
  older: Ticket<T> | undefined;
  newer: Ticket<T> | undefined;
  queue!: Queue<T>;
  readonly payload: T;
  readonly level: string;
  readonly flow: FlowHash;
  readonly sequence: number;
  readonly enqueuedMs: number;
  deadlineMs: number;

  constructor(request: PlaceRequest<T>, sequence: number, nowMs: number, maxWaitMs: number) {
    this.payload = request.payload;
    this.level = request.level;
    this.flow = request.flow;
    this.sequence = sequence;
    this.enqueuedMs = nowMs;
    this.deadlineMs = nowMs + (request.maxWaitMs ?? maxWaitMs);
  }
}

/** First in, first out; a ticket in the middle leaves in O(1). */
class Queue<T> implements Node {
  heapIndex = -1;
  startTag = 0;
  lastServed = 0;
  entered = 0;
  busyPeriod = -1;
  length = 0;
  oldest: Ticket<T> | undefined;
  newest: Ticket<T> | undefined;
  /** The flow that came to it last while it was empty. */
  flow: FlowHash | undefined;
  estimateMs: number;
  readonly level: Level<T>;

  constructor(level: Level<T>, estimateMs: number) {
    this.level = level;
    this.estimateMs = estimateMs;
  }

  append(ticket: Ticket<T>): void {
    ticket.older = this.newest;
    if (this.newest === undefined) this.oldest = ticket;
    else this.newest.newer = ticket;
    this.newest = ticket;
    this.length++;
  }

  remove(ticket: Ticket<T>): void {
    if (ticket.older === undefined) this.oldest = ticket.newer;
    else ticket.older.newer = ticket.newer;
    if (ticket.newer === undefined) this.newest = ticket.older;
    else ticket.newer.older = ticket.older;
    ticket.older = undefined;
    ticket.newer = undefined;
    this.length--;
  }
}

const EXEMPT = 0;
const SHARING = 1;
const LEFTOVER = 2;
type Rank = typeof EXEMPT | typeof SHARING | typeof LEFTOVER;

class Level<T> implements Node {
  heapIndex = -1;
  startTag = 0;
  lastServed = 0;
  entered = 0;
  busyPeriod = -1;
  rank: Rank = SHARING;
  weight = 1;
  readonly length = 0;
  waiting = 0;
  inUse = 0;
  readonly name: string;
  stage = new Stage<Queue<T>>();
  queues: (Queue<T> | undefined)[] = [];

  constructor(name: string) {
    this.name = name;
  }

  /** Forgets its queues and those who wait in them. */
  clear(): void {
    for (const queue of this.queues) if (queue !== undefined) queue.heapIndex = -1;
    this.stage = new Stage<Queue<T>>();
    this.queues = [];
    this.waiting = 0;
    this.heapIndex = -1;
  }

  /**
   * Whether it is rather one of this level's requests that is displaced, had it `waiting` of them, than one of
   * `other`'s, had that `otherWaiting`. One request of each level does not count, lest a light level never waits.
   */
  yieldsBefore(waiting: number, other: Level<T>, otherWaiting: number): boolean {
    if (this.rank !== other.rank) return this.rank > other.rank;
    return (waiting - 1) / this.weight > (otherWaiting - 1) / other.weight;
  }

  longestQueue(): Queue<T> {
    return this.stage.waiting.items.reduce((longest, queue) => (queue.length > longest.length ? queue : longest));
  }
}

/**
 * The places of one revision at one gateway. Not blocking and not timed: the caller asks `takeNext` after each
 * `enqueue`, `release`, `setCapacity` and `configure` until it gives nothing, and calls `expire` at `nextExpiryMs()`.
 * `nowMs` never goes back. Every granted ticket must be released exactly once; releasing again is harmless.
 */
export class PlaceQueue<T> {
  #config: PlaceQueueConfig;
  #dealer: Dealer;
  #capacity: number;
  #inUse = 0;
  #sequence = 0;
  #served = 0;
  #busyPeriod = 0;
  #estimateMs = FIRST_ESTIMATE_MS;
  readonly #levels = new Map<string, Level<T>>();
  #stages = [new Stage<Level<T>>(), new Stage<Level<T>>(), new Stage<Level<T>>()] as const;
  /** Everybody who waits, by deadline. */
  readonly #deadlines = new IndexedHeap<Ticket<T>>(
    (a, b) => a.deadlineMs < b.deadlineMs || (a.deadlineMs === b.deadlineMs && a.sequence < b.sequence),
  );

  /**
   * @param capacity Places at first: 0 or more, Infinity for no limit.
   * @throws ShuffleShardingError for queues and handSize that cannot be dealt.
   */
  constructor(config: PlaceQueueConfig, capacity = 0) {
    this.#config = config;
    this.#dealer = new Dealer(config.queues, config.handSize);
    this.#capacity = capacity;
  }

  /** Requests without a place. */
  get waiting(): number {
    return this.#deadlines.size;
  }

  /** Places held. Above `capacity` only after the capacity shrank. */
  get inUse(): number {
    return this.#inUse;
  }

  get capacity(): number {
    return this.#capacity;
  }

  /** Places may come and go at any time; those who hold one keep it. */
  setCapacity(capacity: number): void {
    this.#capacity = capacity;
  }

  /**
   * Lets a request wait for a place. When there is no room left, the newest request of the longest queue of the level
   * that waits most for its weight is displaced, or this one is rejected if that queue is its own.
   */
  enqueue(request: PlaceRequest<T>, nowMs: number): EnqueueResult<T> {
    const level = this.#levelFor(request.level);
    const queue = this.#queueFor(level, request.flow);
    let displaced: Ticket<T> | undefined;
    const free = Math.max(0, this.#capacity - this.#inUse);
    if (this.waiting >= this.#config.maxWaiting + free) {
      displaced = this.#victim(level, queue);
      if (displaced === undefined) {
        const error = new PlaceQueueFullError(this.waiting, this.#config.maxWaiting);
        return { kind: "rejected", error };
      }
      this.#leave(displaced, "displaced");
    }
    const ticket = new Ticket(request, ++this.#sequence, nowMs, this.#config.maxWaitMs);
    this.#deadlines.push(ticket);
    this.#join(ticket, level, queue);
    return { kind: "queued", ticket, displaced };
  }

  /** Gives a free place to whom it belongs: that ticket is now `granted`. Undefined: no place free or nobody waits. */
  takeNext(nowMs: number): PlaceTicket<T> | undefined {
    if (this.#inUse >= this.#capacity) return undefined;
    const stage = this.#stages.find(candidate => candidate.waiting.size > 0);
    const level = stage?.waiting.peek();
    const queue = level?.stage.waiting.peek();
    const ticket = queue?.oldest;
    if (stage === undefined || level === undefined || queue === undefined || ticket === undefined) return undefined;
    ticket.estimateMs = queue.estimateMs;
    this.#served++;
    ticket.chargedWeight = level.weight;
    stage.serve(level, ticket.estimateMs / level.weight, this.#served);
    level.stage.serve(queue, ticket.estimateMs, this.#served);
    this.#leave(ticket, "granted");
    ticket.grantedMs = nowMs;
    level.inUse++;
    this.#inUse++;
    return ticket;
  }

  /** Gives a place back. False if the ticket held none (any more). */
  release(ticket: PlaceTicket<T>, nowMs: number): boolean {
    const own = ticket as Ticket<T>;
    if (own.state !== "granted") return false;
    own.state = "released";
    const { queue } = own;
    const { level } = queue;
    this.#inUse--;
    level.inUse--;
    const actualMs = Math.max(MIN_COST_MS, nowMs - own.grantedMs);
    queue.estimateMs += ESTIMATE_GAIN * (actualMs - queue.estimateMs);
    this.#estimateMs += ESTIMATE_GAIN * (actualMs - this.#estimateMs);
    const correctionMs = actualMs - own.estimateMs;
    level.startTag += correctionMs / own.chargedWeight;
    queue.startTag += correctionMs;
    level.stage.settle(queue, queue.length === 0);
    this.#stages[level.rank].settle(level, level.waiting === 0);
    if (this.#inUse === 0 && this.waiting === 0) this.#busyPeriod++;
    return true;
  }

  /** A waiting request leaves at once. False if it was not waiting (any more): then `release` it if it was granted. */
  cancel(ticket: PlaceTicket<T>): boolean {
    if (ticket.state !== "waiting") return false;
    this.#leave(ticket as Ticket<T>, "cancelled");
    return true;
  }

  /** When the first of those who wait has waited long enough; undefined if nobody waits. */
  nextExpiryMs(): number | undefined {
    return this.#deadlines.peek()?.deadlineMs;
  }

  /** Gives everybody who waits another deadline: an earlier or a later one than before. */
  setDeadlines(deadlineOf: (payload: T) => number): void {
    for (const ticket of [...this.#deadlines.items]) {
      ticket.deadlineMs = deadlineOf(ticket.payload);
      this.#deadlines.update(ticket);
    }
  }

  /** Takes out all whose deadline has come, earliest first. */
  expire(nowMs: number): PlaceTicket<T>[] {
    const expired: PlaceTicket<T>[] = [];
    for (let ticket = this.#deadlines.peek(); ticket !== undefined; ticket = this.#deadlines.peek()) {
      if (ticket.deadlineMs > nowMs) break;
      this.#leave(ticket, "expired");
      expired.push(ticket);
    }
    return expired;
  }

  /**
   * Takes on another configuration with requests waiting and running. Deadlines of those who wait stay (see `setDeadlines`); a lower
   * `maxWaiting` holds for arrivals only. Queues are dealt anew when the policy, `queues` or `handSize` changed.
   * @throws ShuffleShardingError as the constructor, with nothing changed.
   */
  configure(config: PlaceQueueConfig): void {
    const before = this.#config;
    const redeal =
      before.policy !== config.policy || before.queues !== config.queues || before.handSize !== config.handSize;
    if (redeal) this.#dealer = new Dealer(config.queues, config.handSize);
    this.#config = config;
    for (const level of this.#levels.values()) this.#adopt(level);
    if (redeal) this.#redeal();
    for (const level of this.#levels.values()) {
      if (!config.levels.has(level.name) && level.waiting === 0 && level.inUse === 0) this.#levels.delete(level.name);
    }
  }

  /** Levels with requests, for metrics and people. */
  snapshot(): PlaceLevelSnapshot[] {
    return [...this.#levels.values()]
      .filter(level => level.waiting > 0 || level.inUse > 0)
      .map(level => ({
        level: level.name,
        waiting: level.waiting,
        inUse: level.inUse,
        queueLengths: level.stage.waiting.items.map(queue => queue.length).sort((a, b) => b - a),
      }));
  }

  #levelFor(name: string): Level<T> {
    const key = this.#config.policy === "fifo" ? FIFO : name;
    let level = this.#levels.get(key);
    if (level === undefined) {
      level = new Level<T>(key);
      this.#levels.set(key, level);
      this.#adopt(level);
    }
    return level;
  }

  /** Gives a level the rank and weight of the configuration. */
  #adopt(level: Level<T>): void {
    const spec = this.#config.levels.get(level.name);
    const waits = level.heapIndex >= 0;
    if (waits) this.#stages[level.rank].waiting.remove(level);
    if (spec?.kind === "exempt") level.rank = EXEMPT;
    else level.rank = spec === undefined || spec.weight > 0 ? SHARING : LEFTOVER;
    level.weight = spec?.kind === "limited" && spec.weight > 0 ? spec.weight : 1;
    if (waits) this.#stages[level.rank].enter(level, this.#busyPeriod, this.#sequence);
  }

  /**
   * The queue of the flow's hand that is its own already, else the shortest; of equally short ones, the one that would be
   * served soonest. So a flow has the share of one queue however many requests it brings, and the whole hand to find one
   * that no other flow is in.
   */
  #queueFor(level: Level<T>, flow: FlowHash): Queue<T> {
    const hand = this.#config.policy === "fair" ? this.#dealer.handOf(flow) : FIFO_HAND;
    let best = hand[0]!;
    let bestLength = Infinity;
    let bestTag = Infinity;
    for (const candidate of hand) {
      const queue = level.queues[candidate];
      const length = queue?.length ?? 0;
      const tag = level.stage.tagOf(queue, this.#busyPeriod);
      const busy = length > 0 || tag > level.stage.virtualTime;
      if (busy && queue?.flow?.low === flow.low && queue.flow.high === flow.high) return queue;
      if (length > bestLength || (length === bestLength && tag >= bestTag)) continue;
      best = candidate;
      bestLength = length;
      bestTag = tag;
    }
    const queue = (level.queues[best] ??= new Queue<T>(level, this.#estimateMs));
    if (bestLength === 0) queue.flow = flow;
    return queue;
  }

  #join(ticket: Ticket<T>, level: Level<T>, queue: Queue<T>): void {
    ticket.queue = queue;
    queue.append(ticket);
    level.waiting++;
    if (queue.length === 1) level.stage.enter(queue, this.#busyPeriod, ticket.sequence);
    else level.stage.settle(queue, false);
    if (level.waiting === 1) this.#stages[level.rank].enter(level, this.#busyPeriod, ticket.sequence);
  }

  #leave(ticket: Ticket<T>, state: PlaceState): void {
    ticket.state = state;
    this.#deadlines.remove(ticket);
    const { queue } = ticket;
    const { level } = queue;
    queue.remove(ticket);
    level.waiting--;
    level.stage.settle(queue, queue.length === 0);
    this.#stages[level.rank].settle(level, level.waiting === 0);
    if (state !== "granted" && this.#inUse === 0 && this.waiting === 0) this.#busyPeriod++;
  }

  /** Who leaves for a newcomer to `queue` of `level`; undefined: the newcomer itself is the one too many. */
  #victim(level: Level<T>, queue: Queue<T>): Ticket<T> | undefined {
    let worst = level;
    let worstWaiting = level.waiting + 1;
    for (const candidate of this.#levels.values()) {
      if (candidate === level || candidate.waiting === 0) continue;
      if (candidate.yieldsBefore(candidate.waiting, worst, worstWaiting)) {
        worst = candidate;
        worstWaiting = candidate.waiting;
      }
    }
    if (worst.waiting === 0) return undefined;
    const longest = worst.longestQueue();
    if (worst === level && longest.length <= queue.length + 1) return undefined;
    return longest.newest;
  }

  /** Deals all who wait anew, in order of arrival. */
  #redeal(): void {
    const tickets = [...this.#deadlines.items].sort((a, b) => a.sequence - b.sequence);
    this.#stages = [new Stage<Level<T>>(), new Stage<Level<T>>(), new Stage<Level<T>>()];
    // Those who run keep their old queue, which is outside every stage from here on.
    for (const level of this.#levels.values()) level.clear();
    for (const ticket of tickets) {
      ticket.older = undefined;
      ticket.newer = undefined;
      const level = this.#levelFor(ticket.level);
      this.#join(ticket, level, this.#queueFor(level, ticket.flow));
    }
  }
}
