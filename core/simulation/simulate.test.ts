import { describe, expect, it } from "vitest";
import { arrivalsOf, simulationSpec } from "../testing/simulation-spec.ts";
import type { Arrival } from "./arrivals.ts";
import type { SimulationResult } from "./result.ts";
import { simulate } from "./simulate.ts";

const at = (result: SimulationResult, second: number) => result.timeline.find(point => point.atMs === second * 1000)!;
const changes = (result: SimulationResult) => result.decisions.filter(({ from, to }) => from !== to);
const constant = (ms: number) => ({ kind: "constant", ms }) as const;

describe("a service at zero", () => {
  const one: Arrival[] = [{ atMs: 10_000, serviceMs: 150 }];

  it("starts one pod for a request, which waits for its start, and is at zero again a window later", () => {
    const result = simulate(simulationSpec(one));
    expect(result.requests).toEqual({
      arrived: 1,
      completed: 1,
      queueFull: 0,
      waitedTooLong: 0,
      timedOut: 0,
      unfinished: 0,
    });
    expect(result.waitMs.max).toBeCloseTo(2000, 6);
    expect(result.latencyMs.max).toBeCloseTo(2150, 6);
    expect(result.pods).toMatchObject({ most: 1, started: 1, coldStarts: 1, coldRequests: 1 });
    const [up, down] = changes(result);
    expect(up).toMatchObject({ from: 0, to: 1, rule: "stable-window" });
    expect(up!.atMs).toBeCloseTo(10_000, 6);
    expect(down).toMatchObject({ from: 1, to: 0, rule: "scaled-to-zero" });
    // The stable window (60 s) after the last second with the request, found at a tick (2 s).
    expect(down!.atMs).toBeGreaterThanOrEqual(71_000);
    expect(down!.atMs).toBeLessThanOrEqual(75_000);
    expect(result.timeline.at(-1)).toMatchObject({ readyPods: 0, startingPods: 0, drainingPods: 0 });
    // Started at 10 s, stopped at `down`, drained for 3 s.
    expect(result.pods.podSeconds).toBeCloseTo((down!.atMs - 10_000) / 1000 + 3, 6);
  });

  it("counts each start from zero once, however many requests wait for it", () => {
    const bursts = [0, 1, 2].flatMap(i => [10, 11, 12].map(ms => ({ atMs: i * 100_000 + ms, serviceMs: 100 })));
    const result = simulate(simulationSpec(bursts, {}, { horizonMs: 300_000 }));
    expect(result.pods).toMatchObject({ coldStarts: 3, coldRequests: 9 });
  });

  it("keeps the last pod for the retention period", () => {
    const scaling = { scaleToZeroPodRetentionPeriodMs: 20_000 };
    const [, down] = changes(simulate(simulationSpec(one, { scaling })));
    expect(down!.atMs).toBeGreaterThanOrEqual(91_000);
  });

  it("answers with 429 when there is no room to wait, and when the wait is over", () => {
    const many = Array.from({ length: 30 }, (_, i) => ({ atMs: 1000 + i, serviceMs: 100 }));
    const queue = { policy: "fair", maxWaiting: 20, maxWaitMs: 1500, levels: new Map() } as const;
    const result = simulate(simulationSpec(many, {}, { queue }));
    expect(result.requests).toMatchObject({ arrived: 30, completed: 0, queueFull: 10, waitedTooLong: 20 });
    expect(result.pods.coldStarts).toBe(1);
  });

  it("starts with the initial scale when the service was just created", () => {
    const result = simulate(simulationSpec([], { scaling: { initialScale: 3 } }, { beginning: { kind: "created" } }));
    expect(at(result, 1)).toMatchObject({ startingPods: 3, readyPods: 0 });
    expect(result.pods).toMatchObject({ most: 3, started: 3 });
    const [reached] = changes(result);
    expect(reached).toMatchObject({ from: 3, rule: "max-scale-down-rate" });
    expect(reached!.atMs).toBeGreaterThanOrEqual(2000);
  });
});

