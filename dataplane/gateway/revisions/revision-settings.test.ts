import { describe, expect, it } from "vitest";
import type { Revision } from "../../../api/serving/v1/types.ts";
import { revisionSettings } from "./revision-settings.ts";

const defaults = { queueLength: 1000 };

function revision(more: {
  spec?: Partial<Revision["spec"]>;
  annotations?: Record<string, string>;
  conditions?: NonNullable<Revision["status"]>["conditions"];
}): Revision {
  return {
    metadata: {
      name: "r-00001",
      namespace: "ns",
      labels: { "serving.knative.dev/service": "r" },
      ...(more.annotations === undefined ? {} : { annotations: more.annotations }),
    },
    spec: { containers: [{ image: "i" }], ...more.spec },
    status: { conditions: more.conditions ?? [] },
  };
}

describe("revisionSettings", () => {
  it("has Knative's defaults", () => {
    expect(revisionSettings(revision({}), undefined, defaults)).toEqual({
      service: "r",
      protocol: "h1",
      podConcurrency: Infinity,
      timeouts: { wholeMs: 300_000, responseStartMs: 0, idleMs: 0 },
      backstop: { wholeMs: 305_000, responseStartMs: 0, idleMs: 0 },
      queueLength: 1000,
      queuePolicy: "fair",
      width: 1,
    });
  });

  it("reads limits, timeouts and the h2c port", () => {
    const spec = {
      containerConcurrency: 2,
      timeoutSeconds: 30,
      responseStartTimeoutSeconds: 10,
      idleTimeoutSeconds: 5,
      containers: [{ image: "sidecar" }, { image: "i", ports: [{ name: "h2c", containerPort: 8080 }] }],
    };
    expect(revisionSettings(revision({ spec }), undefined, defaults)).toMatchObject({
      protocol: "h2c",
      podConcurrency: 2,
      timeouts: { wholeMs: 30_000, responseStartMs: 10_000, idleMs: 5_000 },
    });
  });

  it("reads the queue's annotations, the service's before the revision's", () => {
    const annotations = {
      "flowcontrol.fairway.dev/queue-length": "5",
      "flowcontrol.fairway.dev/max-wait": "20s",
      "flowcontrol.fairway.dev/queue-policy": "fifo",
      "flowcontrol.fairway.dev/width": "3",
    };
    const settings = (service?: Record<string, string>) =>
      revisionSettings(revision({ annotations }), service, defaults);
    expect(settings()).toMatchObject({ queueLength: 5, maxWaitMs: 20_000, queuePolicy: "fifo", width: 3 });
    expect(settings({ "flowcontrol.fairway.dev/queue-length": "0" })).toMatchObject({ queueLength: 0 });
  });

  it("assumes a start of 10 s for Cloud Run's pending rule until the autoscaler tells the wait", () => {
    const annotations = { "autoscaling.knative.dev/class": "cloudrun.autoscaling.fairway.dev" };
    expect(revisionSettings(revision({ annotations }), undefined, defaults).assumedWaitMs).toBe(35_000);
    expect(revisionSettings(revision({}), undefined, defaults).assumedWaitMs).toBeUndefined();
    const service = { "autoscaling.fairway.dev/class": "cloudrun.autoscaling.fairway.dev" };
    expect(revisionSettings(revision({}), service, defaults).assumedWaitMs).toBe(35_000);
  });

  it("takes an annotation with a wrong value for none", () => {
    const annotations = { "flowcontrol.fairway.dev/queue-length": "many", "flowcontrol.fairway.dev/max-wait": "soon" };
    const settings = revisionSettings(revision({ annotations }), undefined, defaults);
    expect(settings.queueLength).toBe(1000);
    expect(settings.maxWaitMs).toBeUndefined();
  });

  it("knows a failed revision from one that is on its way", () => {
    const pull = { type: "ResourcesAvailable", status: "Unknown" as const, reason: "Deploying", message: "pulling" };
    const starting = revisionSettings(revision({ conditions: [pull] }), undefined, defaults);
    expect(starting.failed).toBeUndefined();
    expect(starting.trouble).toEqual({ reason: "Deploying", message: "pulling" });

    const ready = { type: "Ready", status: "False" as const, reason: "ImagePullBackOff", message: "no such image" };
    const failed = revisionSettings(revision({ conditions: [pull, ready] }), undefined, defaults);
    expect(failed.failed).toEqual({ reason: "ImagePullBackOff", message: "no such image" });
    expect(failed.trouble).toEqual(failed.failed);
  });

  it("does not take a revision at zero for a troubled one", () => {
    const idle = { type: "Active", status: "False" as const, reason: "NoTraffic", message: "no traffic" };
    expect(revisionSettings(revision({ conditions: [idle] }), undefined, defaults).trouble).toBeUndefined();
  });
});
