import { describe, expect, it } from "vitest";
import { hashFlow } from "../../../core/flowcontrol/flow-hash.ts";
import type { PlaceLevel } from "../../../core/flowcontrol/place-queue.ts";
import type { Upstream } from "../../shared/http/upstream.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import type { Endpoint } from "./pod.ts";
import { RevisionBackend, type FlowPlace, type Place, type WaitingClient } from "./revision-backend.ts";
import type { RevisionSettings } from "./revision-settings.ts";

const flow: FlowPlace = { level: "all", flow: hashFlow("all", "") };

class Client implements WaitingClient {
  gone = false;
  #callback: (() => void) | undefined;
  onGone(callback: (() => void) | undefined): void {
    this.#callback = callback;
  }
  leave(): void {
    this.gone = true;
    this.#callback?.();
  }
}

const ready = (name: string, more: Partial<Endpoint> = {}): Endpoint => ({
  podName: name,
  podUid: `uid-${name}`,
  address: `${name}:8012`,
  ready: true,
  terminating: false,
  ...more,
});

const base: RevisionSettings = {
  service: "s",
  protocol: "h1",
  podConcurrency: 1,
  timeouts: { wholeMs: 30_000, responseStartMs: 0, idleMs: 0 },
  backstop: { wholeMs: 35_000, responseStartMs: 0, idleMs: 0 },
  queueLength: 10,
  queuePolicy: "fifo",
  width: 1,
};

function setUp(settings: Partial<RevisionSettings> = {}) {
  const clock = new FakeClock();
  const pokes: number[] = [];
  const connected: string[] = [];
  const closed: string[] = [];
  const levels = new Map<string, PlaceLevel>();
  const gateways = { set: { names: ["gw-1"], self: "gw-1" } };
  const backend = new RevisionBackend({
    namespace: "ns",
    name: "r",
    clock,
    random: () => 0,
    settings: { ...base, ...settings },
    failedWaitMs: 5_000,
    levels: () => levels,
    gateways: () => gateways.set,
    connect: (address, protocol): Upstream => {
      connected.push(`${protocol} ${address}`);
      return { send: () => ({ resume() {}, abort() {} }), close: () => closed.push(address) };
    },
    onNeedsPod: () => pokes.push(clock.nowMs()),
    onWaiting: () => undefined,
  });
  const acquire = (client = new Client()) => backend.acquire(client, flow, clock.nowMs());
  /** A request whose fate is looked at later. */
  const request = (client = new Client()) => {
    const request = {
      client,
      place: undefined as Place | undefined,
      error: undefined as (Error & { code?: string }) | undefined,
    };
    const settle = (async () => {
      try {
        request.place = await backend.acquire(client, flow, clock.nowMs());
      } catch (error) {
        request.error = error as Error;
      }
    })();
    return Object.assign(request, { settled: settle });
  };
  return { gateways, levels, clock, backend, pokes, connected, closed, acquire, request };
}

const settle = () => new Promise(resolve => setImmediate(resolve));