describe("Knative's policy", () => {
  const step = arrivalsOf({ kind: "step", fromRps: 5, toRps: 200, atMs: 30_000 }, 90_000, constant(200));

  it("panics at a step, and has the pods for it seconds later", () => {
    const result = simulate(simulationSpec(step));
    // 200 a second x 0.2 s = 40 at once; 10 a pod, 70 % aimed at: 6 pods.
    const firstPanic = result.timeline.find(point => point.panic && point.atMs > 30_000)!;
    expect(firstPanic.atMs).toBeLessThanOrEqual(36_000);
    expect(at(result, 45).readyPods).toBeGreaterThanOrEqual(6);
    expect(result.requests).toMatchObject({ completed: step.length, unfinished: 0 });
    expect(at(result, 88).waiting).toBe(0);
  });

  it("holds min scale without requests and max scale with too many", () => {
    const idle = simulate(simulationSpec([], { scaling: { minScale: 2 } }));
    expect(idle.timeline.every(point => point.readyPods === 2)).toBe(true);
    const busy = simulate(simulationSpec(step, { scaling: { maxScale: 3 } }));
    expect(Math.max(...busy.timeline.map(point => point.wantedPods))).toBe(3);
    expect(busy.decisions.some(({ rule }) => rule === "max-scale")).toBe(true);
    expect(busy.waitMs.p99).toBeGreaterThan(simulate(simulationSpec(step)).waitMs.p99);
  });

  it("removes pods later with a scale-down delay", () => {
    const spike = arrivalsOf(
      { kind: "spike", baseRps: 5, peakRps: 150, atMs: 5_000, lengthMs: 20_000 },
      240_000,
      constant(200),
    );
    const firstDown = (scaleDownDelayMs: number): number =>
      simulate(simulationSpec(spike, { scaling: { scaleDownDelayMs } }, { horizonMs: 240_000 })).decisions.find(
        ({ from, to }) => to < from,
      )!.atMs;
    expect(firstDown(60_000) - firstDown(0)).toBeGreaterThan(20_000);
  });

  it("loses no long request when it scales down: stopped pods drain", () => {
    const long = Array.from({ length: 40 }, (_, i) => ({
      atMs: 1000 + i * 10,
      serviceMs: i % 10 === 0 ? 200_000 : 500,
    }));
    const result = simulate(simulationSpec(long, {}, { horizonMs: 400_000 }));
    expect(result.requests).toMatchObject({ completed: 40, unfinished: 0 });
    expect(result.timeline.some(point => point.drainingPods > 0)).toBe(true);
  });

  it("scales on requests per second where that is the metric", () => {
    const requests = arrivalsOf({ kind: "poisson", rps: 100 }, 120_000, constant(1));
    const result = simulate(simulationSpec(requests, { scaling: { metric: "rps", target: 20, targetUtilization: 1 } }));
    expect(at(result, 110).readyPods).toBe(5);
  });
});

describe("the manual policy", () => {
  it("keeps its number, whatever the load", () => {
    const result = simulate(
      simulationSpec(arrivalsOf({ kind: "poisson", rps: 100 }, 60_000, constant(100)), { policy: { manual: 2 } }),
    );
    expect(new Set(result.timeline.map(point => point.readyPods))).toEqual(new Set([2]));
    expect(result.pods).toMatchObject({ started: 0, coldStarts: 0, podSeconds: 240, readyPodSeconds: 240 });
  });

  it("waits as long as queueing theory says (Erlang C, 10 places, 80 % busy)", () => {
    // M/M/10 with 8 erlangs: P(wait) = 0.4092, mean wait = P(wait) x s / (10 - 8) = 0.2046 s.
    const erlangs = 8;
    const places = 10;
    let inverse = 1;
    for (let i = 1; i <= places; i++) inverse = 1 + (inverse * i) / erlangs;
    const blocking = 1 / inverse;
    const waiting = blocking / (1 - (erlangs / places) * (1 - blocking));
    expect(waiting).toBeCloseTo(0.4092, 4);

    const service = { kind: "exponential", meanMs: 1000 } as const;
    const requests = arrivalsOf({ kind: "poisson", rps: 8 }, 20_000_000, service, "poisson");
    const result = simulate(
      simulationSpec(
        requests,
        { policy: { manual: 10 }, containerConcurrency: 1 },
        { horizonMs: 20_100_000, timelineStepMs: 100_000, queue: fifo },
      ),
    );
    expect(result.requests.completed).toBe(requests.length);
    expect(Math.abs(result.waitMs.mean - waiting * 500)).toBeLessThan(0.05 * waiting * 500);
  }, 30_000);

  const fifo = { policy: "fifo", maxWaiting: 100_000, maxWaitMs: undefined, levels: new Map() } as const;
});

