import { describe, expect, it } from "vitest";
import { TrafficDeck } from "./traffic-deck.ts";

/** A small deterministic generator (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function count(draws: readonly (string | undefined)[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const draw of draws) counts[String(draw)] = (counts[String(draw)] ?? 0) + 1;
  return counts;
}

describe("TrafficDeck", () => {
  it("is exact over every hundred requests", () => {
    const deck = new TrafficDeck(
      [
        { target: "a", percent: 97 },
        { target: "b", percent: 2 },
        { target: "c", percent: 1 },
        { target: "d", percent: 0 },
      ],
      seeded(1),
    );
    for (let round = 0; round < 5; round++) {
      expect(count(Array.from({ length: 100 }, () => deck.draw()))).toEqual({ a: 97, b: 2, c: 1 });
    }
  });

  it("is exact over the smallest whole number of requests", () => {
    const deck = new TrafficDeck(
      [
        { target: "a", percent: 50 },
        { target: "b", percent: 50 },
      ],
      seeded(2),
    );
    for (let round = 0; round < 50; round++) expect(count([deck.draw(), deck.draw()])).toEqual({ a: 1, b: 1 });
  });

  it("meets a client's rhythm without favour", () => {
    const deck = new TrafficDeck(
      [
        { target: "a", percent: 50 },
        { target: "b", percent: 50 },
      ],
      seeded(3),
    );
    const pages = Array.from({ length: 4000 }, () => [deck.draw(), deck.draw()][0]);
    const { a = 0 } = count(pages);
    expect(a).toBeGreaterThan(1800);
    expect(a).toBeLessThan(2200);
  });

  it("has nothing to give when no share is above zero", () => {
    expect(new TrafficDeck([{ target: "a", percent: 0 }], seeded(4)).draw()).toBeUndefined();
    expect(new TrafficDeck([], seeded(4)).draw()).toBeUndefined();
  });
});
