import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ScenarioOptions } from "../testing/simulation-spec.ts";
import { simulationSpec } from "../testing/simulation-spec.ts";
import type { Arrival } from "./arrivals.ts";
import { simulate } from "./simulate.ts";
import type { SimulationSpec } from "./simulate.ts";

const arrivals: fc.Arbitrary<Arrival[]> = fc
  .array(
    fc.record({
      atMs: fc.double({ min: 0, max: 60_000, noNaN: true }),
      serviceMs: fc.double({ min: 0, max: 20_000, noNaN: true }),
      flow: fc.constantFrom("a", "b", "c"),
    }),
    { maxLength: 150 },
  )
  .map(list => list.sort((a, b) => a.atMs - b.atMs));

const options: fc.Arbitrary<ScenarioOptions> = fc.record({
  policy: fc.constantFrom<Exclude<ScenarioOptions["policy"], undefined>>("kpa", "cloud-run", { manual: 3 }),
  containerConcurrency: fc.constantFrom(0, 1, 2, 10),
  scaling: fc.record({ maxScale: fc.integer({ min: 2, max: 6 }), minScale: fc.integer({ min: 0, max: 2 }) }),
  cloudRun: fc.constant({ idleTimeoutMs: 30_000 }),
});

const change: fc.Arbitrary<Partial<SimulationSpec>> = fc.record({
  seed: fc.integer(),
  gateways: fc.integer({ min: 1, max: 3 }),
  podStart: fc.constantFrom(
    { kind: "constant", ms: 0 } as const,
    { kind: "exponential", meanMs: 3000 } as const,
    { kind: "uniform", minMs: 500, maxMs: 9000 } as const,
  ),
  requestTimeoutMs: fc.constantFrom(5_000, 300_000),
  queue: fc.record({
    policy: fc.constantFrom("fair" as const, "fifo" as const),
    maxWaiting: fc.integer({ min: 0, max: 40 }),
    maxWaitMs: fc.constantFrom(undefined, 4000),
    levels: fc.constant(new Map()),
  }),
});

describe("every simulation", () => {
  it("accounts for each request, keeps the bounds and repeats itself", () => {
    fc.assert(
      fc.property(arrivals, options, change, (trace, scenario, changes) => {
        const spec = simulationSpec(trace, scenario, { horizonMs: 180_000, ...changes });
        const result = simulate(spec);
        const { arrived, completed, queueFull, waitedTooLong, timedOut, unfinished } = result.requests;
        expect(arrived).toBe(trace.length);
        expect(completed + queueFull + waitedTooLong + timedOut + unfinished).toBe(arrived);
        expect(unfinished).toBeGreaterThanOrEqual(0);
        expect(result.latencyMs.count).toBe(completed);
        expect(result.flows.reduce((sum, flow) => sum + flow.arrived, 0)).toBe(arrived);

        const maxWaitMs = spec.queue.maxWaitMs ?? spec.requestTimeoutMs;
        expect(result.waitMs.max).toBeLessThanOrEqual(Math.max(maxWaitMs, 3.5 * 10_000) + 1);
        const concurrency = spec.containerConcurrency || Number.MAX_VALUE;
        const fixed = typeof scenario.policy === "object";
        const { minScale = 0, maxScale = 0 } = scenario.scaling ?? {};
        const broken = result.timeline.find(point => {
          const pods = point.readyPods + point.startingPods;
          const places = (point.readyPods + point.drainingPods) * concurrency;
          const inBounds = fixed ? pods === 3 : pods >= minScale && pods <= maxScale;
          return pods !== point.wantedPods || !inBounds || point.inFlight > places;
        });
        expect(broken).toBeUndefined();
        const { podSeconds, readyPodSeconds } = result.pods;
        expect(readyPodSeconds).toBeLessThanOrEqual(podSeconds + 1e-6);

        expect(simulate(spec)).toEqual(result);
      }),
      { seed: 20_261_201, numRuns: 150 },
    );
  }, 60_000);

  it("takes at least the service time, and the wait is what is left", () => {
    fc.assert(
      fc.property(arrivals, options, (trace, scenario) => {
        const result = simulate(simulationSpec(trace, scenario, { horizonMs: 600_000 }));
        if (result.requests.completed !== trace.length) return;
        const service = trace.reduce((sum, { serviceMs }) => sum + serviceMs, 0);
        const { latencyMs, waitMs } = result;
        // No CPU model: latency is wait plus service, in sum.
        expect(latencyMs.mean * trace.length).toBeCloseTo(waitMs.mean * trace.length + service, 3);
      }),
      { seed: 20_261_202, numRuns: 60 },
    );
  }, 60_000);
});