describe("Cloud Run's policy", () => {
  it("starts instances for requests that find no place, at once, and keeps idle ones until the time-out", () => {
    const burst = Array.from({ length: 35 }, () => ({ atMs: 10_000, serviceMs: 1000 }));
    const spec = simulationSpec(
      burst,
      { policy: "cloud-run", cloudRun: { idleTimeoutMs: 120_000 } },
      { horizonMs: 1_200_000, timelineStepMs: 1000 },
    );
    const result = simulate(spec);
    const firstUp = changes(result)[0]!;
    expect(firstUp).toMatchObject({ from: 0, rule: "on-demand" });
    expect(firstUp.atMs).toBeCloseTo(10_000, 6);
    // 35 requests, 10 places each, of which 60 % is aimed at: ceil(5.83).
    expect(at(result, 11).startingPods).toBe(6);
    expect(result.requests.completed).toBe(35);
    expect(result.waitMs.max).toBeLessThan(2500);
    expect(at(result, 100).readyPods).toBeGreaterThan(0);
    expect(result.timeline.at(-1)!.readyPods).toBe(0);
  });

  const MINUTE = 60_000;
  const quarterHours = { horizonMs: 40 * MINUTE, timelineStepMs: 1000 };
  /** 30 requests of 5 s at once. */
  const surge = Array.from({ length: 30 }, () => ({ atMs: 10_000, serviceMs: 5000 }));

  it("keeps idle instances for 15 minutes by default: the first group goes early, the last one to zero at the end", () => {
    const result = simulate(simulationSpec(surge, { policy: "cloud-run" }, quarterHours));
    const most = Math.max(...result.timeline.map(({ readyPods }) => readyPods));
    expect(most).toBeGreaterThanOrEqual(3);
    const early = at(result, 5 * 60).readyPods;
    expect(early).toBeGreaterThanOrEqual(1);
    expect(early).toBeLessThan(most);
    // The last request ended at about 17 s: from then on 15 minutes, found at a tick.
    expect(at(result, 15 * 60 + 5).readyPods).toBeGreaterThanOrEqual(1);
    expect(at(result, 15 * 60 + 45).readyPods).toBe(0);
    expect(result.requests.completed).toBe(surge.length);
  });

  it("never lets the minimum go, however long it is idle", () => {
    const options = { policy: "cloud-run", scaling: { minScale: 2 } } as const;
    const result = simulate(simulationSpec(surge, options, quarterHours));
    expect(result.timeline.at(-1)!.readyPods).toBe(2);
  });

  it("keeps the last instance under a request of 20 minutes (instance-based billing), and lets it go after it", () => {
    const long = [{ atMs: 10_000, serviceMs: 20 * MINUTE }];
    const options = { policy: "cloud-run", cloudRun: { cpuAlwaysAllocated: true } } as const;
    const change = { ...quarterHours, requestTimeoutMs: 30 * MINUTE };
    const result = simulate(simulationSpec(long, options, change));
    expect(at(result, 20 * 60).readyPods).toBe(1);
    expect(at(result, 34 * 60).readyPods).toBe(1);
    expect(result.timeline.at(-1)!.readyPods).toBe(0);
    expect(result.requests.completed).toBe(1);
  });

  it("may exceed the maximum for 15 minutes of a surge where the service allows it", () => {
    const load = arrivalsOf({ kind: "poisson", rps: 8 }, 30 * MINUTE, constant(10_000));
    const most = (maxScaleOvershoot: boolean, from: number, to: number): number => {
      const options = { policy: "cloud-run", scaling: { maxScale: 4 }, cloudRun: { maxScaleOvershoot } } as const;
      const queue = { policy: "fifo", maxWaiting: 100, maxWaitMs: undefined, levels: new Map() } as const;
      const { timeline } = simulate(simulationSpec(load, options, { ...quarterHours, queue }));
      const seen = timeline.filter(({ atMs }) => atMs >= from * MINUTE && atMs < to * MINUTE);
      return Math.max(...seen.map(({ wantedPods }) => wantedPods));
    };
    expect(most(false, 0, 30)).toBe(4);
    expect(most(true, 0, 15)).toBe(8);
    expect(most(true, 17, 30)).toBe(4);
  });

  it("lowers the concurrency of instances whose CPU is saturated (adaptive concurrency)", () => {
    const cpu = { cpus: 1, perRequest: 0.5 };
    const load = arrivalsOf({ kind: "poisson", rps: 30 }, 120_000, constant(100));
    const most = (adaptiveConcurrency: boolean): number => {
      const options = { policy: "cloud-run", cloudRun: { adaptiveConcurrency }, scaling: { maxScale: 1 } } as const;
      const result = simulate(simulationSpec(load, options, { cpu }));
      return Math.max(...result.timeline.filter(point => point.atMs > 60_000).map(point => point.inFlight));
    };
    expect(most(false)).toBe(10);
    expect(most(true)).toBeLessThan(5);
  });
});

describe("waiting", () => {
  it("is fair between a mouse and an elephant, and not with fifo", () => {
    const elephant = Array.from({ length: 800 }, (_, i) => ({ atMs: i, serviceMs: 100, flow: "elephant" }));
    const mouse = Array.from({ length: 20 }, (_, i) => ({ atMs: i * 500, serviceMs: 100, flow: "mouse" }));
    const arrivals = [...elephant, ...mouse].sort((a, b) => a.atMs - b.atMs);
    const mouseP99 = (policy: "fair" | "fifo"): number => {
      const queue = { policy, maxWaiting: 1000, maxWaitMs: undefined, levels: new Map() };
      const result = simulate(simulationSpec(arrivals, { policy: { manual: 2 }, containerConcurrency: 1 }, { queue }));
      expect(result.flows.map(({ flow, arrived }) => [flow, arrived])).toEqual([
        ["elephant", 800],
        ["mouse", 20],
      ]);
      return result.flows[1]!.latencyMs.p99;
    };
    expect(mouseP99("fair")).toBeLessThan(400);
    expect(mouseP99("fifo")).toBeGreaterThan(10_000);
  });

  it("ends at the revision's timeout for requests that take longer", () => {
    const result = simulate(
      simulationSpec([{ atMs: 0, serviceMs: 20_000 }], { policy: { manual: 1 } }, { requestTimeoutMs: 5000 }),
    );
    expect(result.requests).toMatchObject({ completed: 0, timedOut: 1 });
  });
});
