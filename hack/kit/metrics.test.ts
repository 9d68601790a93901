import { expect, it } from "vitest";
import { metricValue, sumOfMetric } from "./metrics.ts";

const text = `# HELP a_total A
# TYPE a_total counter
a_total{ns="x",rev="r-1"} 3
a_total{ns="x",rev="r-2",note="a \\"b\\", c"} 4.5
b 1e3
`;

it("reads samples by name and labels", () => {
  expect(metricValue(text, "a_total", { rev: "r-1" })).toBe(3);
  expect(metricValue(text, "a_total", { rev: "r-3" })).toBeUndefined();
  expect(sumOfMetric(text, "a_total", { ns: "x" })).toBe(7.5);
  expect(sumOfMetric(text, "b")).toBe(1000);
  expect(sumOfMetric(text, "c")).toBe(0);
});
