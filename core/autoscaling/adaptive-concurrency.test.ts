import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AdaptedConcurrency, InstanceSecond } from "./adaptive-concurrency.ts";
import { adaptConcurrency } from "./adaptive-concurrency.ts";

/** Plays [concurrency, cpu] seconds of one instance; gives its maximum after each. */
function play(configured: number, seconds: readonly (readonly [number, number | undefined])[]): number[] {
  let state: AdaptedConcurrency = new Map();
  return seconds.map(([concurrency, cpu]) => {
    const result = adaptConcurrency(configured, state, [{ name: "a", concurrency, cpu }]);
    state = result.next;
    return result.adaptations[0]!.maximum;
  });
}

describe("adaptive concurrency", () => {
  it("goes down by one for each second over 90 % CPU", () => {
    expect(
      play(10, [
        [10, 0.95],
        [9, 0.91],
        [8, 0.9],
        [8, 0.99],
      ]),
    ).toEqual([9, 8, 8, 7]);
  });

  it("goes up by one at the maximum under 70 % CPU, never over the configured maximum", () => {
    expect(
      play(10, [
        [10, 0.95],
        [9, 0.95],
        [8, 0.69],
        [9, 0.5],
        [10, 0.1],
      ]),
    ).toEqual([9, 8, 9, 10, 10]);
  });

  it("stays between 70 and 90 %, and below its maximum of requests", () => {
    expect(
      play(10, [
        [10, 0.95],
        [9, 0.7],
        [9, 0.9],
        [4, 0.2],
      ]),
    ).toEqual([9, 9, 9, 9]);
  });

  it("never goes under one, and stays where CPU cannot be measured", () => {
    expect(
      play(2, [
        [2, 0.95],
        [1, 0.99],
        [1, 0.99],
        [1, undefined],
      ]),
    ).toEqual([1, 1, 1, 1]);
  });

  it("starts a new instance at the configured maximum and forgets those that are gone", () => {
    const busy = (name: string): InstanceSecond => ({ name, concurrency: 5, cpu: 1 });
    const first = adaptConcurrency(5, new Map(), [busy("a"), busy("b")]).next;
    expect([...first]).toEqual([
      ["a", 4],
      ["b", 4],
    ]);
    const second = adaptConcurrency(5, first, [busy("b"), { name: "c", concurrency: 1, cpu: 0.1 }]).next;
    expect([...second]).toEqual([["b", 3]]);
  });

  it("takes a lowered configured maximum at once", () => {
    const state = new Map([["a", 8]]);
    expect(adaptConcurrency(4, state, [{ name: "a", concurrency: 1, cpu: 0.2 }]).adaptations[0]!.maximum).toBe(4);
  });

  it("moves by at most one a second and stays in bounds", () => {
    const second = fc.tuple(fc.double({ min: 0, max: 20, noNaN: true }), fc.double({ min: 0, max: 1.2, noNaN: true }));
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.array(second, { maxLength: 100 }), (configured, seconds) => {
        let last = configured;
        for (const maximum of play(configured, seconds)) {
          expect(Math.abs(maximum - last)).toBeLessThanOrEqual(1);
          expect(maximum).toBeGreaterThanOrEqual(1);
          expect(maximum).toBeLessThanOrEqual(configured);
          last = maximum;
        }
      }),
      { seed: 4, numRuns: 200 },
    );
  });
});
