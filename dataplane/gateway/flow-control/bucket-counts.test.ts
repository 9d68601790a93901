import { Histogram, Registry } from "prom-client";
import fc from "fast-check";
import { expect, it } from "vitest";
import { BucketCounts, registerHistogram } from "./bucket-counts.ts";

it("is written as prom-client writes its own", async () => {
  const buckets = [0, 0.005, 0.5, 10];
  const values = fc.array(
    fc.oneof(fc.constantFrom(0, 0.005, 0.5, 10, 11), fc.double({ min: 0, max: 12, noNaN: true })),
  );
  await fc.assert(
    fc.asyncProperty(values, async observed => {
      const theirs = new Registry();
      const histogram = new Histogram({ name: "x", help: "y", labelNames: ["a"], buckets, registers: [theirs] });
      const ours = new Registry();
      const counts = new BucketCounts(buckets);
      const unused = new BucketCounts(buckets);
      const samples = () => [[{ a: "b" }, counts] as const, [{ a: "c" }, unused] as const];
      registerHistogram(ours, { name: "x", help: "y", samples });
      for (const value of observed) {
        histogram.observe({ a: "b" }, value);
        counts.observe(value);
      }
      expect(await ours.metrics()).toBe(await theirs.metrics());
    }),
    { numRuns: 50 },
  );
});
