import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CloudRunSpec } from "./cloud-run-spec.ts";
import type { CloudRunObservation, CloudRunState } from "./cloud-run.ts";
import { decideCloudRun, initialCloudRunState } from "./cloud-run.ts";
import type { Instance } from "./demotion.ts";

const MINUTE = 60_000;
const fraction = fc.double({ min: 0, max: 1, noNaN: true });

const specs: fc.Arbitrary<CloudRunSpec> = fc
  .record({
    maxConcurrency: fc.integer({ min: 1, max: 80 }),
    cpus: fc.constantFrom(undefined, 0.5, 1, 4),
    cpuTarget: fc.constantFrom<CloudRunSpec["cpuTarget"][]>(0.6, 0.3, "disabled"),
    concurrencyTarget: fc.constantFrom<CloudRunSpec["concurrencyTarget"][]>(0.6, 0.9, "disabled"),
    mode: fc.constantFrom<CloudRunSpec["mode"][]>("default", "controls"),
    cpuAlwaysAllocated: fc.boolean(),
    minInstances: fc.nat(3),
    maxInstances: fc.integer({ min: 3, max: 12 }),
    maxScaleOvershoot: fc.boolean(),
    reachable: fc.boolean(),
  })
  .map(spec => ({
    ...spec,
    adaptiveConcurrency: true,
    idleTimeoutMs: 15 * MINUTE,
    minInstances: spec.reachable ? spec.minInstances : 0,
  }));

/** What is seen at one tick; instances are added and taken away to match what was decided before. */
const ticks = fc.record({
  concurrency1m: fc.double({ min: 0, max: 300, noNaN: true }),
  concurrency10m: fc.double({ min: 0, max: 300, noNaN: true }),
  cpu1m: fc.option(fc.double({ min: 0, max: 20, noNaN: true }), { nil: undefined }),
  noData: fraction.map(p => p < 0.1),
  waiting: fc.oneof(fc.constant(0), fc.nat(200)),
  inFlight: fc.nat(3),
  freedPerSecond: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 50, noNaN: true })),
  use: fc.array(fraction, { minLength: 25, maxLength: 25 }),
  stepMs: fc.oneof(fc.constant(2000), fc.integer({ min: 1, max: 16 * MINUTE })),
});

/** The replica set does as it is told: the stopped ones go first, new ones start and are ready five seconds later. */
function follow(instances: readonly Instance[], desired: number, stops: readonly string[], nowMs: number): Instance[] {
  const kept = [...instances].sort((a, b) => Number(stops.includes(a.name)) - Number(stops.includes(b.name)));
  const next = kept.slice(0, desired);
  for (let n = next.length; n < desired; n++) {
    const created = { createdMs: nowMs, readySinceMs: undefined, utilization1m: 0, lastBusyMs: nowMs };
    next.push({ name: `i${nowMs}-${n}`, ...created });
  }
  return next;
}

describe("Cloud Run: whatever happens", () => {
  it("stays within bounds, never stops what is recommended, and repeats itself", () => {
    fc.assert(
      fc.property(specs, fc.array(ticks, { minLength: 1, maxLength: 40 }), (spec, rows) => {
        let nowMs = 1_700_000_000_000;
        let instances: Instance[] = [];
        let state: CloudRunState = initialCloudRunState(0);
        for (const row of rows) {
          nowMs += row.stepMs;
          instances = instances.map((one, i) => ({
            ...one,
            readySinceMs: one.readySinceMs ?? (nowMs - one.createdMs >= 5000 ? one.createdMs + 5000 : undefined),
            utilization1m: row.use[i % row.use.length]!,
            lastBusyMs: row.use[i % row.use.length]! > 0.5 ? nowMs : one.lastBusyMs,
          }));
          const { concurrency1m, concurrency10m, cpu1m, waiting, inFlight, freedPerSecond } = row;
          const observation: CloudRunObservation = {
            load: row.noData ? undefined : { concurrency1m, concurrency10m, cpu1m },
            instances,
            waiting,
            newlyWaiting: Math.round(waiting * row.use[0]!),
            inFlight,
            freedPerSecond,
          };
          const decision = decideCloudRun(spec, observation, state, nowMs);
          expect(decideCloudRun(spec, observation, state, nowMs)).toEqual(decision);
          if (!decision.valid) {
            expect(row.noData && waiting === 0).toBe(true);
            continue;
          }
          const most = spec.maxInstances * (spec.maxScaleOvershoot ? 2 : 1);
          expect(decision.desired).toBeLessThanOrEqual(most);
          expect(decision.desired).toBeGreaterThanOrEqual(decision.recommended);
          if (decision.explanation.winner !== "unreachable") {
            expect(decision.recommended).toBeGreaterThanOrEqual(Math.min(spec.minInstances, most));
          }
          expect(decision.demoted.length).toBe(Math.max(0, instances.length - decision.recommended));
          const demoted = new Set(decision.demoted.map(one => one.name));
          for (const stop of decision.stops) expect(demoted.has(stop.name)).toBe(true);
          expect(instances.length - decision.stops.length).toBeGreaterThanOrEqual(
            Math.min(instances.length, decision.recommended),
          );
          if (waiting > 0 && instances.length === 0 && spec.maxInstances > 0)
            expect(decision.desired).toBeGreaterThan(0);
          const { byStarting, byRunning, byNew, atMaximum } = decision.explanation.onDemand;
          expect(byStarting + byRunning + byNew + atMaximum).toBe(waiting - decision.explanation.haveRoom);
          const stops = decision.stops.map(stop => stop.name);
          instances = follow(instances, decision.desired, stops, nowMs);
          state = decision.next;
        }
      }),
      { seed: 4, numRuns: 300 },
    );
  });
});
