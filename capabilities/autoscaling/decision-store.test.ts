import { describe, expect, it } from "vitest";
import { DEFAULT_AUTOSCALER_CONFIG } from "../../core/autoscaling/config.ts";
import { initialLifecycleState } from "../../core/autoscaling/lifecycle.ts";
import { resolveRevision } from "../../core/autoscaling/resolve-revision.ts";
import { initialRevisionState, scaleRevision } from "../../core/autoscaling/scale-revision.ts";
import { DecisionStore } from "./decision-store.ts";
import type { Decision } from "./revision-scaler.ts";

const KEY = "shop/cart-00001";

function decision(instances: number, replicasBefore: number, more: Partial<Decision> = {}): Decision {
  const { spec } = resolveRevision({
    policy: "manual",
    config: DEFAULT_AUTOSCALER_CONFIG,
    scaling: {},
    cloudRun: {},
    manualInstances: instances,
    instance: { containerConcurrency: 0, cpus: undefined, gpu: false },
    reachable: true,
    progressDeadlineMs: 600_000,
  });
  const observation = {
    readyPods: replicasBefore,
    load: { kind: "none", reason: "no-data-in-window" },
    gatewaysInPathSinceMs: 0,
  } as const;
  const outcome = scaleRevision(spec, observation, initialRevisionState(initialLifecycleState(0), 0, 0), 5);
  return { atMs: 5, spec, observation, outcome, replicasBefore, pokedMs: undefined, livePods: 0, ...more };
}

describe("DecisionStore", () => {
  it("keeps the last decision, and the last that changed the number", () => {
    const store = new DecisionStore();
    const same = decision(2, 2);
    store.record(KEY, same);
    expect([store.get(KEY), store.lastChange(KEY)]).toEqual([same, undefined]);
    store.record(KEY, decision(3, 2, { pokedMs: 4 }));
    store.record(KEY, decision(3, 3, { atMs: 7 }));
    expect(store.get(KEY)?.atMs).toBe(7);
    expect(store.lastChange(KEY)).toEqual({ atMs: 5, from: 2, to: 3, winner: "manual", pokedMs: 4 });
    store.forget(KEY);
    expect([store.get(KEY), store.lastChange(KEY)]).toEqual([undefined, undefined]);
  });
});
