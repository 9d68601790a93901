import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { IndexedHeap } from "./indexed-heap.ts";

interface Item {
  key: number;
  heapIndex: number;
}

type Step = { kind: "push"; key: number } | { kind: "pop" } | { kind: "remove" | "update"; at: number; key: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("push" as const), key: fc.integer({ min: 0, max: 20 }) }),
  fc.record({ kind: fc.constant("pop" as const) }),
  fc.record({ kind: fc.constantFrom("remove" as const, "update" as const), at: fc.nat(), key: fc.nat(20) }),
);

describe("IndexedHeap", () => {
  it("always gives the smallest, whatever is pushed, removed or changed", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), steps => {
        const heap = new IndexedHeap<Item>((a, b) => a.key < b.key);
        const model = new Set<Item>();
        for (const s of steps) {
          if (s.kind === "push") {
            const item = { key: s.key, heapIndex: -1 };
            heap.push(item);
            model.add(item);
          } else if (s.kind === "pop") {
            const item = heap.pop();
            if (item === undefined) expect(model.size).toBe(0);
            else expect(model.delete(item)).toBe(true);
          } else if (model.size > 0) {
            const item = [...model][s.at % model.size]!;
            if (s.kind === "remove") {
              heap.remove(item);
              model.delete(item);
              expect(item.heapIndex).toBe(-1);
            } else {
              item.key = s.key;
              heap.update(item);
            }
          }
          expect(heap.size).toBe(model.size);
          const smallest = Math.min(...[...model].map(item => item.key));
          if (model.size > 0) expect(heap.peek()?.key).toBe(smallest);
          heap.items.forEach((item, index) => {
            expect(item.heapIndex).toBe(index);
          });
        }
      }),
      { seed: 3 },
    );
  });
});