describe("RevisionBackend", () => {
  it("gives a free place at once and never more than the pods admit", async () => {
    const { backend, acquire, request } = setUp({ podConcurrency: 2 });
    backend.setEndpoints([ready("a"), ready("b")]);
    const places = [acquire(), acquire(), acquire(), acquire()];
    for (const place of places) expect(place).not.toBeInstanceOf(Promise);
    expect(backend.pods.map(pod => pod.inFlight)).toEqual([2, 2]);
    const fifth = request();
    await settle();
    expect(fifth.place).toBeUndefined();
    expect(backend.waiting).toBe(1);
    (places[0] as Place).release();
    await fifth.settled;
    expect(fifth.place?.pod).toBe((places[0] as Place).pod);
  });

  it("holds requests at zero, says so at once, and gives them to the first ready pod", async () => {
    const { backend, clock, pokes, request } = setUp();
    const first = request();
    expect(pokes).toEqual([0]);
    clock.advance(900);
    backend.setEndpoints([ready("a", { ready: false })]);
    await settle();
    expect(first.place).toBeUndefined();
    clock.advance(100);
    backend.setEndpoints([ready("a")]);
    await first.settled;
    expect(first.place).toMatchObject({ waitedMs: 1000, pod: { name: "a" } });
  });

  it("says that it needs a pod also when all are busy, where the scaling policy starts pods for that", async () => {
    const { backend, clock, pokes, acquire, request } = setUp({ assumedWaitMs: 35_000 });
    backend.setEndpoints([ready("a")]);
    const held = acquire() as Place;
    expect([pokes, backend.needsPod]).toEqual([[], false]);
    clock.advance(10);
    const waits = request();
    expect([pokes, backend.needsPod]).toEqual([[10], true]);
    held.release();
    await waits.settled;
    expect(backend.needsPod).toBe(false);

    const other = setUp();
    other.backend.setEndpoints([ready("a")]);
    expect(other.acquire()).not.toBeInstanceOf(Promise);
    other.request();
    expect([other.pokes, other.backend.needsPod]).toEqual([[], false]);
    other.backend.advise({ demotedPods: [], podConcurrency: {}, pendingTimeoutMs: 10_000 });
    other.request();
    expect([other.pokes, other.backend.needsPod]).toEqual([[0], true]);
  });

  it("holds those who wait already to a longest wait that is told later", async () => {
    const { backend, clock, request } = setUp({ assumedWaitMs: 35_000 });
    const hint = { demotedPods: [], podConcurrency: {} };
    const first = request();
    clock.advance(4_000);
    const second = request();
    backend.advise({ ...hint, pendingTimeoutMs: 10_000 });
    clock.advance(5_999);
    await settle();
    expect([first.error, second.error]).toEqual([undefined, undefined]);
    clock.advance(1);
    await first.settled;
    expect(first.error?.code).toBe("NO_POD");
    backend.advise({ ...hint, pendingTimeoutMs: 12_000 });
    clock.advance(5_999);
    await settle();
    expect(second.error).toBeUndefined();
    clock.advance(1);
    await second.settled;
    expect(second.error?.code).toBe("NO_POD");
    // Shorter than it has waited already.
    const third = request();
    clock.advance(5_000);
    backend.advise({ ...hint, pendingTimeoutMs: 3_000 });
    clock.advance(0);
    await third.settled;
    expect(third.error?.code).toBe("NO_POD");
  });

  // knative/serving #13096, #13331
  it("drains the queue into pods as they come", async () => {
    const { backend, request } = setUp({ podConcurrency: 2 });
    backend.setEndpoints([ready("a")]);
    const requests = Array.from({ length: 10 }, () => request());
    backend.setEndpoints([ready("a"), ready("b")]);
    backend.setEndpoints([ready("a"), ready("b"), ready("c"), ready("d"), ready("e")]);
    await Promise.all(requests.map(one => one.settled));
    expect(backend.pods.map(pod => pod.inFlight)).toEqual([2, 2, 2, 2, 2]);
  });

  // knative/serving #15211
  it("gives nothing to a terminating pod, whatever holds places there", async () => {
    const { backend, acquire, closed } = setUp({ podConcurrency: 1 });
    backend.setEndpoints([ready("a"), ready("b")]);
    const held = [acquire() as Place, acquire() as Place];
    const onA = held.find(place => place.pod.name === "a")!;
    backend.setEndpoints([ready("a", { terminating: true }), ready("b"), ready("c")]);
    expect(closed).toEqual(["a:8012"]);
    expect((acquire() as Place).pod.name).toBe("c");
    onA.release();
    expect(backend.capacity).toBe(2);
    expect(acquire()).toBeInstanceOf(Promise);
  });

  // knative/serving #13583
  it("bounds those who wait, lets go of those who left, and says when to come again", async () => {
    const { backend, acquire, request } = setUp({ queueLength: 2 });
    backend.setEndpoints([ready("a")]);
    const place = acquire() as Place;
    const first = request();
    const second = request();
    const third = request();
    await third.settled;
    expect(third.error).toMatchObject({
      code: "QUEUE_FULL",
      message: "queue full: 2 requests wait for a place at revision ns/r, limit 2",
    });
    expect((third.error as unknown as { retryAfterS: number }).retryAfterS).toBeGreaterThanOrEqual(1);
    first.client.leave();
    await first.settled;
    expect(first.error).toMatchObject({ code: "CLIENT_GONE" });
    expect(backend.waiting).toBe(1);
    place.release();
    await second.settled;
    expect(second.place).toBeDefined();
    expect(backend.inFlight).toBe(1);
  });

  it("ends a wait for a busy revision by the annotation, the hint, the policy's rule, or the revision's timeout", async () => {
    for (const [settings, hint, boundMs] of [
      [{ maxWaitMs: 2_000 }, 9_000, 2_000],
      [{}, 9_000, 9_000],
      [{ assumedWaitMs: 12_000 }, 9_000, 9_000],
      [{ assumedWaitMs: 12_000 }, undefined, 12_000],
      [{}, undefined, 30_000],
    ] as const) {
      const { backend, clock, acquire, request } = setUp(settings);
      if (hint !== undefined) backend.advise({ demotedPods: [], podConcurrency: {}, pendingTimeoutMs: hint });
      backend.setEndpoints([ready("a")]);
      void acquire();
      const waiting = request();
      clock.advance(boundMs - 1);
      await settle();
      expect(waiting.error).toBeUndefined();
      clock.advance(1);
      await waiting.settled;
      expect(waiting.error).toMatchObject({
        code: "PLACE_TIMEOUT",
        message: `all 1 places at revision ns/r stayed busy for ${boundMs} ms`,
      });
    }
  });

  // knative/serving #13211, #12728
  it("ends the wait with the cause as soon as the revision is known to have failed", async () => {
    const { backend, clock, request } = setUp();
    const waiting = request();
    clock.advance(3_000);
    const trouble = { reason: "ImagePullBackOff", message: "no such image" };
    backend.configure({ ...base, trouble });
    await settle();
    expect(waiting.error).toBeUndefined();
    backend.configure({ ...base, failed: trouble, trouble });
    await waiting.settled;
    expect(waiting.error).toMatchObject({
      code: "REVISION_FAILED",
      message: "revision ns/r cannot serve: ImagePullBackOff: no such image",
    });
  });

  it("lets a request try a revision that failed before, shortly: it may recover", async () => {
    const { backend, clock, pokes, request } = setUp();
    const failed = { reason: "ExitCode1", message: "container failed" };
    backend.configure({ ...base, failed });
    const unlucky = request();
    expect(pokes).toHaveLength(1);
    clock.advance(5_000);
    await unlucky.settled;
    expect(unlucky.error).toMatchObject({ code: "REVISION_FAILED" });
    const lucky = request();
    backend.configure(base);
    clock.advance(20_000);
    await settle();
    expect(lucky.error).toBeUndefined();
    backend.setEndpoints([ready("a")]);
    await lucky.settled;
    expect(lucky.place).toBeDefined();
    expect(clock.pending).toBe(1);
  });

  it("explains a wait in vain by what troubles the revision", async () => {
    const { backend, clock, request } = setUp({ maxWaitMs: 1_000 });
    backend.configure({ ...base, maxWaitMs: 1_000, trouble: { reason: "Unschedulable", message: "Insufficient cpu" } });
    const waiting = request();
    clock.advance(1_000);
    await waiting.settled;
    expect(waiting.error).toMatchObject({
      code: "NO_POD",
      message: "no pod of revision ns/r became ready within 1000 ms: Unschedulable: Insufficient cpu",
    });
  });

  it("sets a pod aside that takes no connection, longer each time, and comes back to it", async () => {
    const { backend, clock, acquire, request } = setUp({ podConcurrency: 5 });
    backend.setEndpoints([ready("a"), ready("b")]);
    const place = acquire() as Place;
    backend.refusedBy(place.pod);
    place.release();
    const other = place.pod.name === "a" ? "b" : "a";
    for (let i = 0; i < 5; i++) expect((acquire() as Place).pod.name).toBe(other);
    const waiting = request();
    clock.advance(199);
    await settle();
    expect(waiting.place).toBeUndefined();
    clock.advance(1);
    await waiting.settled;
    expect(waiting.place?.pod).toBe(place.pod);
    backend.refusedBy(place.pod);
    const again = request();
    clock.advance(399);
    await settle();
    expect(again.place).toBeUndefined();
    clock.advance(1);
    await again.settled;
    expect(again.place).toBeDefined();
  });

  it("gives demoted pods only what the others cannot take, and follows lowered limits", () => {
    const { backend, acquire } = setUp({ podConcurrency: 4 });
    backend.setEndpoints([ready("a"), ready("b")]);
    backend.advise({ demotedPods: ["b"], podConcurrency: { a: 2 } });
    const names = [acquire(), acquire(), acquire(), acquire()].map(place => (place as Place).pod.name);
    expect(names).toEqual(["a", "a", "b", "b"]);
    backend.advise(undefined);
    expect(backend.capacity).toBe(8);
  });

  it("believes a starting pod's own answer until its EndpointSlice says more, and no pod's that was ready", async () => {
    const { backend, acquire } = setUp({ podConcurrency: 2 });
    backend.setEndpoints([ready("a", { ready: false })]);
    const [pod] = backend.startingPods;
    backend.readyByProbe(pod!);
    expect(acquire()).not.toBeInstanceOf(Promise);
    backend.setEndpoints([ready("a", { ready: false })]);
    expect(acquire()).not.toBeInstanceOf(Promise);
    backend.setEndpoints([ready("a")]);
    backend.setEndpoints([ready("a", { ready: false })]);
    expect(backend.hasRoutablePod).toBe(false);
    expect(backend.startingPods).toEqual([]);
  });

  it("takes another pod at the same address for another pod", () => {
    const { backend, acquire } = setUp();
    backend.setEndpoints([ready("a")]);
    void acquire();
    expect(acquire()).toBeInstanceOf(Promise);
    backend.setEndpoints([ready("new", { address: "a:8012" })]);
    expect(backend.pods.map(pod => [pod.name, pod.inFlight])).toEqual([["new", 1]]);
  });

  it("speaks HTTP/2 to pods seen before their Revision", () => {
    const { backend, connected } = setUp();
    backend.setEndpoints([ready("a")]);
    backend.configure({ ...base, protocol: "h2c" });
    expect(connected).toEqual(["h1 a:8012", "h2c a:8012"]);
    expect(backend.hasRoutablePod).toBe(true);
  });

  it("has no bound per pod without containerConcurrency", () => {
    const { backend, acquire } = setUp({ podConcurrency: Infinity });
    backend.setEndpoints([ready("a")]);
    for (let i = 0; i < 500; i++) expect(acquire()).not.toBeInstanceOf(Promise);
    backend.setEndpoints([]);
    expect(acquire()).toBeInstanceOf(Promise);
  });

  it("sends everybody away when the revision is deleted", async () => {
    const { backend, acquire, request } = setUp();
    const waiting = request();
    backend.remove();
    await waiting.settled;
    expect(waiting.error).toMatchObject({ code: "REVISION_GONE" });
    expect(() => acquire()).toThrow("was deleted");
  });

  it("lets levels share places by weight, as they are now", async () => {
    const { backend, clock, levels } = setUp({ podConcurrency: 1, queuePolicy: "fair", queueLength: 100 });
    backend.setEndpoints([ready("a")]);
    const order: string[] = [];
    const enter = (level: string): void => {
      const acquired = backend.acquire(new Client(), { level, flow: hashFlow(level, "") }, clock.nowMs());
      void Promise.resolve(acquired).then(place => {
        order.push(level);
        clock.advance(10);
        place.release();
      });
    };
    levels.set("gold", { kind: "limited", weight: 30 });
    levels.set("free", { kind: "limited", weight: 10 });
    levels.set("exempt", { kind: "exempt" });
    backend.levelsChanged();
    const busy = backend.acquire(new Client(), { level: "free", flow: hashFlow("free", "") }, clock.nowMs()) as Place;
    for (let i = 0; i < 40; i++) for (const level of ["free", "gold"]) enter(level);
    enter("exempt");
    busy.release();
    for (let i = 0; i < 100 && order.length < 41; i++) await settle();
    expect(order[0]).toBe("exempt");
    const gold = order.slice(1, 41).filter(level => level === "gold").length;
    expect(Math.abs(gold - 30)).toBeLessThanOrEqual(2);
  });

  it("leaks no place whatever ends a request", async () => {
    const { backend, clock, request } = setUp({ podConcurrency: 3, queueLength: 50 });
    let seed = 7;
    const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    const open: ReturnType<typeof request>[] = [];
    for (let step = 0; step < 2000; step++) {
      const dice = random();
      if (dice < 0.45) open.push(request());
      else if (dice < 0.75 && open.length > 0) {
        const [one] = open.splice(Math.floor(random() * open.length), 1);
        one!.client.leave();
        one!.place?.release();
        void one!.settled.then(() => one!.place?.release());
      } else if (dice < 0.9)
        backend.setEndpoints(["a", "b", "c", "d"].filter(() => random() < 0.6).map(name => ready(name)));
      else clock.advance(random() * 5000);
      await settle();
      for (const pod of backend.pods) expect(pod.inFlight).toBeLessThanOrEqual(3);
    }
    for (const one of open) {
      one.client.leave();
      one.place?.release();
    }
    await settle();
    for (const one of open) one.place?.release();
    expect([backend.waiting, backend.inFlight]).toEqual([0, 0]);
  });
});
