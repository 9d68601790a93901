import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { hashFlow } from "./flow-hash.ts";
import type { PlaceLevel, PlaceQueueConfig, PlaceTicket } from "./place-queue.ts";
import { PlaceQueue } from "./place-queue.ts";

const limited = (weight: number): PlaceLevel => ({ kind: "limited", weight });
const levels = new Map<string, PlaceLevel>([
  ["exempt", { kind: "exempt" }],
  ["high", limited(30)],
  ["low", limited(10)],
  ["none", limited(0)],
]);

const config = (change: Partial<PlaceQueueConfig> = {}): PlaceQueueConfig => ({
  policy: "fair",
  maxWaiting: 100,
  maxWaitMs: 1000,
  levels,
  queues: 64,
  handSize: 8,
  ...change,
});

function enqueue(queue: PlaceQueue<string>, level: string, flow: string, nowMs = 0): PlaceTicket<string> {
  const result = queue.enqueue({ level, flow: hashFlow(level, flow), payload: flow }, nowMs);
  if (result.kind === "rejected") throw result.error;
  return result.ticket;
}

function takeAll<T>(queue: PlaceQueue<T>, nowMs = 0): PlaceTicket<T>[] {
  const taken: PlaceTicket<T>[] = [];
  for (let ticket = queue.takeNext(nowMs); ticket !== undefined; ticket = queue.takeNext(nowMs)) taken.push(ticket);
  return taken;
}

