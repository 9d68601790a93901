import { describe, expect, test } from "vitest";
import { parseAutoscalerConfig } from "./autoscaler.ts";
import { ConfigError } from "./config-map.ts";

test("no data gives the defaults of the specification's table; _example is ignored", () => {
  expect(parseAutoscalerConfig({ _example: "stable-window: nonsense" })).toEqual({
    podAutoscalerClass: "kpa.autoscaling.knative.dev",
    enableScaleToZero: true,
    allowZeroInitialScale: false,
    stableWindowMs: 60_000,
    panicWindowPercentage: 10,
    panicThresholdPercentage: 200,
    containerConcurrencyTargetFraction: 0.7,
    containerConcurrencyTargetDefault: 100,
    requestsPerSecondTargetDefault: 200,
    targetBurstCapacity: 211,
    activatorCapacity: 100,
    maxScaleUpRate: 1000,
    maxScaleDownRate: 2,
    scaleToZeroGracePeriodMs: 30_000,
    scaleToZeroPodRetentionPeriodMs: 0,
    scaleDownDelayMs: 0,
    initialScale: 1,
    minScale: 0,
    maxScale: 0,
    maxScaleLimit: 0,
  });
});

test("percentages up to 1 are fractions", () => {
  expect(parseAutoscalerConfig({ "container-concurrency-target-percentage": "0.5" })).toMatchObject({
    containerConcurrencyTargetFraction: 0.5,
  });
  expect(parseAutoscalerConfig({ "container-concurrency-target-percentage": "50" })).toMatchObject({
    containerConcurrencyTargetFraction: 0.5,
  });
});

describe("a value out of bounds is refused with key, bound and value", () => {
  test.each([
    [{ "stable-window": "4s" }, `stable-window must be in [5s, 1h0m0s], was "4s"`],
    [{ "stable-window": "61m" }, `stable-window must be in [5s, 1h0m0s], was "61m"`],
    [{ "stable-window": "10.5s" }, `stable-window must be specified with at most second precision, was "10.5s"`],
    [{ "stable-window": "60" }, `stable-window must be a duration such as 1m30s, was "60"`],
    [{ "panic-window-percentage": "0.5" }, `panic-window-percentage must be in [1, 100], was "0.5"`],
    [
      { "panic-window-percentage": "10", "stable-window": "6s" },
      "panic-window-percentage must make a panic window of at least 1s, was 600ms",
    ],
    [{ "panic-threshold-percentage": "109" }, `panic-threshold-percentage must be in [110, 1000], was "109"`],
    [
      { "container-concurrency-target-percentage": "0" },
      `container-concurrency-target-percentage must be in (0, 100], was "0"`,
    ],
    [{ "target-burst-capacity": "-2" }, `target-burst-capacity must be at least 0 or -1, was "-2"`],
    [{ "activator-capacity": "0.5" }, `activator-capacity must be at least 1, was "0.5"`],
    [{ "max-scale-up-rate": "1" }, `max-scale-up-rate must be greater than 1, was "1"`],
    [{ "max-scale-down-rate": "x" }, `max-scale-down-rate must be a number, was "x"`],
    [{ "scale-to-zero-grace-period": "0s" }, `scale-to-zero-grace-period must be greater than 0s, was "0s"`],
    [{ "scale-down-delay": "2h" }, `scale-down-delay must be in [0s, 1h0m0s], was "2h"`],
    [{ "initial-scale": "0" }, "initial-scale must be at least 1 when allow-zero-initial-scale is false, was 0"],
    [{ "max-scale-limit": "5" }, "max-scale must be in [1, max-scale-limit(5)], was 0"],
    [{ "min-scale": "3", "max-scale": "2" }, "min-scale must be at most max-scale(2), was 3"],
    [{ "enable-scale-to-zero": "maybe" }, `enable-scale-to-zero must be true or false, was "maybe"`],
    [{ "min-scale": "-1" }, `min-scale must be at least 0, was "-1"`],
  ])("%j", (data, message) => {
    expect(() => parseAutoscalerConfig(data as unknown as Record<string, string>)).toThrow(
      `config-autoscaler: ${message}`,
    );
  });

  test("all problems are reported at once, with the stable code", () => {
    try {
      parseAutoscalerConfig({ "min-scale": "-1", "max-scale": "x" });
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
      expect(error).toMatchObject({ code: "INVALID_CONFIG", configMap: "config-autoscaler" });
      expect((error as ConfigError).issues.map(issue => issue.key)).toEqual(["min-scale", "max-scale"]);
    }
  });
});

test("max-scale-limit 5 with a max-scale below it is accepted (knative/serving#10825)", () => {
  expect(parseAutoscalerConfig({ "max-scale-limit": "5", "max-scale": "3" }).maxScale).toBe(3);
});
