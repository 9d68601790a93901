import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { MinTree } from "./min-tree.ts";

describe("MinTree", () => {
  it("finds the first smallest from anywhere, going round", () => {
    const step = fc.tuple(fc.nat(), fc.oneof(fc.nat(5), fc.constant(Infinity)), fc.nat());
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 70 }), fc.array(step, { maxLength: 100 }), (size, steps) => {
        const tree = new MinTree(size);
        const model = new Array<number>(size).fill(Infinity);
        for (const [at, value, start] of steps) {
          tree.set(at % size, value);
          model[at % size] = value;
          const min = Math.min(...model);
          expect(tree.min).toBe(min);
          const round = Array.from({ length: size }, (_, i) => ((start % size) + i) % size);
          const expected = min === Infinity ? -1 : round.find(position => model[position] === min);
          expect(tree.firstMinFrom(start % size)).toBe(expected);
        }
      }),
      { seed: 8 },
    );
  });

  it("goes round from beyond the last position", () => {
    const tree = new MinTree(3);
    tree.set(1, 4);
    expect(tree.firstMinFrom(3)).toBe(1);
  });
});
