import { describe, expect, it } from "vitest";
import { send } from "../../hack/kit/load.ts";
import { waitFor } from "../../hack/kit/wait.ts";
import { History, isTrue, livePods, readyPods, replicasOf } from "./history.ts";
import {
  eventsOf,
  gatewayAddresses,
  podAddresses,
  publicAddresses,
  scalingPage,
  startLoad,
  waitForDecision,
  watchUntil,
} from "./scaling-support.ts";
import {
  applyReady,
  freshNames,
  kube,
  latestReadyRevision,
  ownNamespace,
  replicas,
  request,
  service,
  serviceRef,
  target,
  waitForReplicas,
} from "./support.ts";

const namespace = ownNamespace("scaling");
const fresh = freshNames();

/** Knative's annotations, by their names without the group. */
const scaling = (settings: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(settings).map(([key, value]) => [`autoscaling.knative.dev/${key}`, value]));

describe("Knative's policy", () => {
  it("panics under a step, and takes no pod away before panic has ended", async () => {
    const name = fresh("step");
    const annotations = scaling({
      window: "12s",
      "panic-window-percentage": "25",
      target: "1",
      "min-scale": "1",
      "max-scale": "4",
    });
    const revision = latestReadyRevision(await applyReady(service(namespace, name, { annotations })));
    await waitForDecision(namespace, revision, "data", page => page.decision.outcome.decision.valid);
    const step = startLoad(target(namespace, name), { concurrency: 6, path: "/?sleep=250" });
    const began = Date.now();
    const inPanic = (page: Awaited<ReturnType<typeof scalingPage>>): boolean =>
      Number(page?.decision.outcome.decision.explanation?.["panicRatchet"] ?? 0) > 0;
    try {
      const page = await waitForDecision(namespace, revision, "panic", inPanic);
      expect(page.explanation.lines.map(line => line.rule)).toContain("panic-ratchet");
      await waitForReplicas(namespace, revision, count => count === 4);
    } finally {
      const report = await step.end();
      expect(report.errors).toEqual([]);
      expect(Object.keys(report.byStatus)).toEqual(["200"]);
    }
    const scaledAfterMs = Date.now() - began;
    console.log(`step: 4 pods wanted ${scaledAfterMs} ms after it began`);
    const stillPanicking = { at: 0 };
    const fell = await watchUntil(async () => {
      const page = await scalingPage(namespace, revision);
      const count = await replicas(namespace, revision);
      if (inPanic(page)) {
        stillPanicking.at = Date.now();
        expect(page?.decision.outcome.step.wanted).toBe(4);
      }
      return (count ?? 0) < 4;
    }, 90_000);
    expect(fell).toBe(true);
    expect(stillPanicking.at).toBeGreaterThan(0);
  });

  it("keeps the most it needed for the scale-down delay", async () => {
    const name = fresh("delay");
    const annotations = scaling({ window: "6s", "scale-down-delay": "25s", target: "1", "max-scale": "3" });
    const revision = latestReadyRevision(await applyReady(service(namespace, name, { annotations })));
    const step = startLoad(target(namespace, name), { concurrency: 4, path: "/?sleep=250" });
    await waitForReplicas(namespace, revision, count => count === 3);
    await step.end();
    const ended = Date.now();
    await waitForReplicas(namespace, revision, count => count < 3);
    const keptMs = Date.now() - ended;
    console.log(`scale-down delay of 25 s: kept ${keptMs} ms after the load ended`);
    // Three were needed until about the end of the load; a tick and the test's own looks come on top.
    expect(keptMs).toBeGreaterThan(20_000);
  });

  it("stays between minimum and maximum, and says so when the maximum stops it", async () => {
    const name = fresh("bounded");
    const annotations = scaling({ window: "6s", target: "1", "min-scale": "2", "max-scale": "3" });
    const history = await History.begin(namespace, ["Pod", "Deployment"]);
    const ready = await applyReady(service(namespace, name, { annotations }));
    const revision = latestReadyRevision(ready);
    expect(await replicas(namespace, revision)).toBe(2);
    const step = startLoad(target(namespace, name), { concurrency: 8, path: "/?sleep=250" });
    try {
      await waitForReplicas(namespace, revision, count => count === 3);
      await waitFor(
        "event MaxScaleReached",
        async () => (await eventsOf(namespace, revision, "MaxScaleReached")).length > 0,
      );
      await waitFor("the revision's status to say so", async () => {
        const object = await kube().get({ ...serviceRef(namespace, revision), kind: "Revision" });
        return JSON.stringify(object?.status).includes("MaxScaleReached");
      });
    } finally {
      await step.end();
    }
    expect((await eventsOf(namespace, revision, "MaxScaleReached")).join()).toMatch(/max scale is 3/);
    await waitForReplicas(namespace, revision, count => count === 2);
    await waitForDecision(namespace, revision, "min-scale", page => page.explanation.winner === "min-scale");
    expect(history.most("Deployment", objects => replicasOf(revision)(objects) ?? 0)).toBe(3);
    expect(history.most("Pod", objects => livePods(revision)(objects).length)).toBe(3);
  });

  it("never goes over its maximum, also while pods are replaced and a new revision takes over", async () => {
    const name = fresh("capped");
    const annotations = scaling({ window: "6s", target: "1", "min-scale": "1", "max-scale": "2" });
    const version = (text: string) => service(namespace, name, { annotations, env: { TARGET: text } });
    const history = await History.begin(namespace, ["Pod", "Deployment"]);
    const revisions = [`${name}-00001`, `${name}-00002`] as const;
    const [old, latest] = revisions;
    await applyReady(version("old"));
    const step = startLoad(target(namespace, name), { concurrency: 6, path: "/?sleep=250" });
    try {
      await history.until("two ready pods", () => history.now("Pod", readyPods(old)) === 2);
      const [pod] = history.now("Pod", livePods(old));
      const replaced = pod?.metadata?.name ?? "";
      await kube().delete({ apiVersion: "v1", kind: "Pod", namespace, name: replaced });
      await history.until("the pod to be replaced", () => {
        const live = history.now("Pod", livePods(old));
        return live.every(({ metadata }) => metadata?.name !== replaced) && history.now("Pod", readyPods(old)) === 2;
      });
      await applyReady(version("new"));
      await history.until("two ready pods of the new revision", () => history.now("Pod", readyPods(latest)) === 2);
      await waitForDecision(namespace, latest, "max-scale", page => page.explanation.winner === "max-scale");
    } finally {
      const report = await step.end();
      expect(report.errors).toEqual([]);
      expect(Object.keys(report.byStatus)).toEqual(["200"]);
    }
    await history.until("the old revision's pods to go", () => history.now("Pod", livePods(old)).length === 0);
    for (const revision of revisions) {
      expect(history.most("Deployment", objects => replicasOf(revision)(objects) ?? 0)).toBe(2);
      expect(history.most("Pod", objects => livePods(revision)(objects).length)).toBe(2);
    }
  });

  it("begins at an initial scale of 0 without a pod, and answers the first request", async () => {
    const name = fresh("none");
    const annotations = scaling({ window: "6s", "initial-scale": "0" });
    const history = await History.begin(namespace, ["Pod"]);
    const revision = latestReadyRevision(await applyReady(service(namespace, name, { annotations })));
    expect(await replicas(namespace, revision)).toBe(0);
    expect(await kube().list("v1", "Pod", namespace, `serving.knative.dev/revision=${revision}`)).toEqual([]);
    expect(history.most("Pod", objects => livePods(revision)(objects).length)).toBe(0);
    expect((await request(namespace, name)).status).toBe(200);
  });

  it("begins at an initial scale of 3, and is free of it once it was reached", async () => {
    const name = fresh("three");
    const revision = `${name}-00001`;
    const annotations = scaling({ window: "6s", "initial-scale": "3" });
    // All of it may last for moments only: the autoscaler is free to scale down as soon as three were ready.
    const history = await History.begin(namespace, ["Pod", "Deployment", "Revision", "Service"]);
    await kube().apply([service(namespace, name, { annotations })]);
    const reached = await history.first("Pod", "three ready pods", pods => readyPods(revision)(pods) === 3);
    const revisionReady = await history.first("Revision", "the revision to be ready", isTrue(revision, "Ready"));
    const serviceReady = await history.first("Service", "the service to be ready", isTrue(name, "Ready"));
    const lowered = await history.first(
      "Deployment",
      "fewer replicas",
      objects => (replicasOf(revision)(objects) ?? 3) < 3,
    );
    expect(revisionReady).toBeGreaterThan(reached);
    expect(serviceReady).toBeGreaterThan(revisionReady);
    expect(lowered).toBeGreaterThan(reached);
    expect(history.most("Deployment", objects => replicasOf(revision)(objects) ?? 0)).toBe(3);
    await history.first("Deployment", "no replicas", objects => replicasOf(revision)(objects) === 0);
  });

  it("scales on requests per second (also from zero after an idle time: HA#1692)", async () => {
    const name = fresh("rps");
    const annotations = scaling({ window: "6s", metric: "rps", target: "10", "max-scale": "3" });
    const revision = latestReadyRevision(await applyReady(service(namespace, name, { annotations })));
    await waitForReplicas(namespace, revision, count => count === 0);
    expect((await request(namespace, name)).status).toBe(200);
    // 4 clients, a request each 160 ms or so: about 25 a second, each over at once, so that concurrency asks for one pod.
    const step = startLoad(target(namespace, name), { concurrency: 4, pauseMs: 150 });
    try {
      await waitForReplicas(namespace, revision, count => count === 3);
    } finally {
      const report = await step.end();
      expect(report.errors).toEqual([]);
      expect(Object.keys(report.byStatus)).toEqual(["200"]);
    }
  });

  it("starts the activation scale's pods when a request wakes it", async () => {
    const name = fresh("wakes");
    const annotations = scaling({ window: "6s", "activation-scale": "3", target: "100" });
    const revision = latestReadyRevision(await applyReady(service(namespace, name, { annotations })));
    await waitForReplicas(namespace, revision, count => count === 0);
    const history = await History.begin(namespace, ["Deployment"]);
    const first = await request(namespace, name);
    expect(first.status).toBe(200);
    await history.first("Deployment", "three replicas", objects => replicasOf(revision)(objects) === 3);
  });
});

