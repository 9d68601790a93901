import { describe, expect, it } from "vitest";
import type { CloudRunSpec } from "../../core/autoscaling/cloud-run-spec.ts";
import type { PolicyDecision } from "../../core/autoscaling/scale-revision.ts";
import { GatewayHints } from "./gateway-hints.ts";

const spec = { maxConcurrency: 10, adaptiveConcurrency: true } as CloudRunSpec;

const cloudRun = {
  valid: true,
  policy: "cloud-run",
  demoted: [{ name: "pod-b", group: "first", sinceMs: 0 }],
  stops: [],
  pendingTimeoutMs: 10_500,
} as unknown as PolicyDecision;

describe("hints for the gateways", () => {
  it("name demoted instances, adapted maxima and the longest wait", () => {
    const hints = new GatewayHints();
    hints.decided("ns/r", cloudRun, undefined);
    hints.second("ns/r", spec, [
      { name: "pod-a", concurrency: 10, cpu: 0.95 },
      { name: "pod-b", concurrency: 1, cpu: 0.2 },
    ]);
    expect(hints.all()).toEqual({
      "ns/r": { demotedPods: ["pod-b"], podConcurrency: { "pod-a": 9 }, pendingTimeoutMs: 10_500 },
    });
    expect(hints.adaptations("ns/r")?.map(one => [one.name, one.maximum])).toEqual([
      ["pod-a", 9],
      ["pod-b", 10],
    ]);
  });

  it("go on from second to second, and start afresh when adaptive concurrency is switched off", () => {
    const hints = new GatewayHints();
    hints.decided("ns/r", cloudRun, undefined);
    for (let i = 0; i < 3; i++) hints.second("ns/r", spec, [{ name: "pod-a", concurrency: 10, cpu: 0.95 }]);
    expect(hints.all()["ns/r"]?.podConcurrency).toEqual({ "pod-a": 7 });
    hints.second("ns/r", { ...spec, adaptiveConcurrency: false }, [{ name: "pod-a", concurrency: 10, cpu: 0.95 }]);
    expect(hints.all()["ns/r"]?.podConcurrency).toEqual({});
  });

  it("carry the policy's maximum where the revision sets none, and what became of it", () => {
    const hints = new GatewayHints();
    hints.decided("ns/r", cloudRun, { instances: ["pod-a", "pod-b"], maxConcurrency: 10 });
    hints.second("ns/r", spec, [{ name: "pod-a", concurrency: 10, cpu: 0.95 }]);
    expect(hints.all()["ns/r"]?.podConcurrency).toEqual({ "pod-a": 9, "pod-b": 10 });
  });

  it("are none for a revision of another policy, or one that is gone", () => {
    const hints = new GatewayHints();
    hints.decided("ns/r", cloudRun, undefined);
    hints.decided("ns/r", { valid: true, policy: "manual" } as PolicyDecision, undefined);
    expect(hints.all()).toEqual({});
    hints.decided("ns/r", cloudRun, undefined);
    hints.forget("ns/r");
    expect(hints.all()).toEqual({});
    expect(hints.adaptations("ns/r")).toBeUndefined();
  });
});
