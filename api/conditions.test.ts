import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  buildConditions,
  conditionFalse,
  conditionTrue,
  conditionUnknown,
  findCondition,
  isFailed,
  isReady,
  rollUp,
} from "./conditions.ts";
import type { Condition, Observation } from "./conditions.ts";

const t0 = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const ready = (conditions: Condition[]) => conditions.find(c => c.type === "Ready");

describe("buildConditions", () => {
  test("a new object has every dependent and Ready Unknown, sorted by type", () => {
    expect(buildConditions("Service", {}, undefined, t0)).toEqual(
      ["ConfigurationsReady", "Ready", "RoutesReady"].map(type => ({
        type,
        status: "Unknown",
        lastTransitionTime: "2026-01-02T03:04:05Z",
      })),
    );
  });

  test("Ready copies reason and message of the dependent that is False, even when another is Unknown", () => {
    const conditions = buildConditions(
      "Service",
      {
        ConfigurationsReady: conditionUnknown("OutOfDate", "still working"),
        RoutesReady: conditionFalse("RevisionMissing", "gone"),
      },
      undefined,
      t0,
    );
    expect(ready(conditions)).toMatchObject({ status: "False", reason: "RevisionMissing", message: "gone" });
  });

  test("an informational condition has severity Info and does not count", () => {
    const conditions = buildConditions(
      "Revision",
      {
        ResourcesAvailable: conditionTrue(),
        ContainerHealthy: conditionTrue(),
        Active: conditionFalse("NoTraffic", "The target is not receiving traffic."),
      },
      undefined,
      t0,
    );
    expect(ready(conditions)).toEqual({ type: "Ready", status: "True", lastTransitionTime: "2026-01-02T03:04:05Z" });
    expect(conditions.find(c => c.type === "Active")).toMatchObject({ severity: "Info", reason: "NoTraffic" });
  });

  test("a time changes with the status alone, not with reason or message", () => {
    const first = buildConditions("Configuration", { Ready: conditionUnknown("Deploying", "") }, undefined, t0);
    const second = buildConditions("Configuration", { Ready: conditionUnknown("Other", "why") }, first, t0 + 60_000);
    expect(second).toEqual([
      { type: "Ready", status: "Unknown", reason: "Other", message: "why", lastTransitionTime: "2026-01-02T03:04:05Z" },
    ]);
    const third = buildConditions("Configuration", { Ready: conditionTrue() }, second, t0 + 60_000);
    expect(third).toEqual([{ type: "Ready", status: "True", lastTransitionTime: "2026-01-02T03:05:05Z" }]);
  });

  test("what was not observed this time keeps its state, and the same observation gives an equal list", () => {
    const first = buildConditions(
      "Route",
      { AllTrafficAssigned: conditionTrue(), CertificateProvisioned: conditionTrue("TLSNotEnabled", "off") },
      undefined,
      t0,
    );
    const second = buildConditions("Route", { IngressReady: conditionTrue() }, first, t0 + 1000);
    expect(ready(second)?.status).toBe("True");
    expect(second.find(c => c.type === "CertificateProvisioned")?.reason).toBe("TLSNotEnabled");
    expect(buildConditions("Route", { IngressReady: conditionTrue() }, second, t0 + 9000)).toEqual(second);
  });
});

test("False beats Unknown beats True for any mix of dependents", () => {
  const observation = fc.constantFrom<Observation>(
    conditionTrue(),
    conditionUnknown("U", "u"),
    conditionFalse("F", "f"),
  );
  fc.assert(
    fc.property(fc.array(observation, { minLength: 1, maxLength: 5 }), dependents => {
      const statuses = dependents.map(d => d.status);
      const expected = statuses.includes("False") ? "False" : statuses.includes("Unknown") ? "Unknown" : "True";
      const result = rollUp(dependents);
      return result.status === expected && (expected === "True" || result.reason === expected[0]);
    }),
    { seed: 7, numRuns: 200 },
  );
});

test("a status that describes an older generation is neither ready nor failed", () => {
  const object = (status: "True" | "False", observedGeneration: number) => ({
    metadata: { generation: 2 },
    status: { observedGeneration, conditions: [{ type: "Ready", status }] },
  });
  expect(isReady(object("True", 2))).toBe(true);
  expect(isReady(object("True", 1))).toBe(false);
  expect(isFailed(object("False", 2))).toBe(true);
  expect(isFailed(object("False", 1))).toBe(false);
  expect(findCondition({}, "Ready")).toBeUndefined();
});
