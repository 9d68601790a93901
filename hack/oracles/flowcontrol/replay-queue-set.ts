import type { FlowHash } from "../../../core/flowcontrol/flow-hash.ts";
import type { QueuingConfig, SeatTicket } from "../../../core/flowcontrol/queue-set.ts";
import { QueueSet } from "../../../core/flowcontrol/queue-set.ts";
import { mustEqual } from "./unequal.ts";

/** See queueset.go. */
type Op =
  | readonly ["c", number, queues: number, handSize: number, queueLengthLimit: number, concurrencyLimit: number]
  | readonly ["s", number, id: number, flow: number, initial: number, final: number, latencyNs: number, mode: number]
  | readonly ["f" | "x", number, id: number]
  | readonly ["l", number];

interface Step {
  readonly o: Op;
  readonly x?: boolean;
  readonly d?: readonly number[];
  readonly s: readonly [number, number, number, number, number];
  readonly r?: Readonly<Record<string, readonly string[]>>;
}

export interface QueueSetScenario {
  readonly n: number;
  readonly kind: "queueset";
  readonly flows: readonly string[];
  readonly steps: readonly Step[];
}

export function parseHash(decimal: string): FlowHash {
  const value = BigInt(decimal);
  return { high: Number(value >> 32n), low: Number(value & 0xffff_ffffn) };
}

const queuingOf = (queues: number, handSize: number, queueLengthLimit: number): QueuingConfig =>
  queues < 0
    ? { kind: "exempt" }
    : queues === 0
      ? { kind: "reject" }
      : { kind: "queue", queues, handSize, queueLengthLimit };

/** Frees the seats due at a time whose nanoseconds milliseconds may miss by a rounding. */
export function tickAt(nowMs: number, nextMs: () => number | undefined, tick: (nowMs: number) => void): void {
  for (let next = nextMs(); next !== undefined && next - nowMs < 5e-7; next = nextMs()) tick(Math.max(next, nowMs));
}

export function replayQueueSet({ flows, steps }: QueueSetScenario): void {
  const hashes = flows.map(parseHash);
  const tickets = new Map<number, SeatTicket<number>>();
  let dispatched: number[] = [];
  let demand = 0;
  let nowNs = 0;
  /** Seats that the original goes on counting as waiting (see README.md). */
  let leaked = 0;
  const finals = new Map<number, { initial: number; final: number; limit: number }>();
  let limit = 0;
  let queuing: QueuingConfig = { kind: "reject" };
  const hooks = {
    dispatched: ({ payload }: SeatTicket<number>) => {
      dispatched.push(payload);
      note(payload);
    },
    demandChanged: (seats: number) => (demand = seats),
  };
  const note = (id: number): void => {
    const work = finals.get(id)!;
    if (work.final > limit) leaked += Math.max(work.initial, work.final) - Math.max(work.initial, limit);
  };
  const set = new QueueSet<number>(queuing, limit, hooks, 0);
  for (const [i, { o, x, d, s, r }] of steps.entries()) {
    const where = `step ${i} ${JSON.stringify(o)}`;
    nowNs += o[1];
    const nowMs = nowNs / 1e6;
    dispatched = [];
    switch (o[0]) {
      case "c":
        limit = o[5];
        queuing = queuingOf(o[2], o[3], o[4]);
        set.configure(queuing, limit, nowMs);
        break;
      case "s": {
        const [, , id, flow, initialSeats, finalSeats, latencyNs, mode] = o;
        finals.set(id, { initial: initialSeats, final: finalSeats, limit });
        const work = { initialSeats, finalSeats, additionalLatencyMs: latencyNs / 1e6 };
        const result = set.start(id, work, hashes[flow]!, nowMs);
        mustEqual(where, "rejected", result.kind === "rejected", x ?? false);
        if (result.kind === "rejected") break;
        tickets.set(id, result.ticket);
        mustEqual(where, "executing at once", result.ticket.state === "executing", mode === 2);
        if (mode === 2 && queuing.kind === "queue") note(id);
        break;
      }
      case "f":
        mustEqual(where, "finished", set.finish(tickets.get(o[2])!, nowMs), true);
        break;
      case "x":
        mustEqual(where, "cancelled", set.cancel(tickets.get(o[2])!, nowMs), true);
        break;
      case "l":
        tickAt(
          nowMs,
          () => set.nextLingerMs(),
          atMs => set.tick(atMs),
        );
        break;
    }
    mustEqual(where, "dispatched", dispatched, d ?? []);
    const [waiting, executing, inUse, seatsWaiting, seatDemand] = s;
    mustEqual(
      where,
      "waiting, executing, seats in use, seats waiting, demand",
      [set.waiting, set.executing, set.seatsInUse, set.seatsWaiting + leaked, demand + leaked],
      [waiting, executing, inUse, seatsWaiting, seatDemand],
    );
    if (r !== undefined) mustEqual(where, "queues", queuesOf(set), r);
  }
}

/** Of the queues that are not empty: next dispatch R, waiting, seats in use; -1 has the number of queues. */
function queuesOf(set: QueueSet<number>): Record<string, readonly string[]> {
  const { queues } = set.snapshot();
  const found: Record<string, readonly string[]> = { "-1": [String(queues.length)] };
  for (const [i, queue] of queues.entries()) {
    if (queue.waiting.length === 0 && queue.executing.length === 0) continue;
    const units = Math.round(queue.nextDispatchR * 1e8);
    const seconds = Math.floor(units / 1e8);
    const r = `${seconds}.${String(units - seconds * 1e8).padStart(8, "0")}ss`;
    found[i] = [r, String(queue.waiting.length), String(queue.seatsInUse)];
  }
  return found;
}
