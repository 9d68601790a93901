import { describe, expect, it } from "vitest";
import { sample } from "./distribution.ts";
import type { Distribution } from "./distribution.ts";
import { percentileOf } from "./percentiles.ts";
import { seededRandom } from "./random.ts";

const take = (count: number, next: () => number): number[] => Array.from({ length: count }, next);

describe("seeded random", () => {
  it("repeats for the same seed and stream, and differs for another of either", () => {
    const first = take(20, seededRandom(1, "a"));
    expect(take(20, seededRandom(1, "a"))).toEqual(first);
    expect(take(20, seededRandom(2, "a"))).not.toEqual(first);
    expect(take(20, seededRandom(1, "b"))).not.toEqual(first);
  });

  it("is uniform in [0, 1): 100,000 draws into 10 bins, each within 3 % of its share", () => {
    const bins = new Array<number>(10).fill(0);
    const values = take(100_000, seededRandom(42, "bins"));
    expect(values.every(value => value >= 0 && value < 1)).toBe(true);
    for (const value of values) bins[Math.floor(value * 10)]!++;
    expect(bins.filter(count => Math.abs(count - 10_000) > 300)).toEqual([]);
  });

  it("does not correlate neighbouring seeds", () => {
    const firsts = take(1000, () => 0).map((_, seed) => seededRandom(seed, "x")());
    const mean = firsts.reduce((sum, value) => sum + value, 0) / firsts.length;
    expect(Math.abs(mean - 0.5)).toBeLessThan(0.03);
  });
});

describe("distributions", () => {
  const of = (distribution: Distribution): number[] => {
    const random = seededRandom(7, "distribution");
    return take(50_000, () => sample(distribution, random)).sort((a, b) => a - b);
  };
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

  it("draws what was asked for, within 2 %", () => {
    expect(new Set(of({ kind: "constant", ms: 5 }))).toEqual(new Set([5]));
    const uniform = of({ kind: "uniform", minMs: 10, maxMs: 30 });
    expect(mean(uniform)).toBeCloseTo(20, 0);
    expect(uniform[0]).toBeGreaterThanOrEqual(10);
    expect(uniform.at(-1)).toBeLessThan(30);
    const exponential = of({ kind: "exponential", meanMs: 100 });
    expect(Math.abs(mean(exponential) - 100)).toBeLessThan(2);
    expect(Math.abs(percentileOf(exponential, 0.5) - 100 * Math.LN2)).toBeLessThan(2);
    const lognormal = of({ kind: "lognormal", medianMs: 100, p95Ms: 400 });
    expect(Math.abs(percentileOf(lognormal, 0.5) - 100)).toBeLessThan(2);
    expect(Math.abs(percentileOf(lognormal, 0.95) - 400)).toBeLessThan(12);
    expect(new Set(of({ kind: "empirical", valuesMs: [1, 2, 3] }))).toEqual(new Set([1, 2, 3]));
  });
});
