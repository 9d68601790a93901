import { describe, expect, it } from "vitest";
import { DEFAULT_AUTOSCALER_CONFIG, resolveKpaSpec, resolvePanicWindowMs, resolveTarget } from "./config.ts";
import { resolveRevision } from "./resolve-revision.ts";
import type { RevisionSettings } from "./resolve-revision.ts";

const CONFIG = DEFAULT_AUTOSCALER_CONFIG;

describe("targets", () => {
  it("are the utilization of what a pod can take", () => {
    expect(resolveTarget(CONFIG, {}, 10)).toEqual({ targetValue: 7, totalValue: 10 });
    expect(resolveTarget(CONFIG, {}, 0)).toEqual({ targetValue: 70, totalValue: 100 });
    expect(resolveTarget(CONFIG, { metric: "rps" }, 10)).toEqual({ targetValue: 140, totalValue: 200 });
    expect(resolveTarget(CONFIG, { target: 5, targetUtilization: 0.9 }, 0)).toEqual({
      targetValue: 4.5,
      totalValue: 5,
    });
  });

  it("never aim over the container concurrency, nor under 0.01", () => {
    expect(resolveTarget(CONFIG, { target: 50 }, 10).totalValue).toBe(10);
    expect(resolveTarget(CONFIG, { target: 0.01, targetUtilization: 0.1 }, 0).targetValue).toBe(0.01);
  });
});

describe("windows", () => {
  it("panic over a percentage of the stable window in whole seconds, at least one", () => {
    expect(resolvePanicWindowMs(60_000, 10)).toBe(6000);
    expect(resolvePanicWindowMs(10_000, 15)).toBe(2000);
    expect(resolvePanicWindowMs(6000, 1)).toBe(1000);
  });

  it("come from the annotation first", () => {
    expect(resolveKpaSpec(CONFIG, { windowMs: 20_000 }, 0, true)).toMatchObject({
      stableWindowMs: 20_000,
      panicWindowMs: 2000,
      panicThreshold: 2,
    });
  });
});

describe("a revision's spec", () => {
  const settings: RevisionSettings = {
    policy: "kpa",
    config: CONFIG,
    scaling: { minScale: 2, maxScale: 9 },
    cloudRun: {},
    manualInstances: 4,
    instance: { containerConcurrency: 10, cpus: 2, gpu: false },
    reachable: true,
    progressDeadlineMs: 600_000,
  };

  it("is Knative's by default", () => {
    const { spec, windows } = resolveRevision(settings);
    expect(spec.policy).toMatchObject({ kind: "kpa", kpa: { targetValue: 7 } });
    expect(spec.lifecycle).toMatchObject({
      bounds: { min: 2, max: 9, initial: 1 },
      gracePeriodMs: 30_000,
      activationTimeoutMs: 630_000,
    });
    expect(windows).toMatchObject({ stableWindowMs: 60_000, panicWindowMs: 6000, scraped: true, perInstance: false });
  });

  it("has Cloud Run's bounds and no further waits under its policy", () => {
    const { spec, windows } = resolveRevision({ ...settings, policy: "cloud-run" });
    expect(spec.policy).toMatchObject({ kind: "cloud-run", cloudRun: { minInstances: 2, maxInstances: 9, cpus: 2 } });
    expect(spec.lifecycle).toMatchObject({ bounds: { min: 2, max: 9 }, gracePeriodMs: 0, stableWindowMs: 0 });
    expect(windows.perInstance).toBe(true);
    const surging = resolveRevision({ ...settings, policy: "cloud-run", cloudRun: { maxScaleOvershoot: true } });
    expect(surging.spec.lifecycle.bounds.max).toBe(0);
  });

  it("is the fixed number under the manual policy, none when unreachable", () => {
    const manual: RevisionSettings = { ...settings, policy: "manual" };
    expect(resolveRevision(manual).spec.lifecycle.bounds).toMatchObject({ min: 4, max: 4 });
    expect(resolveRevision({ ...manual, reachable: false }).spec.lifecycle.bounds.min).toBe(0);
  });
});
