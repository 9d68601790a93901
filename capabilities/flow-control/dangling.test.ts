import { describe, expect, it } from "vitest";
import type { FlowSchema, PriorityLevelConfiguration } from "../../api/flowcontrol/v1/types.ts";
import { DanglingReconciler, danglingCondition } from "./dangling.ts";

const NOW = "1970-01-01T00:01:40Z";

describe("the condition Dangling", () => {
  it("says whether the level exists, and keeps the time of the last transition (K8 PR#107729)", () => {
    const dangling = danglingCondition("gold", false, undefined, NOW);
    expect(dangling).toMatchObject({ status: "True", reason: "NotFound", lastTransitionTime: NOW });
    expect(danglingCondition("gold", false, dangling, "later")).toEqual(dangling);
    expect(danglingCondition("gold", true, dangling, "later")).toMatchObject({
      status: "False",
      reason: "Found",
      lastTransitionTime: "later",
    });
  });

  it("is written to the schema's status", async () => {
    const schema = {
      metadata: { name: "paid", uid: "u" },
      spec: { priorityLevelConfiguration: { name: "gold" } },
    } as FlowSchema;
    const written: unknown[] = [];
    const reconciler = new DanglingReconciler({
      flowSchemas: { get: () => schema, list: () => [schema], ownedBy: () => [] },
      priorityLevels: {
        get: () => undefined as PriorityLevelConfiguration | undefined,
        list: () => [],
        ownedBy: () => [],
      },
      writer: {
        applyStatus: async object => {
          written.push(object);
          return object;
        },
      },
      clock: { nowMs: () => 100_500 },
    });
    await reconciler.reconcile({ name: "paid" }, new AbortController().signal);
    expect(written).toEqual([
      {
        apiVersion: "flowcontrol.fairway.dev/v1",
        kind: "FlowSchema",
        metadata: { name: "paid", uid: "u" },
        status: { conditions: [danglingCondition("gold", false, undefined, NOW)] },
      },
    ]);
  });
});
