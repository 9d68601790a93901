import { describe, expect, it } from "vitest";
import { componentStates, signalComponent } from "../../hack/cluster/components.ts";
import { SYSTEM_NAMESPACE, systemReady } from "../../hack/kit/install.ts";
import type { AnyObject } from "../../hack/kit/kube.ts";
import { load } from "../../hack/kit/load.ts";
import { waitFor } from "../../hack/kit/wait.ts";
import { waitForDecision } from "./scaling-support.ts";
import {
  applyReady,
  cluster,
  freshNames,
  kube,
  latestReadyRevision,
  ownCluster,
  ownNamespace,
  replicas,
  service,
  target,
  waitForReplicas,
} from "./support.ts";

// What is killed here other tests need.
ownCluster("faults");
const namespace = ownNamespace("faults");
const fresh = freshNames();
const API_SERVER = "kube-apiserver";
const DECISION_INTERVAL_MS = 2_000;
const WINDOW = { "autoscaling.knative.dev/window": "6s" };

/** Counts each write to the number of pods, and every other one, to a revision's Deployment. */
async function generationOf(revision: string): Promise<number | undefined> {
  const ref = { apiVersion: "apps/v1", kind: "Deployment", namespace, name: `${revision}-deployment` };
  return (await kube().get(ref))?.metadata?.generation;
}

/** Waits until the autoscaler has decided with numbers that it got after now. */
async function decidedAnew(revision: string): Promise<void> {
  const nowMs = Date.now();
  await waitForDecision(
    namespace,
    revision,
    "numbers from now on",
    ({ decision }) => decision.atMs > nowMs + DECISION_INTERVAL_MS && decision.outcome.decision.valid,
    120_000,
  );
}

/** The namespace's pods of a revision. */
async function podNames(revision: string): Promise<string[]> {
  const pods = await kube().list("v1", "Pod", namespace, `serving.knative.dev/revision=${revision}`);
  return pods.map(pod => pod.metadata?.name ?? "").sort();
}

async function podsOf(component: string): Promise<AnyObject[]> {
  return kube().list("v1", "Pod", SYSTEM_NAMESPACE, `app.kubernetes.io/component=${component}`);
}

async function kill(pod: AnyObject): Promise<void> {
  const name = pod.metadata?.name ?? "";
  await kube().delete({ apiVersion: "v1", kind: "Pod", name, namespace: SYSTEM_NAMESPACE }, 0);
}

async function leader(): Promise<string> {
  const lease = await kube().get({
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    name: "fairway-operator",
    namespace: SYSTEM_NAMESPACE,
  });
  const holder = lease?.spec?.["holderIdentity"];
  return typeof holder === "string" ? holder : "";
}

/** Kills all operators, and waits until others do their work: one leads, and the webhooks answer. */
async function killOperators(): Promise<void> {
  const before = await leader();
  await Promise.all((await podsOf("operator")).map(kill));
  await waitFor("a new leader", async () => {
    const now = await leader();
    return now !== "" && now !== before;
  });
  await systemReady(kube());
  // Whom a Service leads to changes on the node a little later.
  await waitFor("the webhooks to answer", () => kube().apply([service(namespace, "asked")], { dryRun: true }));
}

describe("operators and gateways that go away under load", () => {
  it("loses no request when every operator is killed under load, and takes up its work again", async () => {
    const annotations = { "autoscaling.knative.dev/min-scale": "1" };
    await applyReady(service(namespace, "steady", { annotations }));
    const stop = new AbortController();
    const sending = load(target(namespace, "steady"), {
      concurrency: 4,
      perClient: 20_000,
      pauseMs: 5,
      until: stop.signal,
    });
    try {
      await killOperators();
      await applyReady(service(namespace, "after", {}));
    } finally {
      stop.abort();
    }
    const report = await sending;
    expect(report.errors).toEqual([]);
    expect(Object.keys(report.byStatus)).toEqual(["200"]);
    expect(report.sent).toBeGreaterThan(100);
  });

  it("keeps the number of pods over a restart of the autoscaler (KS PR#4795, PR#3771)", async () => {
    const annotations = {
      "autoscaling.knative.dev/window": "30s",
      "autoscaling.knative.dev/target": "1",
      "autoscaling.knative.dev/max-scale": "4",
    };
    const revision = latestReadyRevision(await applyReady(service(namespace, "held", { annotations })));
    const stop = new AbortController();
    const sending = load(target(namespace, "held"), {
      concurrency: 4,
      perClient: 20_000,
      path: "/?sleep=200",
      until: stop.signal,
    });
    try {
      await waitForReplicas(namespace, revision, count => count === 4);
      const generation = await generationOf(revision);
      await killOperators();
      await decidedAnew(revision);
      expect([await replicas(namespace, revision), await generationOf(revision)]).toEqual([4, generation]);
    } finally {
      stop.abort();
    }
    const report = await sending;
    expect(report.errors).toEqual([]);
  });

  it("leaves a minimum as it is over a restart of the operator", async () => {
    const annotations = { ...WINDOW, "autoscaling.knative.dev/min-scale": "2" };
    const revision = latestReadyRevision(await applyReady(service(namespace, fresh("kept"), { annotations })));
    const generation = await generationOf(revision);
    await killOperators();
    await decidedAnew(revision);
    expect([await replicas(namespace, revision), await generationOf(revision)]).toEqual([2, generation]);
  });

  it("serves on through the other gateway when one is stopped", async () => {
    const annotations = { "autoscaling.knative.dev/min-scale": "1" };
    await applyReady(service(namespace, "both", { annotations }));
    const stop = new AbortController();
    const sending = load(target(namespace, "both"), {
      concurrency: 4,
      perClient: 20_000,
      pauseMs: 5,
      until: stop.signal,
    });
    try {
      const [first] = await podsOf("gateway");
      const name = first?.metadata?.name ?? "";
      await kube().delete({ apiVersion: "v1", kind: "Pod", name, namespace: SYSTEM_NAMESPACE });
      await waitFor(`gateway ${name} to be replaced`, async () => {
        const pods = await podsOf("gateway");
        return pods.length === 2 && pods.every(pod => pod.metadata?.name !== name);
      });
      await systemReady(kube());
    } finally {
      stop.abort();
    }
    const report = await sending;
    expect(report.errors).toEqual([]);
    expect(Object.keys(report.byStatus)).toEqual(["200"]);
  });

  it("serves on, and answers new requests, after a gateway is killed outright", async () => {
    await applyReady(service(namespace, "killed", { annotations: { "autoscaling.knative.dev/min-scale": "1" } }));
    const [first] = await podsOf("gateway");
    if (first === undefined) throw new Error("no gateway");
    await kill(first);
    // What the killed process had in its hands is gone with it; whoever asks again is served.
    await waitFor("answers only", async () => {
      const report = await load(target(namespace, "killed"), { concurrency: 4, perClient: 25 });
      return report.errors.length === 0 && report.byStatus["200"] === 100;
    });
    await systemReady(kube());
  });
});

