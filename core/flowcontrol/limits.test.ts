import { describe, expect, it } from "vitest";
import { allocateSeats } from "./allocation.ts";
import { DemandIntegrator, NO_DEMAND, observeDemand } from "./demand.ts";
import type { BorrowingLevel } from "./limits.ts";
import { adjustLimits, initialLimit, maxSeatsPerRequest, nominalLimits } from "./limits.ts";
import type { PriorityLevelSpec } from "./objects.ts";

// Equality with the original is hack/oracles/flowcontrol's; here are the numbers that the comments work out.
const spec = (limited: Partial<NonNullable<PriorityLevelSpec["limited"]>>): PriorityLevelSpec => ({
  type: "Limited",
  limited: { limitResponse: { type: "Reject" }, ...limited },
});

function level(nominal: number, min: number, smoothed: number, change: Partial<BorrowingLevel> = {}): BorrowingLevel {
  const highWatermark = Math.ceil(smoothed);
  return {
    exempt: false,
    limits: { nominal, min, max: nominal + 100 },
    demand: { ...NO_DEMAND, smoothed, highWatermark },
    current: nominal,
    ...change,
  };
}

describe("limits", () => {
  it("takes a level's part of the total, rounded up", () => {
    const limits = nominalLimits(spec({ nominalConcurrencyShares: 20, lendablePercent: 50 }), 600, 245);
    expect(limits).toEqual({ nominal: 49, min: 24, max: 649 });
    expect(initialLimit(limits)).toBe(37);
    expect(nominalLimits(spec({ borrowingLimitPercent: 20 }), 100, 60)).toEqual({ nominal: 50, min: 50, max: 60 });
    expect(nominalLimits(spec({ nominalConcurrencyShares: 0 }), 100, 60).nominal).toBe(0);
    expect(nominalLimits({ type: "Exempt", exempt: {} }, 100, 60)).toEqual({ nominal: 0, min: 0, max: 100 });
  });

  it("keeps one request to a part of its level", () => {
    expect([maxSeatsPerRequest(49, 6), maxSeatsPerRequest(600, 6), maxSeatsPerRequest(3, 6)]).toEqual([8, 10, 1]);
  });

  it("divides by smoothed demand: the busy level borrows what the idle one lends", () => {
    expect(adjustLimits([level(50, 10, 5), level(50, 50, 90)]).current).toEqual([10, 90]);
  });

  it("gives exempt levels what they used and falls back to the minima when that leaves no more", () => {
    const exempt = level(0, 0, 0, { exempt: true, demand: { ...NO_DEMAND, highWatermark: 80 } });
    expect(adjustLimits([exempt, level(50, 10, 40), level(50, 30, 40)]).current).toEqual([80, 10, 30]);
    const lighter = { ...exempt, demand: { ...NO_DEMAND, highWatermark: 40 } };
    expect(adjustLimits([lighter, level(50, 10, 40), level(50, 30, 40)]).current).toEqual([40, 25, 35]);
  });

  it("keeps the limits when bounds allow none, and says why", () => {
    const capped = level(50, 0, 0, { limits: { nominal: 50, min: 0, max: 10 }, current: 7 });
    expect(adjustLimits([capped])).toMatchObject({ current: [7], problem: "upper bounds sum to 10, below 50" });
  });

  it("meets bounds that matter", () => {
    const classes = [
      { target: 1, lowerBound: 0, upperBound: 4 },
      { target: 3, lowerBound: 0, upperBound: 6 },
    ];
    expect(allocateSeats(10, classes)).toEqual({ ok: true, seats: [4, 6], fairProportion: 4 });
  });
});

describe("demand", () => {
  it("is averaged over time, with its deviation and peak", () => {
    const integrator = new DemandIntegrator(0);
    integrator.set(10, 0);
    integrator.set(30, 5000);
    expect(integrator.reset(10_000)).toEqual({ durationS: 10, average: 20, deviation: 10, min: 0, max: 30 });
    expect(integrator.reset(20_000)).toMatchObject({ average: 30, deviation: 0, min: 30, max: 30 });
    expect(integrator.reset(20_000)).toMatchObject({ durationS: 0, average: Number.NaN });
  });

  it("rises at once and falls by 2.3 % a period", () => {
    const busy = observeDemand(NO_DEMAND, { durationS: 10, average: 90, deviation: 10, min: 80, max: 100 });
    expect(busy).toEqual({ average: 90, deviation: 10, highWatermark: 100, smoothed: 100 });
    const idle = observeDemand(busy, { durationS: 10, average: 0, deviation: 0, min: 0, max: 0 });
    expect(idle.smoothed).toBeCloseTo(97.7, 10);
    expect(observeDemand(idle, { durationS: 0, average: Number.NaN, deviation: Number.NaN, min: 3, max: 3 })).toEqual({
      ...idle,
      highWatermark: 3,
    });
  });
});
