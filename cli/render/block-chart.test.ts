import { describe, expect, it } from "vitest";
import { blockChart, resample } from "./block-chart.ts";

describe("resample", () => {
  it("pools many values into few columns, and spreads few over many", () => {
    expect(resample([1, 5, 2, 2], 2, "max")).toEqual([5, 2]);
    expect(resample([1, 5, 2, 2], 2, "mean")).toEqual([3, 2]);
    expect(resample([1, 2], 4, "max")).toEqual([1, 1, 2, 2]);
    expect(resample([], 3, "max")).toEqual([0, 0, 0]);
  });
});

describe("block chart", () => {
  const options = { width: 5, height: 2, pooling: "max", label: String } as const;

  it("draws in eighths from the bottom up, with its scale", () => {
    expect(blockChart([0, 4, 8, 12, 16], options)).toEqual(["16 ┤   ▄█", " 0 ┼ ▄███"]);
  });

  it("shows what is small beside what is large, and nothing for zero", () => {
    expect(blockChart([0, 0.001, 0, 0, 100], options)).toEqual(["100 ┤    █", "  0 ┼ ▁  █"]);
    expect(blockChart([0, 0], { ...options, height: 1 })).toEqual(["0 ┤"]);
  });

  it("takes a scale from outside", () => {
    expect(blockChart([1, 1, 1, 1, 1], { ...options, top: 2 })).toEqual(["2 ┤", "0 ┼█████"]);
  });
});
