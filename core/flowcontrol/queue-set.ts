/**
 * The seats and queues of one priority level: fair queuing for server requests, as in k8s.io/apiserver
 * (util/flowcontrol/fairqueuing/queueset, whose doc.go derives it from A. Demers, S. Keshav, S. Shenker, "Analysis and
 * Simulation of a Fair Queueing Algorithm", SIGCOMM 1989). The same arrivals at the same times are dispatched and
 * rejected in the same order; hack/oracles/flowcontrol holds it to that.
 *
 * In short. A request takes `seats` for as long as it runs, which is not known beforehand. The progress meter R says how
 * many seat-seconds each non-empty queue would have been given if all were served at once; it grows by
 *
 *     dR/dt = min(seats asked for by all queues, limit) / number of non-empty queues
 *
 * Each queue keeps the R at which its next request would start. The one whose oldest request would finish first goes
 * next, a service time of 3 ms being assumed; once the true time is known, the queue's start is put right. Worked
 * number: limit 4, two non-empty queues of one-seat requests, each with 10 waiting: R grows by 2 a second; a request
 * moves its queue on by 0.003 seat-seconds at dispatch and, if it ran 1 s, by 0.997 more when it finishes.
 *
 * Unlike the original, dispatching does not look at every queue: finish times stand in a tournament tree, and the sums
 * behind dR/dt are kept as they change. O(log queues) for each dispatch instead of O(queues).
 */
import type { FlowHash } from "./flow-hash.ts";
import { IndexedHeap } from "./indexed-heap.ts";
import { MinTree } from "./min-tree.ts";
import { nanoseconds, nanosecondsPerSeat, SEAT_SECONDS_SCALE, seatsTimesNanoseconds } from "./seat-seconds.ts";
import { Dealer } from "./shuffle-sharding.ts";

/** What becomes of requests over the limit. Exempt levels have no limit. */
export type QueuingConfig =
  | { readonly kind: "exempt" }
  | { readonly kind: "reject" }
  | {
      readonly kind: "queue";
      readonly queues: number;
      readonly handSize: number;
      readonly queueLengthLimit: number;
    };

/** How much work a request is expected to be. */
export interface WorkEstimate {
  /** Seats while it runs. */
  readonly initialSeats: number;
  /** Seats that stay taken for `additionalLatencyMs` after it has finished. */
  readonly finalSeats: number;
  readonly additionalLatencyMs: number;
}

export const ONE_SEAT: WorkEstimate = { initialSeats: 1, finalSeats: 0, additionalLatencyMs: 0 };

/** `waiting` -> `executing` -> `finished`, or `waiting` -> `cancelled`. */
export type SeatTicketState = "waiting" | "executing" | "finished" | "cancelled";

/** One request's stay. Made by `start`; only the queue set changes it. */
export interface SeatTicket<T> {
  readonly payload: T;
  readonly state: SeatTicketState;
  readonly arrivedMs: number;
  /** When it was dispatched; NaN before. */
  readonly startedMs: number;
  /** Seats taken from dispatch on. */
  readonly maxSeats: number;
  /** How many waited in its queue when it had joined it, itself included; 0 without a queue. */
  readonly queueLength: number;
}

export type SeatRejection = "concurrency-limit" | "queue-full";

export type SeatStartResult<T> =
  | { readonly kind: "started"; readonly ticket: SeatTicket<T> }
  | { readonly kind: "rejected"; readonly reason: SeatRejection };

export interface QueueSetHooks<T> {
  /** A ticket that `start` had returned as waiting is executing now. Called from within the method that made it so. */
  readonly dispatched: (ticket: SeatTicket<T>) => void;
  /** Seats executing and waiting, after each change. */
  readonly demandChanged: (seats: number, nowMs: number) => void;
}

export interface QueueSnapshot<T> {
  readonly waiting: readonly SeatTicket<T>[];
  readonly executing: readonly SeatTicket<T>[];
  readonly seatsInUse: number;
  /** In seat-seconds. */
  readonly nextDispatchR: number;
  /** Seats that those who wait ask for to begin with, and at most. */
  readonly waitingInitialSeats: number;
  readonly waitingMaxSeats: number;
  /** Work that those who wait are expected to be, in seat-seconds. */
  readonly waitingWork: number;
}

/** Service time assumed at dispatch. */
const ESTIMATED_SERVICE_NS = 3e6;
/** R is wound back by half of this when it gets here, long before doubles lose whole units at 2^53. */
const EPOCH = 2 ** 52;

