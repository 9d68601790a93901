import { describe, expect, it } from "vitest";
import { hashFlow } from "./flow-hash.ts";
import type { PlaceLevel, PlacePolicy, PlaceTicket } from "./place-queue.ts";
import { PlaceQueue } from "./place-queue.ts";

/** Requests of one tenant: so many a second at random times, each holding its place for `serviceMs`. */
interface Tenant {
  readonly name: string;
  readonly level: string;
  readonly perSecond: number;
  readonly serviceMs: number;
}

interface Outcome {
  /** From arrival to the end of service, sorted. */
  readonly latenciesMs: number[];
  readonly refused: number;
}

/** Seeded, even in [0, 1): mulberry32. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const levels = new Map<string, PlaceLevel>([
  ["exempt", { kind: "exempt" }],
  ["high", { kind: "limited", weight: 40 }],
  ["low", { kind: "limited", weight: 10 }],
]);

/** A minute at a revision with so many places, who waits at most 5 s with at most 100 others. */
function simulate(policy: PlacePolicy, places: number, tenants: readonly Tenant[]): Map<string, Outcome> {
  const config = { policy, maxWaiting: 100, maxWaitMs: 5000, levels, queues: 64, handSize: 8 };
  const queue = new PlaceQueue<Tenant>(config, places);
  const random = randomFrom(1);
  const latencies = new Map(tenants.map(({ name }): [string, number[]] => [name, []]));
  const refused = new Map(tenants.map(({ name }) => [name, 0]));
  const arrivals = tenants
    .flatMap(tenant => {
      const times: { atMs: number; tenant: Tenant }[] = [];
      for (let atMs = 0; atMs < 60_000; atMs -= Math.log(1 - random()) * (1000 / tenant.perSecond)) {
        times.push({ atMs, tenant });
      }
      return times;
    })
    .sort((a, b) => a.atMs - b.atMs);
  const running: { endMs: number; ticket: PlaceTicket<Tenant> }[] = [];
  const refuse = ({ payload }: PlaceTicket<Tenant>): unknown =>
    refused.set(payload.name, refused.get(payload.name)! + 1);
  const take = (nowMs: number): void => {
    queue.expire(nowMs).forEach(refuse);
    for (let ticket = queue.takeNext(nowMs); ticket !== undefined; ticket = queue.takeNext(nowMs)) {
      const endMs = nowMs + ticket.payload.serviceMs;
      running.push({ endMs, ticket });
      latencies.get(ticket.payload.name)!.push(endMs - ticket.enqueuedMs);
    }
    expect(queue.inUse).toBeLessThanOrEqual(places);
    running.sort((a, b) => a.endMs - b.endMs);
  };
  for (const { atMs, tenant } of arrivals) {
    while (running[0] !== undefined && running[0].endMs <= atMs) {
      const { endMs, ticket } = running.shift()!;
      queue.release(ticket, endMs);
      take(endMs);
    }
    const flow = hashFlow("tenants", tenant.name);
    const result = queue.enqueue({ level: tenant.level, flow, payload: tenant }, atMs);
    if (result.kind === "rejected") refused.set(tenant.name, refused.get(tenant.name)! + 1);
    else if (result.displaced !== undefined) refuse(result.displaced);
    take(atMs);
  }
  return new Map(
    tenants.map(({ name }) => [
      name,
      { latenciesMs: latencies.get(name)!.sort((a, b) => a - b), refused: refused.get(name)! },
    ]),
  );
}

const median = ({ latenciesMs }: Outcome): number => latenciesMs[latenciesMs.length >> 1]!;
const p99 = ({ latenciesMs }: Outcome): number => latenciesMs[Math.ceil(latenciesMs.length * 0.99) - 1]!;

// containerConcurrency 1, two pods, 100 ms a request: 20 requests a second, a tenant's share is 10.
const PLACES = 2;
const mouse: Tenant = { name: "mouse", level: "low", perSecond: 2, serviceMs: 100 };
const elephant: Tenant = { name: "elephant", level: "low", perSecond: 500, serviceMs: 100 };

describe("who waits at a revision with two places", { timeout: 60_000 }, () => {
  const alone = p99(simulate("fair", PLACES, [mouse]).get("mouse")!);

  it("an elephant at 50 times its share leaves the mouse within twice what it has alone plus one service time", () => {
    const outcome = simulate("fair", PLACES, [mouse, elephant]).get("mouse")!;
    expect(p99(outcome)).toBeLessThanOrEqual(2 * alone + 100);
    expect(outcome.refused).toBe(0);
  });

  it("under fifo the elephant does the harm", () => {
    const outcome = simulate("fifo", PLACES, [mouse, elephant]).get("mouse")!;
    expect(outcome.refused > 0 || p99(outcome) > 10 * alone).toBe(true);
  });

  it("a tenant that brings 50 times its share has no more of it than one that brings a little over", () => {
    const outcome = simulate("fair", PLACES, [{ ...mouse, perSecond: 12 }, elephant]);
    const [few, many] = ["mouse", "elephant"].map(name => outcome.get(name)!.latenciesMs.length);
    expect(few! / many!).toBeGreaterThan(0.95);
  });

  it("five elephants leave the mouse, which brings 60 % of its sixth, its sixth", () => {
    const herd = Array.from({ length: 5 }, (_, i) => ({ ...elephant, name: `elephant ${i}`, perSecond: 60 }));
    const outcome = simulate("fair", PLACES, [mouse, ...herd]);
    expect(outcome.get("mouse")!.refused).toBe(0);
    expect(median(outcome.get("mouse")!)).toBeLessThanOrEqual(300);
  });

  it("an elephant with requests of ten seconds leaves the mouse its half of the place-time", () => {
    const slow = { ...elephant, perSecond: 50, serviceMs: 10_000 };
    const busyMouse = { ...mouse, perSecond: 40 };
    const outcome = simulate("fair", PLACES, [busyMouse, slow]);
    const spentMs = (name: string, serviceMs: number): number => outcome.get(name)!.latenciesMs.length * serviceMs;
    expect(spentMs("mouse", 100)).toBeGreaterThan(0.3 * PLACES * 60_000);
    expect(spentMs("elephant", 10_000)).toBeGreaterThan(0.3 * PLACES * 60_000);
  });

  it("paying tenants come before free ones by their weights once places are short, and free ones still come", () => {
    const paid: Tenant = { name: "paid", level: "high", perSecond: 40, serviceMs: 100 };
    const free: Tenant = { name: "free", level: "low", perSecond: 200, serviceMs: 100 };
    const outcome = simulate("fair", PLACES, [paid, free]);
    const [paidServed, freeServed] = ["paid", "free"].map(name => outcome.get(name)!.latenciesMs.length);
    expect(paidServed! / freeServed!).toBeGreaterThan(3.6);
    expect(paidServed! / freeServed!).toBeLessThan(4.4);
  });

  it("exempt requests wait for no more than the place that is free next", () => {
    const probe: Tenant = { name: "probe", level: "exempt", perSecond: 1, serviceMs: 5 };
    const outcome = simulate("fair", PLACES, [probe, elephant]).get("probe")!;
    expect(outcome.refused).toBe(0);
    expect(outcome.latenciesMs.at(-1)).toBeLessThanOrEqual(105);
  });

  it("uses all places whenever anybody waits", () => {
    const outcome = simulate("fair", PLACES, [mouse, elephant]);
    const served = [...outcome.values()].reduce((sum, { latenciesMs }) => sum + latenciesMs.length, 0);
    expect(served).toBeGreaterThanOrEqual(60 * 20 - PLACES);
  });
});