describe("the path of requests inside the cluster", () => {
  const clusterIp = async (revision: string): Promise<string> => {
    const object = await kube().get({ apiVersion: "v1", kind: "Service", namespace, name: revision });
    return String(object?.spec?.["clusterIP"]);
  };
  const leadsToPods = async (revision: string): Promise<boolean> =>
    JSON.stringify(await publicAddresses(namespace, revision)) ===
    JSON.stringify(await podAddresses(namespace, `serving.knative.dev/revision=${revision}`));

  it("follows excess burst capacity under load, and loses no request", async () => {
    const name = fresh("burst");
    const annotations = scaling({
      window: "6s",
      "min-scale": "1",
      "max-scale": "1",
      "target-burst-capacity": "3",
      "panic-window-percentage": "50",
    });
    const object = service(namespace, name, { annotations, containerConcurrency: 10 });
    const revision = latestReadyRevision(await applyReady(object));
    await waitFor("the pods to be reached directly", () => leadsToPods(revision));
    const inside = { address: await clusterIp(revision), port: 80, host: `${revision}.${namespace}.svc.cluster.local` };
    const through: { proxied: number; direct: number } = { proxied: 0, direct: 0 };
    const steady = startLoad(inside, { concurrency: 2, path: "/?sleep=20", pauseMs: 10 });
    try {
      for (let round = 0; round < 2; round++) {
        // 10 places, 3 to be kept free: from 8 in progress on the gateways take over.
        const surge = startLoad(target(namespace, name), { concurrency: 9, path: "/?sleep=500" });
        try {
          await waitForDecision(namespace, revision, "proxy", page => page.decision.outcome.step.mode === "proxy");
          await waitFor("the gateways to be in the path", async () => !(await leadsToPods(revision)));
          through.proxied++;
        } finally {
          const report = await surge.end();
          expect(report.errors).toEqual([]);
          expect(Object.keys(report.byStatus)).toEqual(["200"]);
        }
        await waitFor("the pods to be reached directly again", () => leadsToPods(revision));
        through.direct++;
      }
    } finally {
      const report = await steady.end();
      console.log(`changes of mode under load: ${report.sent} requests, ${JSON.stringify(report.byStatus)}`);
      expect(report.errors).toEqual([]);
      expect(Object.keys(report.byStatus)).toEqual(["200"]);
      expect(report.sent).toBeGreaterThan(100);
    }
    expect(through).toEqual({ proxied: 2, direct: 2 });
  });

  it("leads to the pods while there are any with a target burst capacity of 0, to the gateways with -1", async () => {
    const zero = scaling({ "min-scale": "1", "target-burst-capacity": "0" });
    const always = scaling({ "min-scale": "1", "target-burst-capacity": "-1" });
    const serve = latestReadyRevision(await applyReady(service(namespace, fresh("zero"), { annotations: zero })));
    const proxy = latestReadyRevision(await applyReady(service(namespace, fresh("always"), { annotations: always })));
    await waitFor("the pods to be reached directly", () => leadsToPods(serve));
    const page = await waitForDecision(namespace, proxy, "data", ({ decision }) => decision.outcome.decision.valid);
    expect(page.decision.outcome.step.mode).toBe("proxy");
    expect(await publicAddresses(namespace, proxy)).toEqual(await gatewayAddresses());
    for (const revision of [serve, proxy]) {
      const host = `${revision}.${namespace}.svc.cluster.local`;
      const answer = await send({ address: await clusterIp(revision), port: 80, host });
      expect([revision, answer.status]).toEqual([revision, 200]);
    }
  });
});

