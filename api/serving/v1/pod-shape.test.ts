import { describe, expect, it } from "vitest";
import { podCpuLimit, usesGpu } from "./pod-shape.ts";
import type { RevisionSpec } from "./types.ts";

const withLimits = (...limits: Record<string, string | number>[]): RevisionSpec => ({
  containers: limits.map(limit => ({ image: "a", resources: { limits: limit } })),
});

describe("the shape of a pod", () => {
  it("has the CPUs of all containers, or none when one has no limit", () => {
    expect(podCpuLimit(withLimits({ cpu: "1" }, { cpu: "250m" }))).toBe(1.25);
    expect(podCpuLimit(withLimits({ cpu: 2 }, { memory: "1Gi" }))).toBeUndefined();
    expect(podCpuLimit({ containers: [{ image: "a" }] })).toBeUndefined();
  });

  it("has a GPU when a container is limited to one", () => {
    expect(usesGpu(withLimits({ cpu: "1" }, { "nvidia.com/gpu": "1" }))).toBe(true);
    expect(usesGpu(withLimits({ cpu: "1" }))).toBe(false);
    expect(usesGpu({ containers: [] })).toBe(false);
  });
});
