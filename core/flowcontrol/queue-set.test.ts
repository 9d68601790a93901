import { describe, expect, it } from "vitest";
import fc from "fast-check";
import type { QueuingConfig, SeatTicket, WorkEstimate } from "./queue-set.ts";
import { ONE_SEAT, QueueSet } from "./queue-set.ts";
import { ShuffleShardingError } from "./shuffle-sharding.ts";

const queue = (queues: number, handSize: number, queueLengthLimit = 50): QueuingConfig => ({
  kind: "queue",
  queues,
  handSize,
  queueLengthLimit,
});
const flow = (i: number): { high: number; low: number } => ({ high: 0, low: i });

function queueSet(queuing: QueuingConfig, limit: number) {
  const dispatched: string[] = [];
  let demand = 0;
  const set = new QueueSet<string>(
    queuing,
    limit,
    { dispatched: ({ payload }) => dispatched.push(payload), demandChanged: seats => (demand = seats) },
    0,
  );
  const start = (name: string, hash = 0, nowMs = 0, work: WorkEstimate = ONE_SEAT): SeatTicket<string> => {
    const result = set.start(name, work, flow(hash), nowMs);
    if (result.kind === "rejected") throw new Error(result.reason);
    return result.ticket;
  };
  return { set, dispatched, start, demand: () => demand };
}

