import { describe, expect, it } from "vitest";
import type { Revision, Service } from "../../api/serving/v1/types.ts";
import { parseAutoscalerConfig } from "../../api/config/autoscaler.ts";
import { rolloutOf, withRolloutCapacity } from "./rollout.ts";
import { resolveScaling } from "./resolve.ts";

const revision = (name: string, annotations: Record<string, string> = {}, reached = false): Revision =>
  ({
    metadata: { name, namespace: "ns", annotations },
    spec: { containers: [], containerConcurrency: 10 },
    ...(reached ? { status: { annotations: { "autoscaling.fairway.dev/initial-scale-reached": "true" } } } : {}),
  }) as unknown as Revision;

const service = (traffic: object[] | undefined, status: object[]): Service =>
  ({
    metadata: { name: "s", namespace: "ns" },
    spec: { traffic },
    status: { latestCreatedRevisionName: "s-2", traffic: status },
  }) as unknown as Service;

const toLatest = [{ latestRevision: true, percent: 100 }];
const atFirst = [{ revisionName: "s-1", percent: 100 }];

describe("rolloutOf", () => {
  it("is a new revision's that the traffic is to move to", () => {
    expect(rolloutOf(service(toLatest, atFirst), revision("s-2"))).toEqual({ percent: 100, from: ["s-1"] });
    expect(rolloutOf(service(undefined, atFirst), revision("s-2"))).toEqual({ percent: 100, from: ["s-1"] });
  });

  it("has a part of the traffic when it is split", () => {
    const split = [
      { latestRevision: true, percent: 20 },
      { revisionName: "s-1", percent: 80 },
    ];
    expect(rolloutOf(service(split, atFirst), revision("s-2"))).toEqual({ percent: 20, from: ["s-1"] });
  });

  it("is over once so many pods were ready, and none without traffic to come", () => {
    expect(rolloutOf(service(toLatest, atFirst), revision("s-2", {}, true))).toBeUndefined();
    expect(rolloutOf(service([{ revisionName: "s-1", percent: 100 }], atFirst), revision("s-2"))).toBeUndefined();
    expect(rolloutOf(service(toLatest, atFirst), revision("s-1"))).toBeUndefined();
    expect(rolloutOf(undefined, revision("s-2"))).toBeUndefined();
  });
});

describe("withRolloutCapacity", () => {
  const load = { concurrency1m: 30, concurrency10m: 12, cpu1m: undefined };
  const resolved = (annotations: Record<string, string>) =>
    resolveScaling(
      revision("s-2", { "autoscaling.knative.dev/class": "cloudrun.autoscaling.fairway.dev", ...annotations }),
      true,
      {
        config: parseAutoscalerConfig(),
        progressDeadlineMs: 60_000,
        serviceAnnotations: undefined,
        trafficPercent: 100,
      },
    );
  type Loads = Parameters<typeof withRolloutCapacity>[2];
  const initial = (annotations: Record<string, string>, percent: number, loads: Loads, replicas: number) =>
    withRolloutCapacity(resolved(annotations), percent, loads, replicas).spec.lifecycle.bounds.initial;

  it("asks for the pods that the present load needs: 30 in flight / 10 each / 60 % = 5", () => {
    expect(initial({}, 100, [load], 1)).toBe(5);
    expect(initial({}, 20, [load], 1)).toBe(1);
    expect(initial({ "autoscaling.knative.dev/max-scale": "3" }, 100, [load], 1)).toBe(3);
    expect(initial({ "autoscaling.knative.dev/initial-scale": "7" }, 100, [load], 1)).toBe(7);
  });

  it("stays with what it asked for while data are missing", () => {
    expect(initial({}, 100, [undefined], 4)).toBe(4);
  });

  it("leaves the other policies alone", () => {
    expect(initial({ "autoscaling.knative.dev/class": "kpa.autoscaling.knative.dev" }, 100, [load], 1)).toBe(1);
  });
});
