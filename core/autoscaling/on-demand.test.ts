import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { OnDemandInput } from "./on-demand.ts";
import { choosePlace, planOnDemand } from "./on-demand.ts";
import { NO_STARTS, expectedStartMs, pendingTimeoutMs, recordStart } from "./start-times.ts";

const INPUT: OnDemandInput = {
  waiting: 25,
  startingMs: [1000],
  placesPerInstance: 10,
  expectedStartMs: 4000,
  freedPerSecond: 2,
  room: Number.POSITIVE_INFINITY,
};

describe("on-demand scaling", () => {
  it("prefers a starting instance, then a place that frees up sooner than a start, then a new instance", () => {
    expect(choosePlace(INPUT, 1)).toEqual({ kind: "starting", expectedMs: 3000 });
    expect(choosePlace(INPUT, 10)).toEqual({ kind: "starting", expectedMs: 3000 });
    expect(choosePlace(INPUT, 11)).toEqual({ kind: "running", expectedMs: 500 });
    expect(choosePlace(INPUT, 17)).toEqual({ kind: "running", expectedMs: 3500 });
    expect(choosePlace(INPUT, 18)).toEqual({ kind: "new", expectedMs: 4000 });
    expect(planOnDemand(INPUT)).toEqual({ byStarting: 10, byRunning: 7, byNew: 8, atMaximum: 0, newInstances: 1 });
  });

  it("starts nothing when places free up fast enough for all", () => {
    expect(planOnDemand({ ...INPUT, startingMs: [], waiting: 90, freedPerSecond: 100 }).newInstances).toBe(0);
  });

  it("does not count on an instance that is stuck starting", () => {
    expect(planOnDemand({ ...INPUT, startingMs: [14_001], freedPerSecond: 0 })).toMatchObject({
      byStarting: 0,
      newInstances: 3,
    });
    expect(planOnDemand({ ...INPUT, startingMs: [14_000], freedPerSecond: 0 })).toMatchObject({ byStarting: 10 });
  });

  it("waits for a running instance when there is no room for a new one", () => {
    const full = { ...INPUT, startingMs: [], room: 0 };
    expect(choosePlace(full, 8)).toEqual({ kind: "at-maximum", expectedMs: 4000 });
    expect(planOnDemand(full)).toEqual({ byStarting: 0, byRunning: 7, byNew: 0, atMaximum: 18, newInstances: 0 });
  });

  it("plans for all what it chooses for each", () => {
    const inputs = fc.record({
      waiting: fc.nat(300),
      startingMs: fc.array(fc.nat(40_000), { maxLength: 5 }),
      placesPerInstance: fc.integer({ min: 1, max: 50 }),
      expectedStartMs: fc.integer({ min: 1, max: 10_000 }),
      freedPerSecond: fc.oneof(fc.constant(0), fc.double({ min: 0.01, max: 200, noNaN: true })),
      room: fc.oneof(fc.nat(10), fc.constant(Number.POSITIVE_INFINITY)),
    });
    fc.assert(
      fc.property(inputs, input => {
        const chosen = { starting: 0, running: 0, new: 0, "at-maximum": 0 };
        for (let position = 1; position <= input.waiting; position++) chosen[choosePlace(input, position).kind]++;
        const plan = planOnDemand(input);
        expect(chosen).toEqual({
          starting: plan.byStarting,
          running: plan.byRunning,
          new: plan.byNew,
          "at-maximum": plan.atMaximum,
        });
        expect(plan.newInstances).toBeLessThanOrEqual(input.room);
      }),
      { seed: 4, numRuns: 500 },
    );
  });
});

describe("start times and the pending rule", () => {
  it("averages starts, the latest twenty weighing most", () => {
    const two = recordStart(recordStart(NO_STARTS, 2000), 4000);
    expect(expectedStartMs(two)).toBe(3000);
    let many = two;
    for (let i = 0; i < 200; i++) many = recordStart(many, 8000);
    expect(expectedStartMs(many)).toBeCloseTo(8000, 0);
  });

  it("waits max(10 s, 3.5 x start)", () => {
    expect(pendingTimeoutMs({ count: 1, meanMs: 2000 })).toBe(10_000);
    expect(pendingTimeoutMs({ count: 1, meanMs: 4000 })).toBe(14_000);
  });

  it("case 43: a configured wait wins", () => {
    expect(pendingTimeoutMs({ count: 1, meanMs: 4000 }, 45_000)).toBe(45_000);
  });
});
