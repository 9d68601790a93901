import { describe, expect, inject, it } from "vitest";
import { componentStates, signalComponent } from "../../hack/cluster/components.ts";
import { load } from "../../hack/kit/load.ts";
import { waitFor } from "../../hack/kit/wait.ts";
import {
  applyReady,
  kube,
  latestReadyRevision,
  ownNamespace,
  replicas,
  service,
  target,
  waitForReplicas,
} from "./support.ts";

const namespace = ownNamespace("api-server");
const COMPONENT = "kube-apiserver";

async function podNames(): Promise<string[]> {
  const pods = await kube().list("v1", "Pod", namespace);
  return pods.map(pod => pod.metadata?.name ?? "").sort();
}

describe("an API server that goes away under load", () => {
  it.each([
    ["killed", "SIGKILL"],
    ["restarted", "SIGTERM"],
  ] as const)("and is %s: no request is lost, no pod comes or goes", async (name, signal) => {
    const annotations = {
      "autoscaling.knative.dev/window": "30s",
      "autoscaling.knative.dev/target": "1",
      "autoscaling.knative.dev/max-scale": "3",
    };
    const revision = latestReadyRevision(await applyReady(service(namespace, name, { annotations })));
    const stop = new AbortController();
    const sending = load(target(namespace, name), {
      concurrency: 3,
      perClient: 100_000,
      path: "/?sleep=100",
      until: stop.signal,
    });
    const seen = new Set<number | undefined>();
    try {
      await waitForReplicas(namespace, revision, count => count === 3);
      await waitFor("all pods to be ready", async () => {
        const deployment = { apiVersion: "apps/v1", kind: "Deployment", namespace, name: `${revision}-deployment` };
        return (await kube().get(deployment))?.status?.["readyReplicas"] === 3;
      });
      const pods = await podNames();
      const before = (await componentStates(inject("clusterName")))[COMPONENT]?.restarts ?? 0;
      await signalComponent(inject("clusterName"), COMPONENT, signal);
      await waitFor(
        "the API server to be another process",
        async () => ((await componentStates(inject("clusterName")))[COMPONENT]?.restarts ?? 0) > before,
        { timeoutMs: 120_000 },
      );
      // Its kinds and webhooks come back one by one.
      const after = service(namespace, `${name}-after`);
      await waitFor("the API server to take a Service", () => kube().apply([after]), { timeoutMs: 180_000 });
      await applyReady(after, 180_000);
      for (let i = 0; i < 100; i++) seen.add(await replicas(namespace, revision));
      expect(seen).toEqual(new Set([3]));
      const others = (await podNames()).filter(pod => !pod.startsWith(`${name}-after`));
      expect(others.filter(pod => pod.startsWith(revision))).toEqual(pods.filter(pod => pod.startsWith(revision)));
    } finally {
      stop.abort();
    }
    const report = await sending;
    expect(report.errors).toEqual([]);
    expect(Object.keys(report.byStatus)).toEqual(["200"]);
  });
});