describe("PlaceQueue", () => {
  it("gives places up to its capacity and the next on release", () => {
    const queue = new PlaceQueue<string>(config(), 2);
    const tickets = ["a", "b", "c"].map(flow => enqueue(queue, "high", flow));
    expect(takeAll(queue, 5)).toEqual([tickets[0], tickets[1]]);
    expect(tickets.map(ticket => ticket.state)).toEqual(["granted", "granted", "waiting"]);
    expect(tickets[0]?.grantedMs).toBe(5);
    expect(queue.release(tickets[0]!, 10)).toBe(true);
    expect(queue.release(tickets[0]!, 10)).toBe(false);
    expect(takeAll(queue, 10)).toEqual([tickets[2]]);
    expect([queue.inUse, queue.waiting]).toEqual([2, 0]);
  });

  it("is the queue of a cold start while its capacity is 0, and follows capacity down", () => {
    const queue = new PlaceQueue<string>(config());
    for (const flow of ["a", "b", "c", "d"]) enqueue(queue, "high", flow);
    expect(takeAll(queue)).toEqual([]);
    queue.setCapacity(3);
    const taken = takeAll(queue);
    expect(taken).toHaveLength(3);
    queue.setCapacity(1);
    queue.release(taken[0]!, 1);
    queue.release(taken[1]!, 1);
    expect(takeAll(queue)).toEqual([]);
    queue.release(taken[2]!, 1);
    expect(takeAll(queue)).toHaveLength(1);
  });

  it("has no limit at capacity Infinity", () => {
    const queue = new PlaceQueue<string>(config({ maxWaiting: 0 }), Infinity);
    for (let i = 0; i < 1000; i++) enqueue(queue, "high", `f${i}`);
    expect(takeAll(queue)).toHaveLength(1000);
  });

  it("serves exempt first and levels without shares last", () => {
    const queue = new PlaceQueue<string>(config());
    for (const level of ["none", "low", "high", "exempt"]) for (let i = 0; i < 3; i++) enqueue(queue, level, `${i}`);
    queue.setCapacity(12);
    const order = takeAll(queue).map(ticket => ticket.level);
    expect(order.slice(0, 3)).toEqual(["exempt", "exempt", "exempt"]);
    expect(order.slice(9)).toEqual(["none", "none", "none"]);
  });

  it("puts right what was charged, by the weight it was charged by", () => {
    const queue = new PlaceQueue<string>(
      config({
        levels: new Map([
          ["low", limited(1000)],
          ["high", limited(1)],
        ]),
      }),
      1,
    );
    const running = enqueue(queue, "low", "first");
    takeAll(queue);
    for (let i = 0; i < 10; i++) for (const level of ["low", "high"]) enqueue(queue, level, `f${i}`);
    queue.configure(
      config({
        levels: new Map([
          ["low", limited(1)],
          ["high", limited(1000)],
        ]),
      }),
    );
    const order: string[] = [];
    let nowMs = 1;
    for (let ticket: PlaceTicket<string> | undefined = running; ticket !== undefined; ticket = queue.takeNext(nowMs)) {
      order.push(ticket.level);
      nowMs += 2;
      queue.release(ticket, nowMs);
    }
    expect(order.slice(1, 11).filter(level => level === "high").length).toBeGreaterThanOrEqual(9);
  });

  it("shares places among levels by weight", () => {
    const queue = new PlaceQueue<string>(config(), 1);
    for (let i = 0; i < 40; i++) for (const level of ["low", "high"]) enqueue(queue, level, `f${i}`);
    let nowMs = 0;
    const order: string[] = [];
    while (order.length < 40) {
      const ticket = queue.takeNext(nowMs)!;
      order.push(ticket.level);
      queue.release(ticket, (nowMs += 20));
    }
    expect(order.filter(level => level === "high").length).toBeGreaterThanOrEqual(29);
    expect(order.filter(level => level === "low").length).toBeGreaterThanOrEqual(9);
  });

  it("shares place-time, not requests: long requests get fewer", () => {
    const queue = new PlaceQueue<string>(
      config({
        levels: new Map([
          ["x", limited(1)],
          ["y", limited(1)],
        ]),
      }),
      1,
    );
    for (let i = 0; i < 100; i++) {
      if (i < 20) enqueue(queue, "x", "long");
      if (i < 80) enqueue(queue, "y", "short");
    }
    let nowMs = 0;
    const spent = new Map([
      ["x", 0],
      ["y", 0],
    ]);
    while (nowMs < 1000) {
      const ticket = queue.takeNext(nowMs)!;
      const serviceMs = ticket.level === "x" ? 100 : 10;
      spent.set(ticket.level, spent.get(ticket.level)! + serviceMs);
      queue.release(ticket, (nowMs += serviceMs));
    }
    expect(Math.abs(spent.get("x")! - spent.get("y")!)).toBeLessThanOrEqual(200);
  });

  it("lets a waiting request of one flow pass the queue of another flow of its level", () => {
    const queue = new PlaceQueue<string>(config(), 1);
    for (let i = 0; i < 50; i++) enqueue(queue, "high", "elephant");
    let nowMs = 0;
    for (let i = 0; i < 20; i++) queue.release(queue.takeNext(nowMs)!, (nowMs += 100));
    const running = queue.takeNext(nowMs)!;
    const mouse = enqueue(queue, "high", "mouse", nowMs);
    queue.release(running, (nowMs += 100));
    let served = 0;
    while (mouse.state === "waiting") {
      const ticket = queue.takeNext(nowMs)!;
      queue.release(ticket, (nowMs += 100));
      served++;
    }
    expect(served).toBe(1);
  });

  it("keeps the order of arrival under fifo", () => {
    const queue = new PlaceQueue<string>(config({ policy: "fifo" }));
    const tickets = ["low", "exempt", "high", "none", "high"].map((level, i) => enqueue(queue, level, `f${i}`));
    queue.setCapacity(5);
    expect(takeAll(queue)).toEqual(tickets);
  });

  it("lets cancelled waiters leave at once", () => {
    const queue = new PlaceQueue<string>(config());
    const tickets = ["a", "b", "c"].map(flow => enqueue(queue, "high", flow));
    expect(queue.cancel(tickets[1]!)).toBe(true);
    expect(queue.cancel(tickets[1]!)).toBe(false);
    expect(queue.waiting).toBe(2);
    queue.setCapacity(3);
    expect(takeAll(queue)).toEqual([tickets[0], tickets[2]]);
    expect(queue.cancel(tickets[0]!)).toBe(false);
  });

  it("expires those who waited their time, earliest first", () => {
    const queue = new PlaceQueue<string>(config());
    const a = enqueue(queue, "high", "a", 0);
    const hurried = queue.enqueue({ level: "high", flow: hashFlow("", ""), payload: "b", maxWaitMs: 10 }, 5);
    if (hurried.kind === "rejected") throw hurried.error;
    expect(queue.nextExpiryMs()).toBe(15);
    expect(queue.expire(14)).toEqual([]);
    expect(queue.expire(2000)).toEqual([hurried.ticket, a]);
    expect(a.state).toBe("expired");
    expect(queue.nextExpiryMs()).toBeUndefined();
  });

  it("gives those who wait other deadlines", () => {
    const queue = new PlaceQueue<string>(config());
    const [a, b, c] = ["a", "b", "c"].map((flow, i) => enqueue(queue, "high", flow, i));
    const deadlines: Readonly<Record<string, number>> = { a: 30, b: 10, c: 20 };
    queue.setDeadlines(payload => deadlines[payload] ?? Number.NaN);
    expect(queue.nextExpiryMs()).toBe(10);
    expect(queue.expire(20)).toEqual([b, c]);
    expect([queue.waiting, queue.nextExpiryMs(), a?.deadlineMs]).toEqual([1, 30, 30]);
  });

  it("says how many wait when it is full", () => {
    const queue = new PlaceQueue<string>(config({ maxWaiting: 2, policy: "fifo" }), 1);
    for (const flow of ["a", "b", "c"]) enqueue(queue, "high", flow);
    takeAll(queue);
    expect(() => enqueue(queue, "high", "d")).toThrow("place queue full: 2 waiting, limit 2");
  });

  it("makes room for a quiet flow by displacing the newest of the longest queue", () => {
    const queue = new PlaceQueue<string>(config({ maxWaiting: 10 }));
    const elephants = Array.from({ length: 10 }, () => enqueue(queue, "low", "elephant"));
    expect(() => enqueue(queue, "low", "elephant")).toThrow("10 waiting");
    const result = queue.enqueue({ level: "high", flow: hashFlow("high", "mouse"), payload: "mouse" }, 0);
    expect(result.kind === "queued" && result.displaced?.payload).toBe("elephant");
    expect(elephants.filter(ticket => ticket.state === "displaced")).toHaveLength(1);
    expect(queue.waiting).toBe(10);
  });

  it("never displaces the only request of a level while another has two", () => {
    const queue = new PlaceQueue<string>(config({ maxWaiting: 6, levels: new Map([["big", limited(1000)]]) }));
    const small = enqueue(queue, "small", "s");
    for (let i = 0; i < 5; i++) enqueue(queue, "big", `b${i}`);
    for (let i = 5; i < 30; i++) queue.enqueue({ level: "big", flow: hashFlow("big", `b${i}`), payload: "" }, 0);
    expect(small.state).toBe("waiting");
  });

  it("takes on another policy and other weights with requests waiting and running", () => {
    const queue = new PlaceQueue<string>(config(), 1);
    const tickets = ["low", "high", "exempt", "low"].map((level, i) => enqueue(queue, level, `f${i}`));
    const running = queue.takeNext(0)!;
    expect(running).toBe(tickets[2]);
    queue.configure(config({ policy: "fifo" }));
    queue.release(running, 10);
    queue.setCapacity(2);
    expect(takeAll(queue, 10)).toEqual([tickets[0], tickets[1]]);
    queue.configure(config({ levels: new Map([["low", { kind: "exempt" }]]) }));
    const high = enqueue(queue, "high", "h", 10);
    queue.setCapacity(4);
    expect(takeAll(queue, 10)).toEqual([tickets[3], high]);
    for (const ticket of [tickets[0]!, tickets[1]!, tickets[3]!, high]) expect(queue.release(ticket, 20)).toBe(true);
    expect([queue.inUse, queue.waiting]).toEqual([0, 0]);
    expect(queue.snapshot()).toEqual([]);
  });

  it("tells who waits", () => {
    const queue = new PlaceQueue<string>(config(), 1);
    for (const flow of ["a", "b", "c"]) enqueue(queue, "high", flow);
    queue.takeNext(0);
    expect(queue.snapshot()).toEqual([{ level: "high", waiting: 2, inUse: 1, queueLengths: [1, 1] }]);
  });
});

