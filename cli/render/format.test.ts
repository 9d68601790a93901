import { describe, expect, it } from "vitest";
import { createTerminal, wantsColour } from "../terminal.ts";
import { formatMs, formatNumber, plural } from "./format.ts";
import { renderTable } from "./table.ts";

describe("format", () => {
  it("writes durations in the unit that fits", () => {
    const times = [0, 0.85, 12, 12.34, 999, 1250, 61_500, 200_000, 3_600_000, 5_430_000];
    expect(times.map(formatMs)).toEqual([
      "0",
      "850us",
      "12ms",
      "12.3ms",
      "999ms",
      "1.25s",
      "61.5s",
      "3m20s",
      "1h0m",
      "1h30m",
    ]);
    expect(formatMs(-1500)).toBe("-1.5s");
    expect([formatNumber(1 / 3), formatNumber(2)]).toEqual(["0.33", "2"]);
    expect([plural(1, "pod"), plural(0, "pod")]).toEqual(["1 pod", "0 pods"]);
  });
});

describe("table", () => {
  it("lines up its columns without borders", () => {
    const text = renderTable(
      [{ head: "name" }, { head: "pods", align: "right" }],
      [
        ["a", "10"],
        ["long-name", "2"],
      ],
    );
    expect(text).toBe(["NAME        PODS", "a             10", "long-name      2", ""].join("\n"));
  });
});

describe("terminal", () => {
  const written: string[] = [];
  const stream = (isTTY: boolean) => ({ isTTY, columns: 80, write: (text: string) => written.push(text) > 0 });

  it("has colours only where somebody sees them and did not decline", () => {
    expect(wantsColour(true, {})).toBe(true);
    expect(wantsColour(false, {})).toBe(false);
    expect(wantsColour(true, { NO_COLOR: "1" })).toBe(false);
    expect(wantsColour(true, { NO_COLOR: "" })).toBe(true);
    expect(wantsColour(true, { TERM: "dumb" })).toBe(false);
    expect(wantsColour(false, { FORCE_COLOR: "1" })).toBe(true);
    expect(wantsColour(false, { FORCE_COLOR: "1", NO_COLOR: "1" })).toBe(false);
  });

  it("is plain and of a fixed width without a terminal", () => {
    const plain = createTerminal(stream(false), stream(false), {});
    expect([plain.columns, plain.interactive, plain.style("red", "x")]).toEqual([120, false, "x"]);
    const tty = createTerminal(stream(true), stream(true), {});
    expect([tty.columns, tty.interactive, tty.style("red", "x")]).toEqual([80, true, "\u001b[31mx\u001b[39m"]);
  });
});
