import type { V1Pod } from "@kubernetes/client-node";
import { describe, expect, it } from "vitest";
import type { Revision } from "../../api/serving/v1/types.ts";
import { isReachable, lifecycleFromStatus, livePods, readyPods } from "./observe.ts";

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
  state: string | undefined,
  conditions: { type: string; status: string; reason?: string }[],
): Revision {
  return {
    metadata: {
      name: "r",
      namespace: "ns",
      labels: state === undefined ? {} : { "serving.knative.dev/routingState": state },
    },
    spec: { containers: [] },
    status: {
      conditions: conditions.map(c => ({ lastTransitionTime: "1970-01-01T00:00:10Z", ...c })),
    },
  } as unknown as Revision;
}

describe("readyPods", () => {
  it("takes ready pods, never one that is being deleted (KS#15211)", () => {
    const pods = [pod("a", true), pod("b", false), pod("c", true, { deleting: true })];
    expect(readyPods(pods)).toEqual([{ name: "a", ip: "10.0.0.1", startedMs: 5000 }]);
    expect(livePods(pods)).toBe(2);
  });
});

describe("isReachable", () => {
  it.each([
    ["active", [], true],
    ["reserve", [], false],
    ["pending", [], true],
    [undefined, [], true],
    ["pending", [{ type: "ContainerHealthy", status: "False" }], false],
    ["active", [{ type: "ContainerHealthy", status: "False" }], true],
    ["pending", [{ type: "ResourcesAvailable", status: "Unknown" }], true],
  ])("routing state %s with %j: %s", (state, conditions, expected) => {
    expect(isReachable(revision(state, conditions))).toBe(expected);
  });
});

describe("lifecycleFromStatus", () => {
  it("begins as activating without a status", () => {
    expect(lifecycleFromStatus(revision("active", []), 99)).toEqual({
      activity: { phase: "activating", sinceMs: 99 },
      initialScaleReached: false,
    });
  });

  it.each([
    [{ status: "True" }, { activity: { phase: "active", sinceMs: 10_000 }, initialScaleReached: true }],
    [
      { status: "False", reason: "NoTraffic" },
      { activity: { phase: "inactive", sinceMs: 10_000, reason: "no-traffic" }, initialScaleReached: true },
    ],
    [
      { status: "False", reason: "TimedOut" },
      { activity: { phase: "inactive", sinceMs: 10_000, reason: "timed-out" }, initialScaleReached: false },
    ],
    [
      { status: "Unknown", reason: "Queued" },
      { activity: { phase: "activating", sinceMs: 10_000 }, initialScaleReached: false },
    ],
  ])("goes on from Active %j", (active, expected) => {
    expect(lifecycleFromStatus(revision("active", [{ type: "Active", ...active }]), 99)).toEqual(expected);
  });
});