class Ticket<T> implements SeatTicket<T> {
  /** Its place in the heap of those that linger. */
  heapIndex = -1;
  lingerUntilMs = Number.NaN;
  state: SeatTicketState = "waiting";
  startedMs = Number.NaN;
  /** Its neighbours in the list of its queue, waiting or executing. */
  older: Ticket<T> | undefined;
  newer: Ticket<T> | undefined;
  arrivalR = 0;
  queueLength = 0;
  initialSeats: number;
  maxSeats: number;
  finalSeats: number;
  additionalLatencyNs: number;
  totalWork: number;
  finalWork: number;
  readonly payload: T;
  readonly queue: Queue<T> | undefined;
  readonly arrivedMs: number;

  constructor(payload: T, work: WorkEstimate, queue: Queue<T> | undefined, nowMs: number) {
    this.payload = payload;
    this.queue = queue;
    this.arrivedMs = nowMs;
    this.initialSeats = work.initialSeats;
    this.finalSeats = work.finalSeats;
    this.maxSeats = Math.max(work.initialSeats, work.finalSeats);
    this.additionalLatencyNs = nanoseconds(work.additionalLatencyMs);
    this.finalWork = seatsTimesNanoseconds(work.finalSeats, this.additionalLatencyNs);
    this.totalWork = seatsTimesNanoseconds(work.initialSeats, ESTIMATED_SERVICE_NS) + this.finalWork;
  }
}

/** A list that its tickets leave in O(1). */
class TicketList<T> {
  oldest: Ticket<T> | undefined;
  newest: Ticket<T> | undefined;
  length = 0;

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

  toArray(): Ticket<T>[] {
    const tickets: Ticket<T>[] = [];
    for (let ticket = this.oldest; ticket !== undefined; ticket = ticket.newer) tickets.push(ticket);
    return tickets;
  }
}

class Queue<T> {
  /** Position among the queues; -1 once it is removed. */
  index: number;
  nextDispatchR = 0;
  seatsInUse = 0;
  /** Sum of totalWork of those that wait. */
  waitingWork = 0;
  readonly waiting = new TicketList<T>();
  readonly executing = new TicketList<T>();

  constructor(index: number) {
    this.index = index;
  }

  get active(): boolean {
    return this.waiting.length > 0 || this.executing.length > 0;
  }

  /** The R at which its oldest waiting request would finish; Infinity without one. */
  get virtualFinish(): number {
    const { oldest } = this.waiting;
    return oldest === undefined ? Infinity : this.nextDispatchR + oldest.totalWork;
  }

  /** Dispatch does not precede arrival in the virtual world either: a queue cannot save up for later. */
  bound(): void {
    const { oldest } = this.waiting;
    if (oldest !== undefined && this.nextDispatchR < oldest.arrivalR) this.nextDispatchR = oldest.arrivalR;
  }
}

/**
 * Seats and queues of one priority level. Never waits and has no timers: call `tick` at `nextLingerMs()`. `nowMs` never
 * goes back. Each ticket that executes must be finished exactly once; finishing or cancelling again is harmless.
 */
export class QueueSet<T> {
  #queuing: QueuingConfig;
  #dealer: Dealer | undefined;
  #limit: number;
  #queueLengthLimit = 0;
  readonly #hooks: QueueSetHooks<T>;
  #queues: Queue<T>[] = [];
  #finishTimes = new MinTree(0);
  #currentR = 0;
  #lastMs: number;
  /** The queue last dispatched from. The next one is first among equals. */
  #robinIndex = 0;
  #enqueued = 0;
  #waiting = 0;
  #seatsWaiting = 0;
  #executing = 0;
  #seatsInUse = 0;
  /** Of the queues that exist: how many are not empty, and the seats that their requests use or wait for. */
  #activeQueues = 0;
  #seatsRequested = 0;
  readonly #unqueued = new TicketList<T>();
  readonly #lingering = new IndexedHeap<Ticket<T>>((a, b) => a.lingerUntilMs < b.lingerUntilMs);
  #arriving: Ticket<T> | undefined;

  /** @throws ShuffleShardingError for queues and handSize that cannot be dealt. */
  constructor(queuing: QueuingConfig, concurrencyLimit: number, hooks: QueueSetHooks<T>, nowMs: number) {
    this.#dealer = dealerFor(queuing);
    this.#queuing = queuing;
    this.#limit = concurrencyLimit;
    this.#hooks = hooks;
    this.#lastMs = nowMs;
    this.#adopt(queuing);
  }

  get waiting(): number {
    return this.#waiting;
  }

