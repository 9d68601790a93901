import { describe, expect, it } from "vitest";
import { parseDistribution } from "./distribution-text.ts";
import { choosePattern, parsePolicy } from "./scenario.ts";
import { readAutoscalerConfig, readService } from "./service-file.ts";
import { parseTrace } from "./trace-file.ts";

describe("distributions on the command line", () => {
  it("reads the forms it tells of, and nothing else", () => {
    expect(parseDistribution("150ms")).toEqual({ kind: "constant", ms: 150 });
    expect(parseDistribution("exp(1.5s)")).toEqual({ kind: "exponential", meanMs: 1500 });
    expect(parseDistribution("uniform(1s, 2s)")).toEqual({ kind: "uniform", minMs: 1000, maxMs: 2000 });
    expect(parseDistribution("lognormal(80ms,300ms)")).toEqual({ kind: "lognormal", medianMs: 80, p95Ms: 300 });
    const wrong = [
      "",
      "100",
      "-1s",
      "exp()",
      "exp(1s,2s)",
      "uniform(2s,1s)",
      "lognormal(0s,1s)",
      "normal(1s)",
      "exp(x)",
    ];
    expect(wrong.filter(text => parseDistribution(text) !== undefined)).toEqual([]);
  });
});

describe("policies on the command line", () => {
  it("are kpa, cloudrun, and manual with or without a count", () => {
    expect(parsePolicy("kpa")).toEqual({ name: "kpa", kind: "kpa" });
    expect(parsePolicy("cloudrun")).toEqual({ name: "cloudrun", kind: "cloud-run" });
    expect(parsePolicy("manual:12")).toEqual({ name: "manual:12", kind: "manual", count: 12 });
    expect(["hpa", "manual:", "manual:-1", "KPA"].map(parsePolicy)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe("patterns", () => {
  const nothing = {
    rps: undefined,
    peakRps: undefined,
    atMs: undefined,
    lengthMs: undefined,
    periodMs: undefined,
    burstSize: undefined,
  };

  it("have something sensible for what was not said", () => {
    expect(choosePattern("step", nothing, 100_000)).toEqual({ kind: "step", fromRps: 10, toRps: 100, atMs: 25_000 });
    expect(choosePattern("spike", { ...nothing, rps: 2 }, 100_000)).toMatchObject({ peakRps: 20, lengthMs: 20_000 });
    expect(choosePattern("diurnal", nothing, 100_000)).toMatchObject({ periodMs: 100_000 });
    expect(choosePattern("burst", nothing, 100_000)).toMatchObject({ baseRps: 0, size: 50, everyMs: 60_000 });
  });
});

describe("trace files", () => {
  it("reads CSV with times in seconds and service times, in any order of rows and columns", () => {
    const csv = "# recorded\nservice_time_ms, time, flow\n120, 2.5, b\n\n80, 0.5, a\n,3s,\n";
    expect(parseTrace(csv, "t.csv")).toEqual([
      { atMs: 500, serviceMs: 80, flow: "a" },
      { atMs: 2500, serviceMs: 120, flow: "b" },
      { atMs: 3000 },
    ]);
  });

  it("counts calendar times from the first request on", () => {
    const csv = "time\n2026-11-30T10:00:01.5Z\n2026-11-30T10:00:00Z\n";
    expect(parseTrace(csv, "t.csv").map(row => row.atMs)).toEqual([0, 1500]);
    expect(parseTrace("[1764500000, 1764500002]", "t.json").map(row => row.atMs)).toEqual([0, 2000]);
  });

  it("reads JSON arrays and JSON lines", () => {
    expect(parseTrace('[0, 1.5, {"time_ms": 700, "service_time": "1s", "level": "high"}]', "t.json")).toEqual([
      { atMs: 0 },
      { atMs: 700, serviceMs: 1000, level: "high" },
      { atMs: 1500 },
    ]);
    expect(parseTrace('{"time": 1}\n{"time": 2, "flow": "x"}\n', "t.ndjson")).toEqual([
      { atMs: 1000 },
      { atMs: 2000, flow: "x" },
    ]);
  });

  it.each([
    ["", "t: there is no request in it"],
    ["a,b\n1,2", 't: line 1: expected a head with the column time or time_ms, was "a,b"'],
    ["time,flow\n1", "t: line 2: expected 2 columns, was 1"],
    ["time\nsoon", 't: line 2: time: expected seconds, a duration or an RFC 3339 time, was "soon"'],
    ["time\n-1", "t: line 2: time must not be negative, was -1000ms"],
    ["time,service_time\n1,x", 't: line 2: service_time: expected seconds or a duration, was "x"'],
    ["[{}]", "t: [0]: time is missing"],
    ["[true]", "t: [0]: expected an object or a time"],
    ["{nope", "t: line 1: no JSON: {nope"],
  ])("refuses %j by row and value", (text, message) => {
    expect(() => parseTrace(text, "t")).toThrow(message);
  });
});

const SERVICE = `
apiVersion: v1
kind: ConfigMap
metadata: { name: other }
---
apiVersion: serving.knative.dev/v1
kind: Service
metadata: { name: hello }
spec:
  template:
    metadata:
      annotations: { autoscaling.knative.dev/max-scale: "5", autoscaling.knative.dev/maxscale: "1" }
    spec:
      containerConcurrency: 10
      containers: [{ image: example.com/hello }]
`;

describe("service files", () => {
  const { config } = readAutoscalerConfig(undefined, "");
  const keep = <T>(value: T): T => value;

  it("finds the Service among other objects, defaults it, and warns of annotations without effect", () => {
    const { service, warnings } = readService(SERVICE, "s.yaml", undefined, config, keep);
    expect(service.spec.template.spec).toMatchObject({ containerConcurrency: 10, timeoutSeconds: 300 });
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("autoscaling.knative.dev/maxscale");
  });

  it("refuses what the cluster would refuse, and what is no Service", () => {
    const bad = SERVICE.replace('max-scale: "5"', 'max-scale: "-5"');
    expect(() => readService(bad, "s.yaml", undefined, config, keep)).toThrow(/s\.yaml: validation failed: .*-5/);
    expect(() => readService(SERVICE, "s.yaml", "bye", config, keep)).toThrow(
      "no Service of serving.knative.dev/v1 named bye",
    );
    expect(() => readService("kind: [", "s.yaml", undefined, config, keep)).toThrow(/^s\.yaml: /);
    expect(() => readService(`${SERVICE}---${SERVICE}`, "s.yaml", undefined, config, keep)).toThrow(
      "several Services (hello, hello); choose one with --name",
    );
  });

  it("reads config-autoscaler and names the key that is wrong or unknown", () => {
    const map = (data: string) => `{ kind: ConfigMap, metadata: { name: config-autoscaler }, data: { ${data} } }`;
    const read = readAutoscalerConfig(map('stable-window: "30s", stabel-window: "1s"'), "c.yaml");
    expect(read.config.stableWindowMs).toBe(30_000);
    expect(read.warnings).toEqual(["c.yaml: stabel-window is no key of config-autoscaler; it has no effect"]);
    expect(() => readAutoscalerConfig(map('stable-window: "1s"'), "c.yaml")).toThrow(/c\.yaml: .*stable-window/);
    expect(() => readAutoscalerConfig(SERVICE, "s.yaml")).toThrow("no ConfigMap config-autoscaler");
  });
});
