import { IndexedHeap } from "../flowcontrol/indexed-heap.ts";

/** Something that will happen; `cancel` it, or let it. */
export interface ScheduledEvent {
  readonly atMs: number;
}

class Event implements ScheduledEvent {
  heapIndex = -1;
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;

  constructor(atMs: number, order: number, run: () => void) {
    this.atMs = atMs;
    this.order = order;
    this.run = run;
  }
}

/** The clock of a simulation: it jumps from event to event. Events of one time happen in the order they were scheduled. */
export class EventQueue {
  #nowMs = 0;
  #scheduled = 0;
  readonly #events = new IndexedHeap<Event>((a, b) => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order));

  get nowMs(): number {
    return this.#nowMs;
  }

  /** A time that has passed means now. */
  at(atMs: number, run: () => void): ScheduledEvent {
    const event = new Event(Math.max(atMs, this.#nowMs), this.#scheduled++, run);
    this.#events.push(event);
    return event;
  }

  cancel(event: ScheduledEvent): void {
    const own = event as Event;
    if (own.heapIndex >= 0) this.#events.remove(own);
  }

  /** Lets everything happen up to and including `untilMs`. */
  run(untilMs: number): void {
    for (let event = this.#events.peek(); event !== undefined && event.atMs <= untilMs; event = this.#events.peek()) {
      this.#events.remove(event);
      this.#nowMs = event.atMs;
      event.run();
    }
    this.#nowMs = untilMs;
  }
}
