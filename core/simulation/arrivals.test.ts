import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Arrival, Pattern, Spacing } from "./arrivals.ts";
import { expectedArrivals, generateArrivals, TooManyArrivalsError } from "./arrivals.ts";
import { seededRandom } from "./random.ts";

const make = (pattern: Pattern, spacing: Spacing, durationMs: number, seed = 1): Arrival[] =>
  generateArrivals(
    pattern,
    spacing,
    durationMs,
    { kind: "constant", ms: 100 },
    {
      arrivals: seededRandom(seed, "arrivals"),
      service: seededRandom(seed, "service"),
    },
  );

const between = (arrivals: readonly Arrival[], fromMs: number, toMs: number): number =>
  arrivals.filter(({ atMs }) => atMs >= fromMs && atMs < toMs).length;

const pattern: fc.Arbitrary<Pattern> = fc.oneof(
  fc.record({ kind: fc.constant("poisson" as const), rps: fc.integer({ min: 0, max: 50 }) }),
  fc.record({
    kind: fc.constant("step" as const),
    fromRps: fc.integer({ min: 0, max: 50 }),
    toRps: fc.integer({ min: 0, max: 50 }),
    atMs: fc.integer({ min: 0, max: 40_000 }),
  }),
  fc.record({
    kind: fc.constant("spike" as const),
    baseRps: fc.integer({ min: 0, max: 20 }),
    peakRps: fc.integer({ min: 0, max: 100 }),
    atMs: fc.integer({ min: 0, max: 40_000 }),
    lengthMs: fc.integer({ min: 0, max: 40_000 }),
  }),
  fc.record({
    kind: fc.constant("diurnal" as const),
    lowRps: fc.integer({ min: 0, max: 20 }),
    highRps: fc.integer({ min: 20, max: 80 }),
    periodMs: fc.integer({ min: 1_000, max: 60_000 }),
  }),
  fc.record({
    kind: fc.constant("burst" as const),
    size: fc.integer({ min: 1, max: 50 }),
    everyMs: fc.integer({ min: 500, max: 20_000 }),
    baseRps: fc.integer({ min: 0, max: 10 }),
  }),
);

describe("arrivals", () => {
  it("steps, spikes and waves at the rates asked for", () => {
    const step = make({ kind: "step", fromRps: 5, toRps: 50, atMs: 10_000 }, "even", 20_000);
    expect([between(step, 0, 10_000), between(step, 10_000, 20_000)]).toEqual([50, 500]);
    const spike = make({ kind: "spike", baseRps: 2, peakRps: 100, atMs: 5_000, lengthMs: 1_000 }, "even", 10_000);
    expect([between(spike, 0, 5_000), between(spike, 5_000, 6_000), between(spike, 6_000, 10_000)]).toEqual([
      10, 100, 8,
    ]);
    const wave = make({ kind: "diurnal", lowRps: 0, highRps: 20, periodMs: 20_000 }, "even", 20_000);
    expect(wave).toHaveLength(200);
    expect(between(wave, 5_000, 15_000)).toBeGreaterThan(between(wave, 0, 5_000) + between(wave, 15_000, 20_000));
    const burst = make({ kind: "burst", size: 30, everyMs: 4_000, baseRps: 1 }, "even", 10_000);
    expect([between(burst, 4_000, 4_001), between(burst, 8_000, 8_001), burst.length]).toEqual([30, 30, 70]);
  });

  it("spaces an even pattern evenly", () => {
    const times = make({ kind: "poisson", rps: 10 }, "even", 1_000).map(({ atMs }) => Math.round(atMs));
    expect(times).toEqual([50, 150, 250, 350, 450, 550, 650, 750, 850, 950]);
  });

  it("is in order, inside the duration, as many as expected, and repeats by seed", () => {
    fc.assert(
      fc.property(pattern, fc.integer({ min: 1_000, max: 60_000 }), fc.integer(), (shape, durationMs, seed) => {
        const bursts = shape.kind === "burst" ? Math.floor((durationMs - 1) / shape.everyMs) * shape.size : 0;
        const expected = expectedArrivals(shape, durationMs) + bursts;
        const even = make(shape, "even", durationMs);
        expect(Math.abs(even.length - expected)).toBeLessThanOrEqual(1);
        const random = make(shape, "poisson", durationMs, seed);
        // Six standard deviations.
        expect(Math.abs(random.length - expected)).toBeLessThanOrEqual(6 * Math.sqrt(expected) + 6);
        expect(make(shape, "poisson", durationMs, seed)).toEqual(random);
        for (const list of [even, random]) {
          const inOrder = list.every(({ atMs }, i) => atMs >= (list[i - 1]?.atMs ?? 0) && atMs <= durationMs);
          expect(inOrder).toBe(true);
        }
      }),
      { seed: 20_261_130, numRuns: 60 },
    );
  }, 30_000);

  it("refuses more than memory holds", () => {
    expect(() => make({ kind: "poisson", rps: 1e6 }, "even", 3_600_000)).toThrow(TooManyArrivalsError);
  });
});
