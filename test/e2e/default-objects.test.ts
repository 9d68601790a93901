import { describe, expect, it } from "vitest";
import type { AnyObject, Ref } from "../../hack/kit/kube.ts";
import { waitFor } from "../../hack/kit/wait.ts";
import { kube } from "./support.ts";

const FLOW_CONTROL = "flowcontrol.fairway.dev/v1";
const AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec";
const level = (name: string): Ref => ({ apiVersion: FLOW_CONTROL, kind: "PriorityLevelConfiguration", name });

const shares = (object: AnyObject | undefined): unknown =>
  (object?.spec?.["limited"] as Record<string, unknown> | undefined)?.["nominalConcurrencyShares"];

describe("mandatory and suggested flow-control objects", () => {
  it("are there, and no schema of theirs dangles", async () => {
    const schemas = await waitFor("the suggested schemas", async () => {
      const found = await kube().list(FLOW_CONTROL, "FlowSchema");
      return found.some(schema => schema.metadata?.name === "global-default") ? found : undefined;
    });
    expect(schemas.map(schema => schema.metadata?.name)).toEqual(
      expect.arrayContaining(["exempt", "catch-all", "probes", "service-accounts", "global-default"]),
    );
    for (const name of ["exempt", "catch-all", "workload-high", "workload-low", "global-default"]) {
      expect((await kube().get(level(name)))?.metadata?.annotations?.[AUTOUPDATE]).toBe("true");
    }
  });

  it("come back when they are deleted", async () => {
    const before = await kube().get(level("workload-low"));
    await kube().delete(level("workload-low"));
    await waitFor(
      "the level to come back",
      async () => {
        const now = await kube().get(level("workload-low"));
        return now !== undefined && now.metadata?.uid !== before?.metadata?.uid;
      },
      { timeoutMs: 90_000 },
    );
  });

  it("are left to a user who takes them over, and taken back when he gives them back (K8#107097)", async () => {
    const spec = { limited: { nominalConcurrencyShares: 7 } };
    await kube().mergePatch(level("workload-high"), { metadata: { annotations: { [AUTOUPDATE]: "false" } }, spec });
    // A pass that undid the edit would have been woken by it, as it is by this deletion.
    const before = await kube().get(level("leader-election"));
    await kube().delete(level("leader-election"));
    await waitFor(
      "a pass",
      async () => {
        const now = await kube().get(level("leader-election"));
        return now !== undefined && now.metadata?.uid !== before?.metadata?.uid;
      },
      { timeoutMs: 90_000 },
    );
    expect(shares(await kube().get(level("workload-high")))).toBe(7);
    await kube().mergePatch(level("workload-high"), { metadata: { annotations: { [AUTOUPDATE]: "true" } } });
    await waitFor("the suggested spec", async () => shares(await kube().get(level("workload-high"))) === 40, {
      timeoutMs: 90_000,
    });
  });

  it("cannot be given another spec where they are mandatory", async () => {
    const edit = { spec: { limited: { nominalConcurrencyShares: 77 } } };
    await expect(kube().mergePatch(level("catch-all"), edit)).rejects.toThrow("catch-all");
  });
});