describe("pods that go", () => {
  it("finish their requests: none is cut, none sent again, while the revision shrinks (KS#15211, KS#14370)", async () => {
    const annotations = {
      ...WINDOW,
      "autoscaling.knative.dev/target": "2",
      "autoscaling.knative.dev/max-scale": "4",
    };
    // An app that does not wait for its requests: that they end is the queue-proxy's doing.
    const revision = latestReadyRevision(
      await applyReady(service(namespace, "shrinks", { annotations, env: { EXIT_ON_TERM: "true" } })),
    );
    // Long requests bring it up, then fewer long ones are still under way while it goes down.
    const burst = load(target(namespace, "shrinks"), { concurrency: 8, perClient: 2, path: "/?sleep=5000" });
    await waitForReplicas(namespace, revision, count => count >= 3);
    const report = await burst;
    const long = load(target(namespace, "shrinks"), { concurrency: 2, perClient: 1, path: "/?sleep=20000" });
    await waitForReplicas(namespace, revision, count => count < 3);
    for (const { errors, byStatus } of [report, await long]) {
      expect(errors).toEqual([]);
      expect(Object.keys(byStatus)).toEqual(["200"]);
    }
  });

  it("new pods take over part of the queue (KS#13096)", async () => {
    await applyReady(
      service(namespace, "spread", {
        containerConcurrency: 2,
        annotations: { ...WINDOW, "autoscaling.knative.dev/max-scale": "4" },
      }),
    );
    const pods = new Map<string, number>();
    const report = await load(target(namespace, "spread"), {
      concurrency: 10,
      perClient: 1,
      path: "/?sleep=4000",
      onAnswer: answer => {
        const pod = String(answer.headers["x-pod"]);
        pods.set(pod, (pods.get(pod) ?? 0) + 1);
        expect(Number(answer.headers["x-max-in-flight"])).toBeLessThanOrEqual(2);
      },
    });
    expect(report.errors).toEqual([]);
    expect(report.byStatus).toEqual({ "200": 10 });
    expect(pods.size).toBeGreaterThan(1);
    expect(Math.max(...pods.values())).toBeLessThan(10);
  });
});

describe("an API server that goes away under load", () => {
  it.each([
    ["killed", "SIGKILL"],
    ["restarted", "SIGTERM"],
  ] as const)("and is %s: no request is lost, no pod comes or goes", async (what, signal) => {
    const name = `api-server-${what}`;
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
    try {
      await waitForReplicas(namespace, revision, count => count === 3);
      await waitFor("all pods to be ready", async () => {
        const deployment = { apiVersion: "apps/v1", kind: "Deployment", namespace, name: `${revision}-deployment` };
        return (await kube().get(deployment))?.status?.["readyReplicas"] === 3;
      });
      const [pods, generation] = [await podNames(revision), await generationOf(revision)];
      const before = (await componentStates(cluster().clusterName))[API_SERVER]?.restarts ?? 0;
      await signalComponent(cluster().clusterName, API_SERVER, signal);
      await waitFor(
        "the API server to be another process",
        async () => ((await componentStates(cluster().clusterName))[API_SERVER]?.restarts ?? 0) > before,
        { timeoutMs: 120_000 },
      );
      // Its kinds and webhooks come back one by one.
      const after = service(namespace, `${name}-after`);
      await waitFor("the API server to take a Service", () => kube().apply([after]), { timeoutMs: 180_000 });
      await applyReady(after, 180_000);
      await decidedAnew(revision);
      expect([await replicas(namespace, revision), await generationOf(revision)]).toEqual([3, generation]);
      expect(await podNames(revision)).toEqual(pods);
    } finally {
      stop.abort();
    }
    const report = await sending;
    expect(report.errors).toEqual([]);
    expect(Object.keys(report.byStatus)).toEqual(["200"]);
  });
});