// Order of dispatch and rejection are held to the original's by hack/oracles/flowcontrol; here is what it leaves out.
describe("QueueSet", () => {
  it("rejects over the limit without queues, and when the queue is full with them", () => {
    const bare = queueSet({ kind: "reject" }, 1);
    bare.start("a");
    expect(bare.set.start("b", ONE_SEAT, flow(0), 0)).toEqual({ kind: "rejected", reason: "concurrency-limit" });
    const queued = queueSet(queue(1, 1, 1), 1);
    queued.start("a");
    expect(queued.start("b").state).toBe("waiting");
    expect(queued.set.start("c", ONE_SEAT, flow(0), 0)).toEqual({ kind: "rejected", reason: "queue-full" });
  });

  it("limits nothing when exempt", () => {
    const { set, start } = queueSet({ kind: "exempt" }, 0);
    for (let i = 0; i < 100; i++) expect(start("a").state).toBe("executing");
    expect(set.seatsInUse).toBe(100);
  });

  it("tells of a dispatch only when start had returned before", () => {
    const { set, start, dispatched } = queueSet(queue(1, 1), 1);
    const a = start("a");
    const b = start("b");
    expect([a.state, b.state, dispatched]).toEqual(["executing", "waiting", []]);
    set.finish(a, 10);
    expect([b.state, b.startedMs, dispatched]).toEqual(["executing", 10, ["b"]]);
  });

  it("finishes and cancels once", () => {
    const { set, start, demand } = queueSet(queue(1, 1), 1);
    const a = start("a");
    const b = start("b");
    expect([set.cancel(a, 1), set.finish(b, 1)]).toEqual([false, false]);
    expect([set.cancel(b, 1), set.cancel(b, 1), set.finish(a, 1), set.finish(a, 1)]).toEqual([
      true,
      false,
      true,
      false,
    ]);
    expect([set.idle, set.seatsInUse, set.seatsWaiting, demand()]).toEqual([true, 0, 0, 0]);
  });

  it("alternates between a flow with many requests and one with few", () => {
    const { set, start, dispatched } = queueSet(queue(2, 1), 1);
    let running = start("first");
    const waiting = new Map<string, SeatTicket<string>>();
    for (let i = 0; i < 6; i++) waiting.set(`e${i}`, start(`e${i}`, 0));
    for (let i = 0; i < 2; i++) waiting.set(`m${i}`, start(`m${i}`, 1));
    for (let nowMs = 100; dispatched.length < 8; nowMs += 100) {
      set.finish(running, nowMs);
      running = waiting.get(dispatched.at(-1)!)!;
    }
    expect(dispatched.slice(0, 4).sort()).toEqual(["e0", "e1", "m0", "m1"]);
  });

  it("refuses queues that cannot be dealt and changes nothing", () => {
    const { set } = queueSet(queue(4, 2), 3);
    expect(() => set.configure(queue(2, 3), 9, 0)).toThrow(ShuffleShardingError);
    expect(set.concurrencyLimit).toBe(3);
  });

  it("drains what waits after its queues are no longer wanted", () => {
    const { set, start, dispatched } = queueSet(queue(4, 1), 1);
    const a = start("a", 0);
    start("b", 1);
    set.configure({ kind: "reject" }, 1, 1);
    expect(set.start("c", ONE_SEAT, flow(0), 1).kind).toBe("rejected");
    set.finish(a, 2);
    expect(dispatched).toEqual(["b"]);
  });

  it("keeps seats for a request's additional latency, on fewer seats for longer if the limit is lower", () => {
    const { set, start } = queueSet(queue(1, 1), 5);
    const wide = start("wide", 0, 0, { initialSeats: 1, finalSeats: 10, additionalLatencyMs: 100 });
    expect(wide.maxSeats).toBe(5);
    start("next");
    set.finish(wide, 50);
    expect([set.seatsInUse, set.executing, set.nextLingerMs()]).toEqual([5, 0, 250]);
    set.tick(249);
    expect(set.executing).toBe(0);
    set.tick(250);
    expect([set.seatsInUse, set.executing, set.nextLingerMs()]).toEqual([1, 1, undefined]);
  });

  // The original removes a second queue here and then crashes (hack/oracles/flowcontrol/README.md).
  it("removes an unwanted queue once, though two of its requests still linger", () => {
    const { set, start, dispatched } = queueSet(queue(3, 1), 2);
    const lingering = { initialSeats: 1, finalSeats: 1, additionalLatencyMs: 100 };
    const a = start("a", 0, 0, lingering);
    const b = start("b", 0, 0, lingering);
    start("c", 1);
    set.finish(a, 10);
    set.finish(b, 20);
    set.configure(queue(1, 1), 2, 30);
    set.tick(110);
    expect(dispatched).toEqual(["c"]);
    expect(set.snapshot().queues.map(({ executing }) => executing.length)).toEqual([1, 0]);
    set.tick(120);
    expect([set.seatsInUse, set.snapshot().queues.length]).toEqual([1, 2]);
  });

  it("winds the progress meter back without changing the order", () => {
    const { set, start, dispatched } = queueSet(queue(4, 1), 1);
    const yearsMs = 5e10;
    const a = start("a", 0);
    start("b", 1, 1);
    start("c", 0, 2);
    start("d", 2, yearsMs);
    expect(set.snapshot().queues.map(({ nextDispatchR }) => nextDispatchR < 4.6e7)).toEqual([true, true, true, true]);
    set.finish(a, yearsMs + 1);
    expect(dispatched).toEqual(["b"]);
    expect(set.snapshot().queues.map(({ waiting }) => waiting.length)).toEqual([1, 0, 1, 0]);
  });

  it("loses no request and no seat, whatever happens", () => {
    const step = fc.oneof(
      {
        weight: 5,
        arbitrary: fc.record({
          kind: fc.constant("start" as const),
          flow: fc.nat(9),
          initialSeats: fc.integer({ min: 1, max: 4 }),
          finalSeats: fc.nat(6),
          additionalLatencyMs: fc.constantFrom(0, 0, 5, 50),
        }),
      },
      {
        weight: 4,
        arbitrary: fc.record({ kind: fc.constantFrom("finish" as const, "cancel" as const), at: fc.nat() }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.constant("configure" as const),
          queuing: fc.oneof(
            fc
              .record({
                queues: fc.integer({ min: 2, max: 9 }),
                hand: fc.integer({ min: 1, max: 2 }),
                length: fc.integer({ min: 1, max: 4 }),
              })
              .map(q => queue(q.queues, q.hand, q.length)),
            fc.constant<QueuingConfig>({ kind: "reject" }),
          ),
          limit: fc.nat(6),
        }),
      },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant("pass" as const), ms: fc.nat(60) }) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150 }), steps => {
        const { set, demand } = queueSet(queue(4, 2, 3), 3);
        const tickets: SeatTicket<string>[] = [];
        const inState = (state: string): SeatTicket<string>[] => tickets.filter(ticket => ticket.state === state);
        let limit = 3;
        let nowMs = 0;
        for (const s of steps) {
          const before = set.seatsInUse;
          if (s.kind === "start") {
            const result = set.start("", s, flow(s.flow), nowMs);
            if (result.kind === "started") tickets.push(result.ticket);
          } else if (s.kind === "configure") {
            limit = s.limit;
            set.configure(s.queuing, limit, nowMs);
          } else if (s.kind === "pass") {
            nowMs += s.ms;
            for (let next = set.nextLingerMs(); next !== undefined && next <= nowMs; next = set.nextLingerMs())
              set.tick(next);
            set.tick(nowMs);
          } else {
            const candidates = inState(s.kind === "finish" ? "executing" : "waiting");
            const chosen = candidates[s.at % Math.max(1, candidates.length)];
            if (chosen !== undefined) expect(set[s.kind](chosen, nowMs)).toBe(true);
          }
          const sum = (of: SeatTicket<string>[]): number => of.reduce((seats, ticket) => seats + ticket.maxSeats, 0);
          expect([set.waiting, set.executing]).toEqual([inState("waiting").length, inState("executing").length]);
          expect(set.seatsWaiting).toBe(sum(inState("waiting")));
          expect(set.seatsInUse).toBeGreaterThanOrEqual(sum(inState("executing")));
          expect(demand()).toBe(set.seatsInUse + set.seatsWaiting);
          // Above the limit only after it fell, or with one request that is as wide as all of it or wider.
          const alone = set.executing === 1 && inState("executing")[0]!.maxSeats >= limit;
          if (!alone && s.kind !== "configure") expect(set.seatsInUse).toBeLessThanOrEqual(Math.max(limit, before));
        }
        set.configure(queue(4, 2), 100, nowMs);
        for (const ticket of tickets) set.finish(ticket, nowMs);
        for (let next = set.nextLingerMs(); next !== undefined; next = set.nextLingerMs()) set.tick(next);
        expect([set.idle, set.seatsInUse, set.seatsWaiting]).toEqual([true, 0, 0]);
      }),
      { numRuns: 300, seed: 10 },
    );
  });
});
