import { describe, expect, it } from "vitest";
import { niceCeiling, renderSvg, type SvgChart } from "./svg-chart.ts";

const chart = (change: Partial<SvgChart> = {}): SvgChart => ({
  title: "A & B",
  subtitle: "<seed 1>",
  names: ["a", "b"],
  timesMs: [0, 1000, 2000, 3000],
  timeLabel: ms => `${ms / 1000}s`,
  panels: [
    {
      title: "pods",
      shape: "step",
      series: [
        { name: "a", values: [0, 2, 2, 4] },
        { name: "b", values: [1, 1, 1, 1] },
      ],
      label: String,
    },
  ],
  ...change,
});

const pathsOf = (svg: string): string[] => [...svg.matchAll(/ d="([^"]*)"/g)].map(match => match[1]!);

describe("SVG chart", () => {
  it("has a scale of round numbers", () => {
    expect([0, 0.3, 1, 1.2, 4, 7, 30, 101].map(niceCeiling)).toEqual([1, 0.5, 1, 2, 5, 10, 50, 200]);
  });

  it("draws steps as steps and lines as lines, each in its own colour", () => {
    const svg = renderSvg(chart());
    expect(pathsOf(svg)).toEqual(["M70 224H360V176H940V128", "M70 200H940"]);
    expect(svg.match(/stroke="#0072b2" stroke-width="1.8"/g)).toHaveLength(1);
    const lines = renderSvg(chart({ panels: [{ ...chart().panels[0]!, shape: "line" }] }));
    expect(pathsOf(lines)[0]).toBe("M70 224L360 176L650 176L940 128");
  });

  it("escapes texts, and is a whole document even without values", () => {
    const svg = renderSvg(chart());
    expect(svg).toContain("A &amp; B");
    expect(svg).toContain("&lt;seed 1&gt;");
    const empty = renderSvg(chart({ timesMs: [], panels: [{ title: "x", shape: "line", series: [], label: String }] }));
    expect(empty).toMatch(/^<svg [^]*<\/svg>\n$/);
    expect(empty).not.toContain("NaN");
  });
});
