import { describe, expect, it } from "vitest";
import type { KubeObject } from "../runtime/types.ts";
import { DecisionEvents } from "./decision-events.ts";
import type { Decision } from "./revision-scaler.ts";

const revision: KubeObject = { apiVersion: "serving.knative.dev/v1", kind: "Revision", metadata: { name: "r" } };

function decision(atMs: number, more: { bound?: string; reason?: string; readyPods?: number }): Decision {
  return {
    atMs,
    spec: { policy: { kind: "kpa" }, lifecycle: { bounds: { max: 3 } } },
    observation: { readyPods: more.readyPods ?? 2 },
    outcome: {
      decision: more.reason === undefined ? { valid: true } : { valid: false, reason: more.reason },
      desired: 9,
      step: { bound: more.bound ?? "none" },
    },
    replicasBefore: 2,
    pokedMs: undefined,
    livePods: 2,
  } as unknown as Decision;
}

function recorder(): { readonly events: DecisionEvents; readonly told: string[] } {
  const told: string[] = [];
  const events = new DecisionEvents(
    { event: (_object, type, reason, message) => told.push(`${type} ${reason}: ${message}`) },
    () => undefined,
  );
  return { events, told };
}

describe("events of decisions", () => {
  it("tells once that max scale bounds the number, and again after it did not", () => {
    const { events, told } = recorder();
    for (const bound of ["none", "max-scale", "max-scale", "none", "max-scale"]) {
      events.observe("ns/r", revision, decision(0, { bound }));
    }
    const text = "Warning MaxScaleReached: 9 pods are wanted, max scale is 3: requests wait for the 3 there are";
    expect(told).toEqual([text, text]);
  });

  it("tells that pods are kept without data only when it lasts", () => {
    const { events, told } = recorder();
    const held = { reason: "no-data-in-window" };
    events.observe("ns/r", revision, decision(0, held));
    events.observe("ns/r", revision, decision(2000, {}));
    events.observe("ns/r", revision, decision(4000, held));
    events.observe("ns/r", revision, decision(18_999, held));
    expect(told).toEqual([]);
    events.observe("ns/r", revision, decision(19_000, held));
    events.observe("ns/r", revision, decision(21_000, held));
    expect(told).toEqual([
      "Warning ScalingHeld: no decision without data (no-data-in-window): the number of pods stays at 2",
    ]);
  });

  it("says nothing of a revision without pods", () => {
    const { events, told } = recorder();
    events.observe("ns/r", revision, decision(0, { reason: "no-data-in-window", readyPods: 0 }));
    events.observe("ns/r", revision, decision(60_000, { reason: "no-data-in-window", readyPods: 0 }));
    expect(told).toEqual([]);
  });
});
