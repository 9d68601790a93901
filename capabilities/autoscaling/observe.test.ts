import type { V1Pod } from "@kubernetes/client-node";
import { describe, expect, it } from "vitest";
import type { Revision } from "../../api/serving/v1/types.ts";
import { lifecycleFromStatus, livePods, readyPods } from "./observe.ts";

function pod(name: string, ready: boolean, deleting = false): V1Pod {
  return {
    metadata: { name, creationTimestamp: new Date(5000), ...(deleting ? { deletionTimestamp: new Date(0) } : {}) },
    status: {
      podIP: "10.0.0.1",
      conditions: [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime: new Date(7000) }],
    },
  };
}

function revision(
  conditions: { type: string; status: string; reason?: string }[],
  annotations: Record<string, string> = {},
): Revision {
  return {
    metadata: { name: "r", namespace: "ns" },
    spec: { containers: [] },
    status: { annotations, conditions: conditions.map(c => ({ lastTransitionTime: "1970-01-01T00:00:10Z", ...c })) },
  } as unknown as Revision;
}

describe("pods", () => {
  it("count while they live, never when they are being deleted (KS#15211)", () => {
    const live = livePods([pod("a", true), pod("b", false), pod("c", true, true)]);
    expect(live).toEqual([
      { name: "a", ip: "10.0.0.1", createdMs: 5000, readySinceMs: 7000 },
      { name: "b", ip: "10.0.0.1", createdMs: 5000, readySinceMs: undefined },
    ]);
    expect(readyPods(live)).toEqual([{ name: "a", ip: "10.0.0.1", startedMs: 5000 }]);
  });
});

describe("lifecycleFromStatus", () => {
  it("begins as activating without a status", () => {
    expect(lifecycleFromStatus(revision([]), 99)).toEqual({
      activity: { phase: "activating", sinceMs: 99 },
      initialScaleReached: false,
    });
  });

  it.each([
    [{ status: "True" }, { phase: "active", sinceMs: 10_000 }],
    [
      { status: "False", reason: "NoTraffic" },
      { phase: "inactive", sinceMs: 10_000, reason: "no-traffic" },
    ],
    [
      { status: "False", reason: "TimedOut" },
      { phase: "inactive", sinceMs: 10_000, reason: "timed-out" },
    ],
    [
      { status: "Unknown", reason: "Queued" },
      { phase: "activating", sinceMs: 10_000 },
    ],
  ])("goes on from Active %j", (active, activity) => {
    const before = revision([{ type: "Active", ...active }]);
    expect(lifecycleFromStatus(before, 99)).toEqual({ activity, initialScaleReached: false });
  });

  it("remembers that the initial scale was reached", () => {
    const before = revision([{ type: "Active", status: "True" }], {
      "autoscaling.fairway.dev/initial-scale-reached": "true",
    });
    expect(lifecycleFromStatus(before, 99).initialScaleReached).toBe(true);
  });
});
