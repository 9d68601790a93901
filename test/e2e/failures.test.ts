import { describe, expect, it } from "vitest";
import { conditions, type AnyObject } from "../../hack/kit/kube.ts";
import { waitFor } from "../../hack/kit/wait.ts";
import { History } from "./history.ts";
import {
  applyReady,
  kube,
  latestReadyRevision,
  ownNamespace,
  replicas,
  request,
  service,
  serviceRef,
  SERVING,
  waitForNoPods,
  waitForReplicas,
} from "./support.ts";

const namespace = ownNamespace("failures");
const WINDOW = { "autoscaling.knative.dev/window": "6s" };

describe("when things fail", () => {
  it("shows an image that cannot be pulled in the Service's conditions", async () => {
    await kube().apply([service(namespace, "noimage", { image: "registry.invalid/nobody/nothing:1" })]);
    for (const type of ["Ready", "ConfigurationsReady", "RoutesReady"]) {
      const failed = await kube().waitForCondition(serviceRef(namespace, "noimage"), type, "False");
      const condition = conditions(failed).find(c => c.type === type);
      expect([condition?.status, condition?.reason !== "", condition?.message !== ""]).toEqual(["False", true, true]);
    }
    const revision = await kube().get({ apiVersion: SERVING, kind: "Revision", namespace, name: "noimage-00001" });
    const ready = conditions(revision).find(c => c.type === "Ready");
    expect(ready?.reason).toMatch(/^(ImagePullBackOff|ErrImagePull)$/);
  });

  it("tells a waiting request why its service cannot start (KS#13211)", async () => {
    // Ready once, then at zero; from then on its image is not to be had.
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "needed", namespace },
      stringData: { key: "value" },
    };
    await kube().apply([secret]);
    const object = service(namespace, "breaks", {
      annotations: WINDOW,
      container: { envFrom: [{ secretRef: { name: "needed" } }] },
    });
    const revision = latestReadyRevision(await applyReady(object));
    await waitForReplicas(namespace, revision, count => count === 0);
    await waitForNoPods(namespace, `serving.knative.dev/revision=${revision}`);
    await kube().delete({ apiVersion: "v1", kind: "Secret", name: "needed", namespace });

    const answer = await request(namespace, "breaks", { timeoutMs: 120_000 });
    expect(answer.status).toBe(503);
    expect(answer.headers["retry-after"]).toMatch(/^\d+$/);
    expect(answer.body).toMatch(/needed|CreateContainerConfigError/);
    // It heals by itself: nothing is failed for ever.
    await kube().apply([secret]);
    await waitFor("an answer", async () => (await request(namespace, "breaks")).status === 200, { timeoutMs: 90_000 });
  });

  it("answers a request at zero with why the image cannot be had, and soon (KS#13211)", async () => {
    const annotations = { ...WINDOW, "autoscaling.knative.dev/initial-scale": "0" };
    const image = "registry.invalid/nobody/nothing:1";
    await applyReady(service(namespace, "absent", { annotations, image }));
    const answer = await request(namespace, "absent", { timeoutMs: 120_000 });
    expect(answer.status).toBe(503);
    expect(answer.headers["retry-after"]).toMatch(/^\d+$/);
    expect(answer.body).toContain(image);
    // Who comes later need not wait for as long to hear the same.
    const again = await request(namespace, "absent", { timeoutMs: 120_000 });
    expect([again.status, again.body.includes(image)]).toEqual([503, true]);
    await kube().waitForCondition(serviceRef(namespace, "absent"), "Ready", "False");
  });

  it("recovers by itself when what a first start lacks comes later (KS#12330)", async () => {
    const object = service(namespace, "late", { container: { envFrom: [{ secretRef: { name: "late" } }] } });
    await kube().apply([object]);
    await kube().waitForCondition(serviceRef(namespace, "late"), "Ready", "False");
    await kube().apply([
      { apiVersion: "v1", kind: "Secret", metadata: { name: "late", namespace }, stringData: { key: "value" } },
    ]);
    await kube().waitForCondition(serviceRef(namespace, "late"), "Ready", "True", 120_000);
    expect((await request(namespace, "late")).status).toBe(200);
  });

  it("shows the exit code of a container that crashes", async () => {
    await kube().apply([service(namespace, "crashes", { env: { EXIT_AFTER_MS: "0", EXIT_CODE: "5" } })]);
    await kube().waitForCondition(serviceRef(namespace, "crashes"), "Ready", "False");
    const ref = { apiVersion: SERVING, kind: "Revision", namespace, name: "crashes-00001" };
    const revision = await kube().waitForCondition(ref, "ContainerHealthy", "False");
    const healthy = conditions(revision).find(c => c.type === "ContainerHealthy");
    expect([healthy?.status, healthy?.reason]).toEqual(["False", "ExitCode5"]);
    expect(healthy?.message).toContain("Container failed with: ");
  });

  it("lets the pods of a crashing revision go at once when its Service is deleted", async () => {
    await kube().apply([service(namespace, "leaves", { env: { EXIT_AFTER_MS: "0" } })]);
    await kube().waitForCondition(serviceRef(namespace, "leaves"), "Ready", "False");
    await kube().delete(serviceRef(namespace, "leaves"));
    await waitForNoPods(namespace, "serving.knative.dev/service=leaves");
  });

  it("gives a pod that never was ready less time to end than one with requests", async () => {
    const history = await History.begin(namespace, ["Pod"]);
    const of = (pods: readonly AnyObject[]): readonly AnyObject[] =>
      pods.filter(({ metadata }) => metadata?.labels?.["serving.knative.dev/service"] === "begins");
    const graceSeconds = ({ metadata }: AnyObject): unknown =>
      (metadata as Readonly<Record<string, unknown>>)["deletionGracePeriodSeconds"];
    await kube().apply([service(namespace, "begins", { env: { START_DELAY_MS: "120000" } })]);
    await history.first("Pod", "a pod", pods => of(pods).some(({ status }) => status?.["podIP"] !== undefined));
    await kube().delete(serviceRef(namespace, "begins"));
    await history.first("Pod", "30 s to end", pods => of(pods).some(pod => graceSeconds(pod) === 30));
    await waitForNoPods(namespace, "serving.knative.dev/service=begins");
  });

  it("takes a crashing revision with min-scale 1 to zero once a good one replaced it (KS#5529)", async () => {
    const minScale = { "autoscaling.knative.dev/min-scale": "1" };
    await kube().apply([service(namespace, "recovers", { annotations: minScale, env: { EXIT_AFTER_MS: "0" } })]);
    await kube().waitForCondition(serviceRef(namespace, "recovers"), "Ready", "False");
    await applyReady(service(namespace, "recovers", { annotations: { ...minScale, ...WINDOW } }));
    expect((await request(namespace, "recovers")).status).toBe(200);
    await waitForReplicas(namespace, "recovers-00001", count => count === 0);
    expect(await replicas(namespace, "recovers-00002")).toBe(1);
  });
});
