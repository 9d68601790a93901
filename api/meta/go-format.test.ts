import { describe, expect, test } from "vitest";
import {
  formatDurationMs,
  INT32_MAX,
  INT32_MIN,
  parseBool,
  parseDurationMs,
  parseFloat64,
  parseInteger,
} from "./go-format.ts";

describe("durations", () => {
  test.each([
    ["0", 0],
    ["60s", 60_000],
    ["1h30m", 5_400_000],
    ["1.5s", 1500],
    [".5m", 30_000],
    ["-2s", -2000],
    ["+2s", 2000],
    ["100ms", 100],
    ["1500us", 1.5],
    ["1500µs", 1.5],
    ["1h0m0.5s", 3_600_500],
  ])("%s is %d ms", (text, ms) => {
    expect(parseDurationMs(text)).toBe(ms);
  });

  test.each(["", "60", "s", "1 s", "1d", "1.s.", "--1s", "1s ", "Infinitys", "-"])("%j is refused", text => {
    expect(parseDurationMs(text)).toBeUndefined();
  });

  test.each([
    [0, "0s"],
    [6000, "6s"],
    [90_000, "1m30s"],
    [3_600_000, "1h0m0s"],
    [3_661_500, "1h1m1.5s"],
    [100, "100ms"],
    [1.5, "1.5ms"],
    [0.25, "250µs"],
    [-2000, "-2s"],
  ])("%d ms is printed as Go prints it", (ms, text) => {
    expect(formatDurationMs(ms)).toBe(text);
  });
});

test("integers, floats and booleans are read as strconv reads them, without NaN and infinities", () => {
  expect(parseInteger("12", INT32_MIN, INT32_MAX)).toBe(12);
  expect(parseInteger("+7", INT32_MIN, INT32_MAX)).toBe(7);
  expect(parseInteger("2147483648", INT32_MIN, INT32_MAX)).toBe("range");
  for (const text of ["", "1.0", "0x10", " 1", "1e3", "ten"]) {
    expect(parseInteger(text, INT32_MIN, INT32_MAX)).toBeUndefined();
  }
  expect(parseFloat64("1e3")).toBe(1000);
  expect(parseFloat64(".5")).toBe(0.5);
  for (const text of ["", "NaN", "Inf", "-inf", "1,5", "1e999"]) expect(parseFloat64(text)).toBeUndefined();
  expect([parseBool("true"), parseBool("T"), parseBool("0"), parseBool("yes")]).toEqual([true, true, false, undefined]);
});
