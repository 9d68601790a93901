import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson, covers, jsonEqual } from "./equality.ts";

describe("equality of objects", () => {
  it.each([
    [{ a: 1, b: 2 }, { a: 1 }, true],
    [{ a: { b: [1, { c: 2, d: 3 }] } }, { a: { b: [1, { c: 2 }] } }, true],
    [{ a: [1, 2] }, { a: [1] }, false],
    [{ a: 1 }, { a: 1, b: undefined }, true],
    [{ a: 1 }, { a: 1, b: null }, false],
    [{ a: [] }, { a: {} }, false],
    [undefined, { a: 1 }, false],
  ])("%j covers %j: %s", (live, desired, expected) => {
    expect(covers(live, desired)).toBe(expected);
  });

  it("equal values have equal texts, whatever the order of their keys", () => {
    const shuffled = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.map(shuffled)
        : typeof value === "object" && value !== null
          ? Object.fromEntries(
              Object.entries(value)
                .reverse()
                .map(([key, member]) => [key, shuffled(member)]),
            )
          : value;
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        expect(canonicalJson(shuffled(value))).toBe(canonicalJson(value));
        expect(jsonEqual(shuffled(value), value)).toBe(true);
        expect(covers(value, shuffled(value))).toBe(true);
      }),
      { seed: 1, numRuns: 300 },
    );
  });

  it("is as strict as comparing texts", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 2 }), fc.jsonValue({ maxDepth: 2 }), (a, b) => {
        expect(jsonEqual(a, b)).toBe(canonicalJson(a) === canonicalJson(b));
      }),
      { seed: 2, numRuns: 1000 },
    );
  });
});