  get executing(): number {
    return this.#executing;
  }

  get seatsWaiting(): number {
    return this.#seatsWaiting;
  }

  get seatsInUse(): number {
    return this.#seatsInUse;
  }

  get concurrencyLimit(): number {
    return this.#limit;
  }

  /** Nothing waits and nothing executes (seats may linger). */
  get idle(): boolean {
    return this.#waiting === 0 && this.#executing === 0;
  }

  /**
   * Takes on another configuration with requests waiting and executing. Queues that are no longer wanted go when they
   * run empty; with `reject`, those that wait are still served.
   * @throws ShuffleShardingError as the constructor, with nothing changed.
   */
  configure(queuing: QueuingConfig, concurrencyLimit: number, nowMs: number): void {
    const dealer = dealerFor(queuing);
    this.#sync(nowMs);
    this.#dealer = dealer;
    this.#queuing = queuing;
    this.#limit = concurrencyLimit;
    this.#adopt(queuing);
    this.#dispatchAll(nowMs);
  }

  /** A request comes. The ticket returned is `executing` or `waiting`. `hash` matters only with queues. */
  start(payload: T, work: WorkEstimate, hash: FlowHash, nowMs: number): SeatStartResult<T> {
    this.#sync(nowMs);
    if (this.#queuing.kind !== "queue") return this.#startWithoutQueue(payload, work, nowMs);
    const queue = this.#chooseQueue(hash);
    if (this.#seatsInUse >= this.#limit && queue.waiting.length >= this.#queueLengthLimit) {
      return { kind: "rejected", reason: "queue-full" };
    }
    const ticket = new Ticket(payload, work, queue, nowMs);
    if (
      this.#waiting === 0 &&
      ticket.finalSeats === 0 &&
      this.#seatsInUse < this.#limit &&
      this.#canSeat(ticket.maxSeats)
    ) {
      this.#seatAtOnce(ticket, queue, nowMs);
      return { kind: "started", ticket };
    }
    this.#enqueue(ticket, queue, nowMs);
    this.#arriving = ticket;
    this.#dispatchAll(nowMs);
    this.#arriving = undefined;
    return { kind: "started", ticket };
  }

  /** An executing request has come to its end. False if it was not executing (any more). */
  finish(ticket: SeatTicket<T>, nowMs: number): boolean {
    const own = ticket as Ticket<T>;
    if (own.state !== "executing") return false;
    this.#sync(nowMs);
    own.state = "finished";
    this.#executing--;
    const { queue } = own;
    if (queue === undefined) this.#unqueued.remove(own);
    else {
      queue.executing.remove(own);
      if (!queue.active) this.#activeQueues--;
      const excessNs = ESTIMATED_SERVICE_NS - nanoseconds(nowMs - own.startedMs);
      queue.nextDispatchR -= seatsTimesNanoseconds(own.initialSeats, excessNs);
      queue.bound();
      this.#refresh(queue);
    }
    if (own.additionalLatencyNs > 0) {
      own.lingerUntilMs = nowMs + own.additionalLatencyNs / 1e6;
      this.#lingering.push(own);
    } else this.#freeSeats(own, nowMs);
    this.#dispatchAll(nowMs);
    return true;
  }

  /** A waiting request leaves, its time being up or its client gone. False if it was not waiting (any more). */
  cancel(ticket: SeatTicket<T>, nowMs: number): boolean {
    const own = ticket as Ticket<T>;
    const { queue } = own;
    if (own.state !== "waiting" || queue === undefined) return false;
    this.#sync(nowMs);
    own.state = "cancelled";
    this.#dequeue(own, queue);
    if (!queue.active) this.#activeQueues--;
    queue.bound();
    this.#refresh(queue);
    this.#demandChanged(nowMs);
    return true;
  }

  /** When the next seats that linger become free; undefined if none do. */
  nextLingerMs(): number | undefined {
    return this.#lingering.peek()?.lingerUntilMs;
  }

  /** Frees the seats whose time has come. */
  tick(nowMs: number): void {
    for (let ticket = this.#lingering.peek(); ticket !== undefined; ticket = this.#lingering.peek()) {
      if (ticket.lingerUntilMs > nowMs) return;
      this.#sync(nowMs);
      this.#lingering.remove(ticket);
      this.#freeSeats(ticket, nowMs);
      this.#dispatchAll(nowMs);
    }
  }

  /** What is in the queues now, for people. Costs O(requests). */
  snapshot(): { readonly queues: readonly QueueSnapshot<T>[]; readonly unqueued: readonly SeatTicket<T>[] } {
    return {
      queues: this.#queues.map(queue => {
        const waiting = queue.waiting.toArray();
        return {
          waiting,
          executing: queue.executing.toArray(),
          seatsInUse: queue.seatsInUse,
          nextDispatchR: queue.nextDispatchR / SEAT_SECONDS_SCALE,
          waitingInitialSeats: waiting.reduce((sum, { initialSeats }) => sum + initialSeats, 0),
          waitingMaxSeats: waiting.reduce((sum, { maxSeats }) => sum + maxSeats, 0),
          waitingWork: queue.waitingWork / SEAT_SECONDS_SCALE,
        };
      }),
      unqueued: this.#unqueued.toArray(),
    };
  }

  /** The queue that a flow's request would join now, for people; undefined without queues. */
  peekQueue(hash: FlowHash): { readonly hand: readonly number[]; readonly queue: number } | undefined {
    if (this.#dealer === undefined) return undefined;
    const hand = this.#dealer.deal(hash);
    return { hand, queue: this.#shortest(hand).index };
  }

  #adopt(queuing: QueuingConfig): void {
    if (queuing.kind !== "queue") return;
    this.#queueLengthLimit = queuing.queueLengthLimit;
    if (queuing.queues <= this.#queues.length) return;
    while (this.#queues.length < queuing.queues) this.#queues.push(new Queue(this.#queues.length));
    this.#rebuildTree();
  }

  #rebuildTree(): void {
    this.#finishTimes = new MinTree(this.#queues.length);
    for (const queue of this.#queues) this.#refresh(queue);
  }

  #refresh(queue: Queue<T>): void {
    if (queue.index >= 0) this.#finishTimes.set(queue.index, queue.virtualFinish);
  }

  /** Brings R up to now; nothing has changed since it was last brought up. */
  #sync(nowMs: number): void {
    const sinceNs = nanoseconds(nowMs - this.#lastMs);
    this.#lastMs = nowMs;
    if (sinceNs === 0 || this.#activeQueues === 0) return;
    const rate = Math.min(this.#seatsRequested, this.#limit) / this.#activeQueues;
    this.#currentR += seatsTimesNanoseconds(rate, sinceNs);
    if (this.#currentR >= EPOCH) this.#windBack();
  }

  #windBack(): void {
    const back = EPOCH / 2;
    this.#currentR -= back;
    for (const queue of this.#queues) {
      if (!queue.active) continue;
      queue.nextDispatchR -= back;
      for (let ticket = queue.waiting.oldest; ticket !== undefined; ticket = ticket.newer) ticket.arrivalR -= back;
    }
    this.#rebuildTree();
  }

  #startWithoutQueue(payload: T, work: WorkEstimate, nowMs: number): SeatStartResult<T> {
    const ticket = new Ticket<T>(payload, work, undefined, nowMs);
    if (!this.#canSeat(ticket.maxSeats)) return { kind: "rejected", reason: "concurrency-limit" };
    ticket.state = "executing";
    ticket.startedMs = nowMs;
    this.#unqueued.append(ticket);
    this.#executing++;
    this.#seatsInUse += ticket.maxSeats;
    this.#demandChanged(nowMs);
    return { kind: "started", ticket };
  }

  #chooseQueue(hash: FlowHash): Queue<T> {
    const { handSize } = this.#dealer!;
    const offset = this.#enqueued % handSize;
    this.#enqueued++;
    return this.#shortest(this.#dealer!.handOf(hash), offset);
  }

  /** The queue of the hand with the least work waiting; the first of those, going round from `offset`. */
  #shortest(hand: readonly number[], offset = this.#enqueued % hand.length): Queue<T> {
    let best = this.#queues[hand[offset]!]!;
    for (let i = 1; i < hand.length && best.waitingWork > 0; i++) {
      const candidate = this.#queues[hand[(offset + i) % hand.length]!]!;
      if (candidate.waitingWork < best.waitingWork) best = candidate;
    }
    return best;
  }

  #enqueue(ticket: Ticket<T>, queue: Queue<T>, nowMs: number): void {
    ticket.arrivalR = this.#currentR;
    if (!queue.active) {
      queue.nextDispatchR = this.#currentR;
      this.#activeQueues++;
    }
    queue.waiting.append(ticket);
    ticket.queueLength = queue.waiting.length;
    queue.waitingWork += ticket.totalWork;
    this.#waiting++;
    this.#seatsWaiting += ticket.maxSeats;
    this.#seatsRequested += ticket.maxSeats;
    this.#demandChanged(nowMs);
    queue.bound();
    if (queue.waiting.length === 1) this.#refresh(queue);
  }

  /** What `#enqueue` and `#dispatchOne` come to for a request that finds nobody waiting and room, which most do. */
  #seatAtOnce(ticket: Ticket<T>, queue: Queue<T>, nowMs: number): void {
    ticket.arrivalR = this.#currentR;
    ticket.queueLength = 1;
    if (!queue.active) {
      queue.nextDispatchR = this.#currentR;
      this.#activeQueues++;
    } else if (queue.nextDispatchR < this.#currentR) queue.nextDispatchR = this.#currentR;
    this.#robinIndex = queue.index;
    this.#begin(ticket, queue, nowMs);
  }

  #begin(ticket: Ticket<T>, queue: Queue<T>, nowMs: number): void {
    ticket.state = "executing";
    ticket.startedMs = nowMs;
    queue.executing.append(ticket);
    queue.seatsInUse += ticket.maxSeats;
    this.#executing++;
    this.#seatsInUse += ticket.maxSeats;
    this.#seatsRequested += ticket.maxSeats;
    queue.nextDispatchR += ticket.totalWork;
    this.#demandChanged(nowMs);
  }

  #dequeue(ticket: Ticket<T>, queue: Queue<T>): void {
    queue.waiting.remove(ticket);
    queue.waitingWork -= ticket.totalWork;
    this.#waiting--;
    this.#seatsWaiting -= ticket.maxSeats;
    this.#seatsRequested -= ticket.maxSeats;
  }

  #canSeat(seats: number): boolean {
    if (this.#queuing.kind === "exempt") return true;
    // One that is wider than the whole limit runs alone.
    if (seats > this.#limit) return this.#executing === 0;
    return this.#seatsInUse + seats <= this.#limit;
  }

  #dispatchAll(nowMs: number): void {
    while (this.#waiting > 0 && this.#seatsInUse < this.#limit && this.#dispatchOne(nowMs));
  }

  /** Starts the request that would finish first; false if it does not fit yet: then none may pass it. */
  #dispatchOne(nowMs: number): boolean {
    const count = this.#queues.length;
    const index = this.#finishTimes.firstMinFrom((this.#robinIndex + 1) % count);
    const queue = this.#queues[index]!;
    const ticket = queue.waiting.oldest!;
    if (!this.#canSeat(ticket.maxSeats)) {
      this.#robinIndex = (this.#robinIndex + count) % count;
      return false;
    }
    this.#dequeue(ticket, queue);
    this.#robinIndex = index;
    if (ticket.finalSeats > this.#limit) {
      // More than there are: the same work on fewer seats for longer.
      ticket.finalSeats = this.#limit;
      ticket.additionalLatencyNs = nanosecondsPerSeat(ticket.finalWork, this.#limit);
      ticket.maxSeats = Math.max(ticket.initialSeats, ticket.finalSeats);
    }
    this.#begin(ticket, queue, nowMs);
    queue.bound();
    this.#refresh(queue);
    if (ticket !== this.#arriving) this.#hooks.dispatched(ticket);
    return true;
  }

  #freeSeats(ticket: Ticket<T>, nowMs: number): void {
    this.#seatsInUse -= ticket.maxSeats;
    const { queue } = ticket;
    if (queue !== undefined) {
      queue.seatsInUse -= ticket.maxSeats;
      if (queue.index >= 0) {
        this.#seatsRequested -= ticket.maxSeats;
        this.#removeIfUnwanted(queue);
      }
    }
    this.#demandChanged(nowMs);
  }

  #removeIfUnwanted(queue: Queue<T>): void {
    const wanted = this.#queuing.kind === "queue" ? this.#queuing.queues : 0;
    if (this.#queues.length <= wanted || queue.active) return;
    const { index } = queue;
    this.#queues.splice(index, 1);
    queue.index = -1;
    // Its requests that linger no longer count for the pace of R.
    this.#seatsRequested -= queue.seatsInUse;
    for (let i = index; i < this.#queues.length; i++) this.#queues[i]!.index = i;
    if (this.#robinIndex >= index) this.#robinIndex--;
    this.#rebuildTree();
  }

  #demandChanged(nowMs: number): void {
    this.#hooks.demandChanged(this.#seatsInUse + this.#seatsWaiting, nowMs);
  }
}

function dealerFor(queuing: QueuingConfig): Dealer | undefined {
  return queuing.kind === "queue" ? new Dealer(queuing.queues, queuing.handSize) : undefined;
}
