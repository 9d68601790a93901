import { describe, expect, it } from "vitest";
import { load, quantile } from "../../hack/kit/load.ts";
import { waitFor } from "../../hack/kit/wait.ts";
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
  target,
  waitForNoPods,
  waitForReplicas,
} from "./support.ts";

const namespace = ownNamespace("lifecycle");
const WINDOW = { "autoscaling.knative.dev/window": "6s" };

describe("a service's life", () => {
  it("is applied, becomes Ready, and answers at once", async () => {
    const ready = await applyReady(service(namespace, "hello", { env: { TARGET: "e2e" } }));
    // One request and no retry: Ready means routable everywhere.
    const answer = await request(namespace, "hello");
    expect([answer.status, answer.body]).toEqual([200, "Hello e2e!\n"]);
    expect(ready.status?.["url"]).toBe(`http://hello.${namespace}.example.com`);
    expect(ready.status?.["traffic"]).toEqual([{ latestRevision: true, percent: 100, revisionName: "hello-00001" }]);
  });

  it("changes nothing when the same YAML is applied again (KS#6717, Argo CD)", async () => {
    const object = service(namespace, "same", { env: { TARGET: "e2e" } });
    await applyReady(object);
    const versions = async () =>
      Promise.all([
        kube().get({ apiVersion: SERVING, kind: "Configuration", namespace, name: "same" }),
        kube().get({ apiVersion: SERVING, kind: "Route", namespace, name: "same" }),
        kube().get({ apiVersion: "v1", kind: "Service", namespace, name: "same" }),
        kube().get({ apiVersion: "apps/v1", kind: "Deployment", namespace, name: "same-00001-deployment" }),
      ]).then(children => children.map(child => child?.metadata?.generation ?? child?.metadata?.resourceVersion));
    const before = await kube().get(serviceRef(namespace, "same"));
    const childrenBefore = await versions();
    await kube().apply([object]);
    const after = await kube().get(serviceRef(namespace, "same"));
    expect(after?.spec).toEqual(before?.spec);
    expect(after?.metadata?.generation).toBe(before?.metadata?.generation);
    expect(after?.metadata?.annotations).toEqual(before?.metadata?.annotations);
    // A later change is seen after an earlier one, so when this one is through nothing more comes of the first.
    await applyReady(service(namespace, "later"));
    expect(await versions()).toEqual(childrenBefore);
  });

  it("goes from 0 to 1 to N and back to 0", async () => {
    const object = service(namespace, "elastic", {
      annotations: { ...WINDOW, "autoscaling.knative.dev/target": "2", "autoscaling.knative.dev/max-scale": "4" },
    });
    const revision = latestReadyRevision(await applyReady(object));
    await waitForReplicas(namespace, revision, count => count === 0);
    // Until then the pod that goes may still take a request.
    await waitForNoPods(namespace, `serving.knative.dev/revision=${revision}`);

    const first = await request(namespace, "elastic");
    expect(first.status).toBe(200);
    expect(await replicas(namespace, revision)).toBeGreaterThan(0);

    const stop = new AbortController();
    const sending = load(target(namespace, "elastic"), {
      concurrency: 8,
      perClient: 2000,
      path: "/?sleep=100",
      until: stop.signal,
    });
    try {
      await waitForReplicas(namespace, revision, count => count >= 3);
    } finally {
      stop.abort();
    }
    const report = await sending;
    expect(report.errors).toEqual([]);
    expect(Object.keys(report.byStatus)).toEqual(["200"]);
    expect(quantile(report.latenciesMs, 0)).toBeGreaterThan(99);

    await waitForReplicas(namespace, revision, count => count === 0);
  });

  it("leaves nothing behind when it is deleted", async () => {
    await applyReady(
      service(namespace, "gone", { spec: { traffic: [{ latestRevision: true, percent: 100, tag: "now" }] } }),
    );
    await kube().delete(serviceRef(namespace, "gone"));
    await waitFor(
      "all objects of the service to go",
      async () => {
        const left: string[] = [];
        for (const [apiVersion, kind] of [
          ["serving.knative.dev/v1", "Service"],
          ["serving.knative.dev/v1", "Configuration"],
          ["serving.knative.dev/v1", "Route"],
          ["serving.knative.dev/v1", "Revision"],
          ["apps/v1", "Deployment"],
          ["v1", "Service"],
          ["v1", "Pod"],
          ["discovery.k8s.io/v1", "EndpointSlice"],
        ] as const) {
          for (const object of await kube().list(apiVersion, kind, namespace)) {
            const name = object.metadata?.name ?? "";
            if (/^(now-)?gone(-|$)/.test(name)) left.push(`${kind} ${name}`);
          }
        }
        if (left.length > 0) throw new Error(left.join(", "));
        return true;
      },
      { timeoutMs: 90_000 },
    );
    // The gateways hear of it at about the same time.
    await waitFor("the gateways to forget it", async () => (await request(namespace, "gone")).status === 404);
  });
});
