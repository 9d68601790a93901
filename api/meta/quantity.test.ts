import { expect, test } from "vitest";
import { parseQuantity } from "./quantity.ts";

test.each([
  ["250m", 0.25],
  [2, 2],
  ["1Gi", 1_073_741_824],
  ["350Mi", 367_001_600],
  ["1e3", 1000],
  ["1E3", 1000],
  ["2E", 2e18],
  ["-1", -1],
  ["0.5", 0.5],
  [".5k", 500],
])("%s is %d", (text, value) => {
  expect(parseQuantity(text)).toBe(value);
});

test.each(["", "1 Gi", "1GiB", "abc", "1.2.3", "1KI"])("%j is no quantity", text => {
  expect(parseQuantity(text)).toBeUndefined();
});
