import { describe, expect, it } from "vitest";
import { load } from "../../hack/kit/load.ts";
import { waitFor } from "../../hack/kit/wait.ts";
import { History, leadsTo, readyPods } from "./history.ts";
import { startLoad } from "./scaling-support.ts";
import {
  applyReady,
  kube,
  latestReadyRevision,
  ownNamespace,
  replicas,
  service,
  serviceRef,
  target,
  waitForReplicas,
} from "./support.ts";

const namespace = ownNamespace("rollout");

describe("a new revision", () => {
  it("takes over under load without a failed request", async () => {
    await applyReady(service(namespace, "update", { env: { TARGET: "one" } }));
    const stop = new AbortController();
    const seen = new Set<string>();
    const sending = load(target(namespace, "update"), {
      concurrency: 4,
      perClient: 20_000,
      pauseMs: 5,
      until: stop.signal,
      onAnswer: answer => seen.add(answer.body),
    });
    try {
      await applyReady(service(namespace, "update", { env: { TARGET: "two" } }));
      await waitFor("answers of the new revision", () => seen.has("Hello two!\n"));
    } finally {
      stop.abort();
    }
    const report = await sending;
    expect(report.errors).toEqual([]);
    expect(Object.keys(report.byStatus)).toEqual(["200"]);
    expect([...seen].sort()).toEqual(["Hello one!\n", "Hello two!\n"]);
  });

  it("gets no traffic before its initial scale is ready (KS#16649)", async () => {
    const initial = { "autoscaling.knative.dev/initial-scale": "3" };
    await applyReady(service(namespace, "slow", { env: { TARGET: "old" } }));
    const history = await History.begin(namespace, ["Pod", "Route"]);
    const answers = new Set<string>();
    const sending = startLoad(target(namespace, "slow"), {
      concurrency: 2,
      pauseMs: 20,
      onAnswer: ({ body }) => answers.add(body),
    });
    try {
      await kube().apply([
        service(namespace, "slow", { annotations: initial, env: { TARGET: "new", START_DELAY_MS: "3000" } }),
      ]);
      const revision = "slow-00002";
      const moved = await history.first("Route", "traffic to move", leadsTo("slow", revision));
      expect(await history.first("Pod", "three ready pods", pods => readyPods(revision)(pods) === 3)).toBeLessThan(
        moved,
      );
      await waitFor("the new revision to answer", () => answers.has("Hello new!\n"));
    } finally {
      const report = await sending.end();
      expect(report.errors).toEqual([]);
      expect(Object.keys(report.byStatus)).toEqual(["200"]);
    }
  });

  it("is not made when only bounds on the Service change (KS#6717)", async () => {
    const revision = latestReadyRevision(await applyReady(service(namespace, "bounds")));
    await kube().mergePatch(serviceRef(namespace, "bounds"), {
      metadata: { annotations: { "autoscaling.fairway.dev/min-scale": "2" } },
    });
    await waitForReplicas(namespace, revision, count => count === 2);
    const after = await kube().get(serviceRef(namespace, "bounds"));
    expect(after?.status?.["latestCreatedRevisionName"]).toBe(revision);
  });

  it("leaves none of the old one's pods when nothing leads to it any more (KS#14115)", async () => {
    const many = { "autoscaling.knative.dev/min-scale": "5", "autoscaling.knative.dev/window": "6s" };
    await applyReady(service(namespace, "shrinks", { annotations: many }), 120_000);
    expect(await replicas(namespace, "shrinks-00001")).toBe(5);
    await applyReady(service(namespace, "shrinks", { env: { TARGET: "next" } }));
    await waitForReplicas(namespace, "shrinks-00001", count => count === 0);
  });

  it("does not copy a GitOps tool's labels to its children (KS#2783)", async () => {
    const tracking = { "app.kubernetes.io/instance": "my-app", "argocd.argoproj.io/instance": "my-app", team: "blue" };
    await applyReady(service(namespace, "gitops", { metadata: { labels: tracking } }));
    for (const [apiVersion, kind] of [
      ["serving.knative.dev/v1", "Configuration"],
      ["serving.knative.dev/v1", "Route"],
      ["serving.knative.dev/v1", "Revision"],
      ["apps/v1", "Deployment"],
      ["v1", "Service"],
    ] as const) {
      const children = (await kube().list(apiVersion, kind, namespace)).filter(o =>
        o.metadata?.name?.startsWith("gitops"),
      );
      expect(children.length).toBeGreaterThan(0);
      for (const child of children) {
        expect(child.metadata?.labels).not.toHaveProperty(["app.kubernetes.io/instance"]);
        expect(child.metadata?.labels).not.toHaveProperty(["argocd.argoproj.io/instance"]);
      }
    }
  });
});
