import { describe, expect, it } from "vitest";
import { choosePod } from "./choose-pod.ts";

class Pod {
  readonly name: string;
  readonly limit: number;
  inFlight: number;

  constructor(name: string, limit: number, inFlight: number) {
    this.name = name;
    this.limit = limit;
    this.inFlight = inFlight;
  }

  hasRoom(): boolean {
    return this.inFlight < this.limit;
  }
}

const pods = (limit: number, ...inFlight: number[]): Pod[] =>
  inFlight.map((count, index) => new Pod(`p${index}`, limit, count));

/** Gives these numbers in turn. */
const rolls = (...values: number[]) => {
  let next = 0;
  return () => values[next++ % values.length]!;
};

describe("choosePod", () => {
  it("takes the less loaded of two drawn at random", () => {
    const all = pods(Infinity, 5, 1, 9);
    expect(choosePod(all, rolls(0, 0))?.name).toBe("p1");
    expect(choosePod(all, rolls(0.7, 0))?.name).toBe("p0");
  });

  it("passes by a full pod, and both when a third has room", () => {
    expect(choosePod(pods(2, 2, 1), rolls(0, 0))?.name).toBe("p1");
    expect(choosePod(pods(2, 2, 2, 1), rolls(0, 0))?.name).toBe("p2");
  });

  it("finds nothing when all are full or there are none", () => {
    expect(choosePod(pods(1, 1, 1, 1), Math.random)).toBeUndefined();
    expect(choosePod(pods(1, 1), Math.random)).toBeUndefined();
    expect(choosePod([], Math.random)).toBeUndefined();
  });

  it("spreads requests evenly when they are alike", () => {
    const all = pods(Infinity, 0, 0, 0, 0);
    for (let i = 0; i < 4000; i++) choosePod(all, Math.random)!.inFlight++;
    for (const pod of all) expect(Math.abs(pod.inFlight - 1000)).toBeLessThan(10);
  });
});
