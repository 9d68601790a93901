import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { FakeClock, settle } from "../../core/testing/fake-clock.ts";
import { ApiError } from "./api-error.ts";
import { createEventRecorder } from "./event-recorder.ts";
import type { CallOptions, KubeApi } from "./kube-api.ts";
import { silentLogger } from "./logging.ts";

function setup() {
  const clock = new FakeClock();
  const metrics = new Registry();
  const calls: { path: string; body: Record<string, unknown> }[] = [];
  let away = false;
  const api: KubeApi = {
    call: async (_method, path: string, { body }: CallOptions) => {
      if (away) throw new ApiError("away", 0, "Unreachable");
      calls.push({ path, body: body as Record<string, unknown> });
      return body;
    },
    async *watch() {
      // Not needed.
    },
    discover: () => Promise.reject(new Error("not needed")),
    close: () => Promise.resolve(),
  };
  const { signal } = new AbortController();
  const recorder = createEventRecorder({ api, clock, log: silentLogger, metrics, instance: "pod-1", signal });
  const setAway = (value: boolean) => void (away = value);
  return { clock, metrics, calls, recorder, setAway };
}

const service = {
  apiVersion: "serving.knative.dev/v1",
  kind: "Service",
  metadata: { name: "hello", namespace: "ns", uid: "u1" },
};

describe("event recorder", () => {
  it("writes an event on the object", async () => {
    const { recorder, calls } = setup();
    recorder.event(service, "Warning", "RevisionFailed", "no image");
    await settle();
    expect(calls).toHaveLength(1);
    expect(calls[0]?.path).toMatch(/^\/api\/v1\/namespaces\/ns\/events\/hello\./);
    expect(calls[0]?.body).toMatchObject({
      involvedObject: {
        apiVersion: "serving.knative.dev/v1",
        kind: "Service",
        namespace: "ns",
        name: "hello",
        uid: "u1",
      },
      type: "Warning",
      reason: "RevisionFailed",
      message: "no image",
      count: 1,
      firstTimestamp: "2026-01-01T00:00:00Z",
    });
  });

  it("counts equal events in one, and starts anew after 10 min", async () => {
    const { recorder, calls, clock } = setup();
    recorder.event(service, "Normal", "Scaled", "to 2");
    await clock.advance(60_000);
    recorder.event(service, "Normal", "Scaled", "to 2");
    await clock.advance(601_000);
    recorder.event(service, "Normal", "Scaled", "to 2");
    await settle();
    expect(calls.map(({ body }) => body["count"])).toEqual([1, 2, 1]);
    expect(calls[1]?.path).toBe(calls[0]?.path);
    expect(calls[2]?.path).not.toBe(calls[0]?.path);
    expect(calls[1]?.body).toMatchObject({
      firstTimestamp: "2026-01-01T00:00:00Z",
      lastTimestamp: "2026-01-01T00:01:00Z",
    });
  });

  it("lets an object have ten at once, then one each 30 s, and does not touch other objects", async () => {
    const { recorder, calls, clock, metrics } = setup();
    for (let index = 0; index < 25; index++) recorder.event(service, "Normal", "Scaled", `to ${index}`);
    recorder.event(
      { ...service, metadata: { ...service.metadata, name: "other", uid: "u2" } },
      "Normal",
      "Scaled",
      "x",
    );
    await settle();
    expect(calls).toHaveLength(11);
    await clock.advance(30_000);
    recorder.event(service, "Normal", "Scaled", "later");
    recorder.event(service, "Normal", "Scaled", "dropped");
    await settle();
    expect(calls).toHaveLength(12);
    expect(await metrics.metrics()).toContain('fairway_events_total{result="dropped"} 16');
  });

  it("never throws: not without the API server, not for an object without a name", async () => {
    const { recorder, calls, setAway, metrics } = setup();
    setAway(true);
    recorder.event(service, "Normal", "A", "a");
    recorder.event({ kind: "Service" }, "Normal", "A", "a");
    await settle();
    setAway(false);
    recorder.event(service, "Normal", "B", "b");
    await settle();
    expect(calls.map(({ body }) => body["reason"])).toEqual(["B"]);
    expect(await metrics.metrics()).toContain('fairway_events_total{result="failed"} 1');
  });

  it("cuts messages that the API server would refuse", async () => {
    const { recorder, calls } = setup();
    recorder.event(service, "Normal", "A", "x".repeat(2000));
    await settle();
    expect(calls[0]?.body["message"]).toHaveLength(1024);
  });
});