type Step =
  | { kind: "arrive"; level: string; flow: string; maxWaitMs: number }
  | { kind: "release" | "cancel"; at: number }
  | { kind: "capacity"; capacity: number }
  | { kind: "configure"; change: Partial<PlaceQueueConfig> }
  | { kind: "pass"; ms: number };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant("arrive" as const),
        level: fc.constantFrom("exempt", "high", "low", "none", "unknown"),
        flow: fc.constantFrom("a", "b", "c", "d"),
        maxWaitMs: fc.integer({ min: 0, max: 500 }),
      }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom("release" as const, "cancel" as const), at: fc.nat() }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant("capacity" as const), capacity: fc.integer({ min: 0, max: 5 }) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("configure" as const),
        change: fc.record(
          {
            policy: fc.constantFrom("fair" as const, "fifo" as const),
            maxWaiting: fc.integer({ min: 0, max: 8 }),
            queues: fc.integer({ min: 2, max: 8 }),
            handSize: fc.integer({ min: 1, max: 2 }),
            levels: fc.constantFrom(levels, new Map([["low", limited(5)]]), new Map<string, PlaceLevel>()),
          },
          { requiredKeys: ["queues", "handSize"] },
        ),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("pass" as const), ms: fc.integer({ min: 0, max: 200 }) }) },
  ),
  { maxLength: 120 },
);

