import { describe, expect, it } from "vitest";
import { KubeError } from "../../hack/kit/kube.ts";
import { applyReady, kube, ownNamespace, service, serviceRef, SERVING } from "./support.ts";

const namespace = ownNamespace("admission");

/** The API server's answer to what should be refused. */
async function refusal(write: () => Promise<unknown>): Promise<string> {
  try {
    await write();
  } catch (error) {
    if (error instanceof KubeError) return error.message;
    throw error;
  }
  throw new Error("it was accepted");
}

describe("admission", () => {
  it.each([
    [
      "a negative concurrency",
      service(namespace, "bad", { containerConcurrency: -1 }),
      "expected 0 <= -1 <= 1000: spec.template.spec.containerConcurrency",
    ],
    [
      "a service account that is no name",
      service(namespace, "bad", {
        spec: { template: { spec: { serviceAccountName: "foo@bar.baz", containers: [{ image: "kind.local/any" }] } } },
      }),
      "invalid value: foo@bar.baz: spec.template.spec.serviceAccountName",
    ],
    [
      "a window that is too short",
      service(namespace, "bad", { annotations: { "autoscaling.knative.dev/window": "1s" } }),
      "spec.template.metadata.annotations",
    ],
    [
      "traffic that is not 100 %",
      service(namespace, "bad", { spec: { traffic: [{ latestRevision: true, percent: 90 }] } }),
      "Traffic targets sum to 90, want 100: spec.traffic",
    ],
    [
      "an invalid min-scale",
      service(namespace, "bad", { annotations: { "autoscaling.knative.dev/min-scale": "few" } }),
      "invalid value: few: spec.template.metadata.annotations.autoscaling.knative.dev/min-scale",
    ],
  ])("refuses %s and names the field", async (_what, object, expected) => {
    expect(await refusal(() => kube().apply([object]))).toContain(expected);
    expect(await kube().get(serviceRef(namespace, "bad"))).toBeUndefined();
  });

  it("refuses an unknown field of the pod", async () => {
    const object = service(namespace, "bad", { container: { lifecyle: {} } });
    expect(await refusal(() => kube().create(object))).toMatch(/lifecyle/);
  });

  it("refuses a change of the image without a change of the revision's own name", async () => {
    const named = (image: string) =>
      service(namespace, "byo", {
        spec: { template: { metadata: { name: "byo-one" }, spec: { containers: [{ image }] } } },
      });
    await kube().apply([named("kind.local/one")]);
    expect(await refusal(() => kube().apply([named("kind.local/two")]))).toContain(
      "Saw the following changes without a name change (-old +new): spec.template.metadata.name",
    );
  });

  it("refuses any change of a Revision's spec", async () => {
    await applyReady(service(namespace, "fixed"));
    const ref = { apiVersion: SERVING, kind: "Revision", namespace, name: "fixed-00001" };
    expect(await refusal(() => kube().mergePatch(ref, { spec: { timeoutSeconds: 7 } }))).toContain(
      "Immutable fields changed (-old +new): spec",
    );
  });

  it("keeps the creator when a client writes without annotations (kserve#344)", async () => {
    await kube().apply([service(namespace, "owned")]);
    const before = await kube().get(serviceRef(namespace, "owned"));
    expect(before?.metadata?.annotations?.["serving.knative.dev/creator"]).toBeTruthy();
    await kube().mergePatch(serviceRef(namespace, "owned"), {
      metadata: { annotations: { "serving.knative.dev/creator": null, "serving.knative.dev/lastModifier": null } },
    });
    const after = await kube().get(serviceRef(namespace, "owned"));
    expect(after?.metadata?.annotations?.["serving.knative.dev/creator"]).toBe(
      before?.metadata?.annotations?.["serving.knative.dev/creator"],
    );
  });

  it("refuses a wrong value in config-autoscaler and names key, bound and value", async () => {
    const configMap = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "config-autoscaler", namespace: "fairway-system" },
      data: { "panic-threshold-percentage": "50" },
    };
    const message = await refusal(() => kube().apply([configMap], { dryRun: true }));
    expect(message).toContain("panic-threshold-percentage");
    expect(message).toContain("50");
  });
});
