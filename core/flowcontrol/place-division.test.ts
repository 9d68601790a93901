import { describe, expect, it } from "vitest";
import fc from "fast-check";
import type { PodSlots } from "./place-division.ts";
import { dividePlaces, homeGateway } from "./place-division.ts";

const named = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${prefix}-${i}`);
const podsOf = (slots: readonly number[]): PodSlots[] => slots.map((n, i) => ({ pod: `pod-${i}`, slots: n }));

/** Slots by gateway and pod. */
function divided(pods: readonly PodSlots[], gateways: readonly string[]): Map<string, ReadonlyMap<string, number>> {
  return new Map(
    gateways.map(self => {
      const division = dividePlaces("ns/rev", pods, gateways, self, 0);
      if (division.kind === "home") throw new Error("has a home");
      return [self, division.slots];
    }),
  );
}

describe("dividePlaces", () => {
  it("gives all to the only gateway", () => {
    expect(dividePlaces("ns/rev", podsOf([1]), ["a"], "a")).toEqual({
      kind: "divided",
      slots: new Map([["pod-0", 1]]),
    });
    expect(dividePlaces("ns/rev", [], ["a"], "a")).toEqual({ kind: "divided", slots: new Map() });
  });

  it("gives a revision with few places, or none yet, one home that all agree on", () => {
    const gateways = ["a", "b", "c"];
    const home = homeGateway("ns/rev", gateways);
    for (const pods of [[], [1, 1], [11]]) {
      for (const self of gateways) {
        expect(dividePlaces("ns/rev", podsOf(pods), gateways.toReversed(), self)).toEqual({
          kind: "home",
          gateway: home,
        });
      }
    }
    expect(dividePlaces("ns/rev", podsOf([12]), gateways, "a").kind).toBe("divided");
  });

  it("spreads homes over the gateways, and moves only those of a gateway that leaves", () => {
    const gateways = named("gateway", 4);
    const revisions = named("ns/rev", 400);
    const homes = revisions.map(revision => homeGateway(revision, gateways));
    for (const gateway of gateways) expect(homes.filter(home => home === gateway).length).toBeGreaterThan(70);
    revisions.forEach((revision, i) => {
      const without = homeGateway(revision, gateways.slice(1));
      if (homes[i] !== gateways[0]) expect(without).toBe(homes[i]);
    });
  });

  it("adds up to each pod's slots exactly, evenly over gateways, whatever the order of pods and gateways", () => {
    const slots = fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 30 });
    fc.assert(
      fc.property(slots, fc.integer({ min: 1, max: 7 }), fc.func(fc.integer()), (sizes, count, shuffle) => {
        const pods = podsOf(sizes);
        const gateways = named("gateway", count);
        const parts = divided(pods, gateways);
        for (const { pod, slots: whole } of pods) {
          const sum = gateways.reduce((total, gateway) => total + (parts.get(gateway)!.get(pod) ?? 0), 0);
          expect(sum).toBe(whole);
        }
        const totals = [...parts.values()].map(part => [...part.values()].reduce((sum, n) => sum + n, 0));
        expect(Math.max(...totals) - Math.min(...totals)).toBeLessThanOrEqual(1);
        const mixed = pods.toSorted((a, b) => shuffle(a.pod) - shuffle(b.pod));
        expect(divided(mixed, gateways.toReversed())).toEqual(new Map([...parts].toReversed()));
      }),
      { seed: 11 },
    );
  });

  it("leaves most places where they are when a pod comes", () => {
    const gateways = named("gateway", 3);
    let moved = 0;
    let all = 0;
    for (let count = 12; count < 60; count++) {
      const before = divided(podsOf(new Array<number>(count).fill(1)), gateways);
      const after = divided(podsOf(new Array<number>(count + 1).fill(1)), gateways);
      for (let i = 0; i < count; i++) {
        const owner = (parts: typeof before): string => gateways.find(gateway => parts.get(gateway)!.has(`pod-${i}`))!;
        if (owner(before) !== owner(after)) moved++;
        all++;
      }
    }
    expect(moved / all).toBeLessThan(0.1);
  });
});