describe("PlaceQueue, whatever happens", () => {
  it("keeps to its capacity, gives every free place, loses no ticket and leaks no place", () => {
    fc.assert(
      fc.property(steps, program => {
        let current = config({ maxWaiting: 6, queues: 4, handSize: 2 });
        const queue = new PlaceQueue<number>(current, 2);
        const all: PlaceTicket<number>[] = [];
        const inState = (state: string): PlaceTicket<number>[] => all.filter(ticket => ticket.state === state);
        let nowMs = 0;
        let told = 0;
        for (const s of program) {
          switch (s.kind) {
            case "arrive": {
              const before = queue.waiting;
              const result = queue.enqueue({ ...s, flow: hashFlow(s.level, s.flow), payload: all.length }, nowMs);
              if (result.kind === "queued") {
                all.push(result.ticket);
                if (result.displaced !== undefined) told++;
              } else expect(result.error.waiting).toBe(before);
              break;
            }
            case "release": {
              const granted = inState("granted");
              if (granted.length > 0) expect(queue.release(granted[s.at % granted.length]!, nowMs)).toBe(true);
              break;
            }
            case "cancel": {
              if (all.length === 0) break;
              const ticket = all[s.at % all.length]!;
              const waited = ticket.state === "waiting";
              expect(queue.cancel(ticket)).toBe(waited);
              break;
            }
            case "capacity":
              queue.setCapacity(s.capacity);
              break;
            case "configure":
              current = { ...current, ...s.change };
              queue.configure(current);
              break;
            case "pass":
              nowMs += s.ms;
              for (const ticket of queue.expire(nowMs)) {
                expect(ticket.deadlineMs).toBeLessThanOrEqual(nowMs);
                told++;
              }
              break;
          }
          const heldBefore = queue.inUse;
          const taken = takeAll(queue, nowMs);
          expect(queue.inUse).toBeLessThanOrEqual(Math.max(queue.capacity, heldBefore));
          if (taken.length > 0) expect(queue.inUse).toBeLessThanOrEqual(queue.capacity);
          if (queue.waiting > 0) expect(queue.inUse).toBeGreaterThanOrEqual(queue.capacity);
          expect(queue.waiting).toBe(inState("waiting").length);
          expect(queue.inUse).toBe(inState("granted").length);
          expect(told).toBe(inState("expired").length + inState("displaced").length);
        }
        for (const ticket of all) {
          queue.cancel(ticket);
          queue.release(ticket, nowMs);
        }
        expect([queue.waiting, queue.inUse, queue.nextExpiryMs(), queue.snapshot()]).toEqual([0, 0, undefined, []]);
      }),
      { numRuns: 400, seed: 4 },
    );
  });

  const contenders = fc.record({
    capacity: fc.integer({ min: 1, max: 6 }),
    weights: fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 2, maxLength: 4 }),
    servicesMs: fc.array(fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 5 }), {
      minLength: 4,
      maxLength: 4,
    }),
    windows: fc.array(fc.tuple(fc.nat(299), fc.nat(299)), { minLength: 5, maxLength: 5 }),
  });

  /** Serves 300 requests with everybody always waiting; who was given a place, and for how long. */
  function saturate(
    queue: PlaceQueue<number>,
    capacity: number,
    arrive: (who: number, nowMs: number) => void,
    count: number,
    servicesMs: readonly (readonly number[])[],
  ): { who: number; serviceMs: number }[] {
    const grants: { who: number; serviceMs: number }[] = [];
    const running: { ticket: PlaceTicket<number>; endMs: number }[] = [];
    const turns = new Array<number>(count).fill(0);
    let nowMs = 0;
    for (let who = 0; who < count; who++) for (let i = 0; i < 2; i++) arrive(who, nowMs);
    queue.setCapacity(capacity);
    while (grants.length < 300) {
      for (let ticket = queue.takeNext(nowMs); ticket !== undefined; ticket = queue.takeNext(nowMs)) {
        const who = ticket.payload;
        const services = servicesMs[who]!;
        const serviceMs = services[turns[who]!++ % services.length]!;
        grants.push({ who, serviceMs });
        running.push({ ticket, endMs: nowMs + serviceMs });
        arrive(who, nowMs);
      }
      running.sort((a, b) => a.endMs - b.endMs);
      const { ticket, endMs } = running.shift()!;
      nowMs = endMs;
      queue.release(ticket, nowMs);
    }
    return grants;
  }

  function expectWithinBound(
    grants: readonly { who: number; serviceMs: number }[],
    [from, to]: readonly [number, number],
    weights: readonly number[],
    capacity: number,
    servicesMs: readonly (readonly number[])[],
  ): void {
    const interval = grants.slice(Math.min(from, to), Math.max(from, to));
    // The first estimate, 100 ms, counts as a service time that every flow may be charged.
    const longest = weights.map((_, who) => Math.max(100, ...servicesMs[who]!));
    const given = weights.map((weight, who) =>
      interval.filter(grant => grant.who === who).reduce((sum, grant) => sum + grant.serviceMs / weight, 0),
    );
    for (let f = 0; f < weights.length; f++)
      for (let g = 0; g < f; g++) {
        const bound = (4 * capacity + 1) * (longest[f]! / weights[f]! + longest[g]! / weights[g]!);
        expect(Math.abs(given[f]! - given[g]!)).toBeLessThanOrEqual(bound);
      }
  }

  it("keeps the place-time of levels within the bound it states", () => {
    fc.assert(
      fc.property(contenders, ({ capacity, weights, servicesMs, windows }) => {
        const byName = new Map(weights.map((weight, who) => [`l${who}`, limited(weight)]));
        const queue = new PlaceQueue<number>(config({ levels: byName, maxWaitMs: 1e9 }));
        const arrive = (who: number, nowMs: number): void => {
          queue.enqueue({ level: `l${who}`, flow: { high: 0, low: who }, payload: who }, nowMs);
        };
        const grants = saturate(queue, capacity, arrive, weights.length, servicesMs);
        for (const window of windows) expectWithinBound(grants, window, weights, capacity, servicesMs);
      }),
      { numRuns: 200, seed: 5 },
    );
  });

  it("keeps the place-time of queues of one level within the bound it states", () => {
    fc.assert(
      fc.property(contenders, ({ capacity, weights, servicesMs, windows }) => {
        const queue = new PlaceQueue<number>(config({ queues: 8, handSize: 1, maxWaitMs: 1e9 }));
        const arrive = (who: number, nowMs: number): void => {
          queue.enqueue({ level: "high", flow: { high: 0, low: who }, payload: who }, nowMs);
        };
        const grants = saturate(queue, capacity, arrive, weights.length, servicesMs);
        const even = weights.map(() => 1);
        for (const window of windows) expectWithinBound(grants, window, even, capacity, servicesMs);
      }),
      { numRuns: 200, seed: 6 },
    );
  });

  it("starves no level with shares and no flow in it, however much the others bring", () => {
    fc.assert(
      fc.property(contenders, ({ capacity, weights, servicesMs }) => {
        const byName = new Map(weights.map((weight, who) => [`l${who}`, limited(weight)]));
        const queue = new PlaceQueue<number>(config({ levels: byName, maxWaitMs: 1e9 }));
        const arrive = (who: number, nowMs: number): void => {
          queue.enqueue({ level: `l${who}`, flow: { high: 0, low: who }, payload: who }, nowMs);
        };
        const grants = saturate(queue, capacity, arrive, weights.length, servicesMs);
        const total = weights.reduce((sum, weight) => sum + weight, 0);
        const longest = Math.max(100, ...servicesMs.flat());
        // Tags of the others rise by 1 ms / weight at least per grant and may be ahead by the bound.
        weights.forEach((weight, who) => {
          const gap = longestGap(
            grants.map(grant => grant.who),
            who,
          );
          expect(gap).toBeLessThanOrEqual((4 * capacity + 1) * 2 * longest * (total / weight) + capacity);
        });
      }),
      { numRuns: 100, seed: 7 },
    );
  });

  function longestGap(order: readonly number[], who: number): number {
    let longest = 0;
    let last = -1;
    order.forEach((granted, i) => {
      if (granted !== who) return;
      longest = Math.max(longest, i - last);
      last = i;
    });
    return longest;
  }
});
