import { describe, expect, it, onTestFinished } from "vitest";
import { SYSTEM_NAMESPACE } from "../../hack/kit/install.ts";
import { waitFor } from "../../hack/kit/wait.ts";
import { eventsOf, scalingPage, waitForDecision } from "./scaling-support.ts";
import {
  applyReady,
  freshNames,
  kube,
  latestReadyRevision,
  ownNamespace,
  service,
  serviceRef,
  waitForReplicas,
} from "./support.ts";

const namespace = ownNamespace("configuration");
const fresh = freshNames();

describe("config-autoscaler", () => {
  const config = { apiVersion: "v1", kind: "ConfigMap", name: "config-autoscaler", namespace: SYSTEM_NAMESPACE };
  const webhooks = {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    name: "fairway",
  };
  const setStableWindow = (value: string | null) => kube().mergePatch(config, { data: { "stable-window": value } });

  it("is refused when wrong, and where that is bypassed the last good one stays and an event says so", async () => {
    const configured = fresh("configured");
    await expect(setStableWindow("1s")).rejects.toThrow(/stable-window/);
    const revision = latestReadyRevision(
      await applyReady(service(namespace, configured, { annotations: { "autoscaling.knative.dev/min-scale": "1" } })),
    );
    onTestFinished(async () => {
      await setStableWindow(null);
    });
    await setStableWindow("20s");
    const windowMs = (page: Awaited<ReturnType<typeof scalingPage>>): unknown =>
      (page?.decision as { spec?: { policy?: { kpa?: { stableWindowMs?: number } } } } | undefined)?.spec?.policy?.kpa
        ?.stableWindowMs;
    await waitForDecision(namespace, revision, "a window of 20 s", page => windowMs(page) === 20_000);

    const registered = await kube().get(webhooks);
    if (registered === undefined) throw new Error("no ValidatingWebhookConfiguration fairway");
    const { name, labels, annotations } = registered.metadata ?? {};
    await kube().delete(webhooks);
    try {
      await waitFor("the wrong value to get past", async () => {
        await setStableWindow("1s");
        return true;
      });
      await waitFor("event InvalidConfiguration", async () =>
        (await eventsOf(SYSTEM_NAMESPACE, "config-autoscaler", "InvalidConfiguration")).some(message =>
          message.includes("stable-window"),
        ),
      );
      // Scaling goes on, by the last good configuration.
      await kube().mergePatch(serviceRef(namespace, configured), {
        metadata: { annotations: { "autoscaling.fairway.dev/min-scale": "2" } },
      });
      await waitForReplicas(namespace, revision, count => count === 2);
      expect(windowMs(await scalingPage(namespace, revision))).toBe(20_000);
    } finally {
      await setStableWindow(null);
      await kube().create({
        ...registered,
        metadata: { name: name ?? "", labels: labels ?? {}, annotations: annotations ?? {} },
      });
    }
    await waitFor("wrong values to be refused again", async () => {
      try {
        await setStableWindow("1s");
      } catch (error) {
        return String(error).includes("stable-window");
      }
      await setStableWindow(null);
      return false;
    });
    await waitForDecision(namespace, revision, "the default window", page => windowMs(page) === 60_000);
  });
});
