import type { V1Pod } from "@kubernetes/client-node";
import { describe, expect, it } from "vitest";
import type { Revision } from "../../api/serving/v1/types.ts";
import { lifecycleFromStatus, livePods, readyPods } from "./observe.ts";

function pod(name: string, ready: boolean, more: { deleting?: boolean; ip?: string } = {}): V1Pod {
  return {
    metadata: { name, ...(more.deleting === true ? { deletionTimestamp: new Date(0) } : {}) },
    status: {
      podIP: more.ip ?? "10.0.0.1",
      startTime: new Date(5000),
      conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
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

describe("readyPods", () => {
  it("takes ready pods, never one that is being deleted (KS#15211)", () => {
    const pods = [pod("a", true), pod("b", false), pod("c", true, { deleting: true })];
    expect(readyPods(pods)).toEqual([{ name: "a", ip: "10.0.0.1", startedMs: 5000 }]);
    expect(livePods(pods)).toBe(2);
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