describe("a change on the Service itself", () => {
  it("of bounds, target or class makes no new revision (KS#6717, KS#14184)", async () => {
    const name = fresh("changes");
    const annotations = scaling({ window: "6s", "min-scale": "1" });
    const revision = latestReadyRevision(await applyReady(service(namespace, name, { annotations })));
    const set = (values: Readonly<Record<string, string | null>>) =>
      kube().mergePatch(serviceRef(namespace, name), {
        metadata: {
          annotations: Object.fromEntries(
            Object.entries(values).map(([key, value]) => [`autoscaling.fairway.dev/${key}`, value]),
          ),
        },
      });
    await set({ "max-scale": "2", target: "1" });
    const step = startLoad(target(namespace, name), { concurrency: 5, path: "/?sleep=250" });
    try {
      await waitForReplicas(namespace, revision, count => count === 2);
      await waitForDecision(namespace, revision, "max-scale", page => page.explanation.winner === "max-scale");
      await set({ "max-scale": "3" });
      await waitForReplicas(namespace, revision, count => count === 3);
    } finally {
      await step.end();
    }
    await set({ class: "manual.autoscaling.fairway.dev", "manual-instance-count": "2" });
    await waitForDecision(namespace, revision, "class manual", page => page.explanation.winner === "manual");
    await waitForReplicas(namespace, revision, count => count === 2);
    await set({ class: null, "manual-instance-count": null });
    await waitForReplicas(namespace, revision, count => count === 1);
    const after = await kube().get(serviceRef(namespace, name));
    expect(after?.status?.["latestCreatedRevisionName"]).toBe(revision);
  });
});
