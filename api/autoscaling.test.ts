import { describe, expect, test } from "vitest";
import { parseQueueing, parseRevisionAutoscaling, parseServiceScaling } from "./autoscaling.ts";

describe("a revision's autoscaling", () => {
  test("without annotations everything is left to the configuration", () => {
    expect(parseRevisionAutoscaling(undefined)).toEqual({ scaling: {}, cloudRun: {} });
  });

  test("all of Knative's keys, in the spelling to write", () => {
    expect(
      parseRevisionAutoscaling({
        "autoscaling.knative.dev/class": "kpa.autoscaling.knative.dev",
        "autoscaling.knative.dev/metric": "rps",
        "autoscaling.knative.dev/metric-aggregation-algorithm": "weightedExponential",
        "autoscaling.knative.dev/target": "12.5",
        "autoscaling.knative.dev/target-utilization-percentage": "80",
        "autoscaling.knative.dev/target-burst-capacity": "-1",
        "autoscaling.knative.dev/window": "2m",
        "autoscaling.knative.dev/panic-window-percentage": "20",
        "autoscaling.knative.dev/panic-threshold-percentage": "150",
        "autoscaling.knative.dev/min-scale": "1",
        "autoscaling.knative.dev/max-scale": "7",
        "autoscaling.knative.dev/initial-scale": "3",
        "autoscaling.knative.dev/activation-scale": "2",
        "autoscaling.knative.dev/scale-down-delay": "15s",
        "autoscaling.knative.dev/scale-to-zero-pod-retention-period": "1m5s",
      }),
    ).toEqual({
      class: "kpa.autoscaling.knative.dev",
      scaling: {
        metric: "rps",
        aggregation: "weighted-exponential",
        target: 12.5,
        targetUtilization: 0.8,
        targetBurstCapacity: -1,
        windowMs: 120_000,
        panicWindowPercentage: 20,
        panicThresholdPercentage: 150,
        minScale: 1,
        maxScale: 7,
        initialScale: 3,
        activationScale: 2,
        scaleDownDelayMs: 15_000,
        scaleToZeroPodRetentionPeriodMs: 65_000,
      },
      cloudRun: {},
    });
  });

  test("the older spelling is understood, and the newer one wins", () => {
    expect(parseRevisionAutoscaling({ "autoscaling.knative.dev/maxScale": "3" }).scaling).toEqual({ maxScale: 3 });
    expect(
      parseRevisionAutoscaling({ "autoscaling.knative.dev/maxScale": "3", "autoscaling.knative.dev/max-scale": "5" })
        .scaling,
    ).toEqual({ maxScale: 5 });
  });

  test("class and target set on the Service win over the template's", () => {
    const template = {
      "autoscaling.knative.dev/class": "kpa.autoscaling.knative.dev",
      "autoscaling.knative.dev/target": "10",
      "autoscaling.knative.dev/target-utilization-percentage": "70",
    };
    const service = {
      "autoscaling.fairway.dev/class": "cloudrun.autoscaling.fairway.dev",
      "autoscaling.fairway.dev/target": "20",
      "autoscaling.fairway.dev/target-utilization-percentage": "90",
    };
    expect(parseRevisionAutoscaling(template, service)).toMatchObject({
      class: "cloudrun.autoscaling.fairway.dev",
      scaling: { target: 20, targetUtilization: 0.9 },
    });
    expect(parseRevisionAutoscaling(template, { "run.googleapis.com/scalingMode": "manual" }).class).toBe(
      "manual.autoscaling.fairway.dev",
    );
  });

  test("values that admission refuses count as absent", () => {
    expect(
      parseRevisionAutoscaling({
        "autoscaling.knative.dev/class": "hpa.autoscaling.knative.dev",
        "autoscaling.knative.dev/target": "0",
        "autoscaling.knative.dev/window": "2h",
        "autoscaling.knative.dev/min-scale": "-1",
        "autoscaling.fairway.dev/cpu-target-percentage": "5",
      }),
    ).toEqual({ scaling: {}, cloudRun: {} });
  });

  test("Cloud Run's exported YAML", () => {
    const service = {
      "run.googleapis.com/ingress": "all",
      "run.googleapis.com/minScale": "4",
      "run.googleapis.com/maxScale": "10",
      "run.googleapis.com/operation-id": "x",
    };
    const template = {
      "autoscaling.knative.dev/maxScale": "100",
      "run.googleapis.com/cpu-throttling": "false",
      "run.googleapis.com/startup-cpu-boost": "true",
    };
    expect(parseRevisionAutoscaling(template, service)).toEqual({
      scaling: { minScale: 4, maxScale: 10 },
      cloudRun: { cpuAlwaysAllocated: true },
    });
    expect(
      parseRevisionAutoscaling(template, {
        "run.googleapis.com/scalingMode": "manual",
        "run.googleapis.com/manualInstanceCount": "2",
      }),
    ).toEqual({
      class: "manual.autoscaling.fairway.dev",
      scaling: { maxScale: 100 },
      cloudRun: { cpuAlwaysAllocated: true },
      manualInstanceCount: 2,
    });
  });

  test("a service's bounds are shared by traffic, rounded up; a revision without traffic has no part", () => {
    const service = { "autoscaling.fairway.dev/min-scale": "3", "autoscaling.fairway.dev/max-scale": "10" };
    expect(parseRevisionAutoscaling({}, service, 50).scaling).toEqual({ minScale: 2, maxScale: 5 });
    expect(parseRevisionAutoscaling({}, service, 0).scaling).toEqual({});
    expect(parseRevisionAutoscaling({ "autoscaling.knative.dev/min-scale": "5" }, service, 50).scaling.minScale).toBe(
      5,
    );
    expect(parseServiceScaling(service)).toEqual({ minScale: 3, maxScale: 10 });
  });

  test("on the service itself Fairway's keys win over the template's", () => {
    const template = { "autoscaling.fairway.dev/cpu-target-percentage": "70" };
    expect(parseRevisionAutoscaling(template).cloudRun).toEqual({ cpuTarget: 0.7 });
    expect(
      parseRevisionAutoscaling(template, { "autoscaling.fairway.dev/cpu-target-percentage": "disabled" }).cloudRun,
    ).toEqual({ cpuTarget: "disabled" });
  });
});

test("queueing: defaults, and the service's annotations over the template's", () => {
  expect(parseQueueing(undefined)).toEqual({ queueLength: 1000, policy: "fair", width: 1 });
  expect(
    parseQueueing(
      { "flowcontrol.fairway.dev/queue-length": "5", "flowcontrol.fairway.dev/queue-policy": "fifo" },
      { "flowcontrol.fairway.dev/queue-length": "0", "flowcontrol.fairway.dev/max-wait": "10s" },
    ),
  ).toEqual({ queueLength: 0, maxWaitMs: 10_000, policy: "fifo", width: 1 });
});
