import { describe, expect, it } from "vitest";
import { conditions, type AnyObject } from "../../hack/kit/kube.ts";
import { waitFor } from "../../hack/kit/wait.ts";
import { History, isTrue, readyPods, replicasOf } from "./history.ts";
import {
  eventsOf,
  gatewayRevisions,
  startLoad,
  scalingPage,
  targetsByGateway,
  waitForDecision,
  type ScalingPage,
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

const namespace = ownNamespace("cloudrun");
const fresh = freshNames();

const CLASS = { "autoscaling.knative.dev/class": "cloudrun.autoscaling.fairway.dev" };
/** Fairway's annotations, by their names without the group. */
const ours = (settings: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(settings).map(([key, value]) => [`autoscaling.fairway.dev/${key}`, value]));
const maxScale = (count: number): Record<string, string> => ({ "autoscaling.knative.dev/max-scale": String(count) });
const AT_ZERO = { "autoscaling.knative.dev/initial-scale": "0" };

const annotate = (name: string, annotations: Readonly<Record<string, string | null>>): Promise<AnyObject> =>
  kube().mergePatch(serviceRef(namespace, name), { metadata: { annotations } });

const deploymentOf = (revision: string): Promise<AnyObject | undefined> =>
  kube().get({ apiVersion: "apps/v1", kind: "Deployment", namespace, name: `${revision}-deployment` });

const observed = (page: ScalingPage): { readonly load?: { readonly cpu1m?: number; readonly concurrency1m: number } } =>
  (page.decision.observation as { cloudRun?: object }).cloudRun ?? {};

describe("Cloud Run's policy", () => {
  it("starts an instance for each request that finds no place, from zero on", async () => {
    const name = fresh("demand");
    const object = service(namespace, name, {
      annotations: { ...CLASS, ...AT_ZERO, ...maxScale(3) },
      containerConcurrency: 1,
      env: { START_DELAY_MS: "3000" },
    });
    const revision = latestReadyRevision(await applyReady(object));
    expect(await replicas(namespace, revision)).toBe(0);
    const answers = [1, 2, 3].map(() => request(namespace, name, { path: "/?sleep=3000" }));
    const page = await waitForDecision(
      namespace,
      revision,
      "requests that wait",
      ({ decision }) => Number(decision.outcome.decision.explanation?.["waiting"] ?? 0) > 0,
    );
    expect(page.decision.outcome.step.mode).toBe("proxy");
    await waitForReplicas(namespace, revision, count => count === 3, 20_000);
    expect((await Promise.all(answers)).map(answer => answer.status)).toEqual([200, 200, 200]);
  });

  it("starts an instance at once for a request that finds all places of the running ones taken", async () => {
    const name = fresh("busy");
    const object = service(namespace, name, { annotations: { ...CLASS, ...maxScale(3) }, containerConcurrency: 1 });
    const revision = latestReadyRevision(await applyReady(object));
    const busy = request(namespace, name, { path: "/?sleep=10000" });
    await waitFor("the instance to be busy", async () =>
      (await gatewayRevisions(namespace, revision)).some(({ inFlight }) => inFlight > 0),
    );
    expect((await scalingPage(namespace, revision))?.lastChange).toBeUndefined();
    const second = request(namespace, name);
    const { lastChange } = await waitForDecision(
      namespace,
      revision,
      "a second instance",
      page => page.lastChange !== undefined,
    );
    expect(lastChange).toMatchObject({ from: 1, to: 2, winner: "on-demand" });
    // Not the next second's report nor the next tick led to it: the gateway told at once, and that decided.
    expect(lastChange?.pokedMs).toBeDefined();
    const tookMs = (lastChange?.atMs ?? 0) - (lastChange?.pokedMs ?? 0);
    console.log(`on demand beside a busy instance: decided ${tookMs} ms after the operator was told`);
    expect((await second).status).toBe(200);
    expect((await busy).status).toBe(200);
  });

  it("adds none while under 90 % of the capacity is in use; with scaling controls it goes by their target", async () => {
    const name = fresh("targets");
    const object = service(namespace, name, {
      annotations: { ...CLASS, ...maxScale(2) },
      containerConcurrency: 10,
    });
    const revision = latestReadyRevision(await applyReady(object));
    // Each has half of the places: nobody waits.
    const gateways = await targetsByGateway(namespace, name);
    const steady = gateways.map(gateway =>
      startLoad(gateway, { concurrency: 8 / gateways.length, path: "/?sleep=500" }),
    );
    try {
      const rule = "capacity-under-90-percent";
      await waitForDecision(namespace, revision, rule, page => page.explanation.winner === rule);
      expect(await replicas(namespace, revision)).toBe(1);
      await annotate(name, ours({ "concurrency-target-percentage": "50" }));
      await waitForReplicas(namespace, revision, count => count === 2);
    } finally {
      for (const { byStatus } of await Promise.all(steady.map(one => one.end()))) {
        expect(Object.keys(byStatus)).toEqual(["200"]);
      }
    }
    const after = await kube().get(serviceRef(namespace, name));
    expect(after?.status?.["latestCreatedRevisionName"]).toBe(revision);
  });

  it("answers 429 with Retry-After after max(10 s, 3.5 x the start) when all of the maximum is busy (case 43)", async () => {
    const name = fresh("full");
    const object = service(namespace, name, { annotations: { ...CLASS, ...maxScale(1) }, containerConcurrency: 1 });
    const revision = latestReadyRevision(await applyReady(object));
    // Before they hear of measured starts the gateways assume 10 s: max(10 s, 3.5 x 10 s).
    await waitFor("the gateways to know the wait", async () => {
      const known = await gatewayRevisions(namespace, revision);
      return known.length > 0 && known.every(({ maxWaitMs }) => maxWaitMs < 35_000);
    });
    const busy = request(namespace, name, { path: "/?sleep=40000" });
    await waitFor("the instance to be busy", async () =>
      (await gatewayRevisions(namespace, revision)).some(({ inFlight }) => inFlight > 0),
    );
    const waits = request(namespace, name);
    const page = await waitForDecision(
      namespace,
      revision,
      "a request that waits at the maximum",
      ({ decision }) => Number(decision.outcome.decision.explanation?.["waiting"] ?? 0) > 0,
    );
    const limitMs = page.decision.outcome.decision.pendingTimeoutMs ?? 0;
    const refused = await waits;
    console.log(`pending rule: ${Math.round(limitMs)} ms, refused after ${Math.round(refused.tookMs)} ms`);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    expect(limitMs).toBeGreaterThanOrEqual(10_000);
    expect(refused.tookMs).toBeGreaterThanOrEqual(limitMs - 500);
    expect(refused.tookMs).toBeLessThan(limitMs + 5_000);
    await waitFor("events of the bound", async () => {
      const told = await Promise.all(
        [name, revision].map(about => eventsOf(namespace, about, "MaxScaleReached").then(found => found.length)),
      );
      return told.every(count => count > 0);
    });
    expect((await busy).status).toBe(200);
  });

  it("demotes what is too much: the gateways hear of it, and the instances go one group after the other", async () => {
    const name = fresh("demotes");
    const object = service(namespace, name, {
      annotations: { ...CLASS, ...AT_ZERO, ...maxScale(3), ...ours({ "idle-timeout": "100s" }) },
      containerConcurrency: 1,
    });
    const revision = latestReadyRevision(await applyReady(object));
    await Promise.all([1, 2, 3].map(() => request(namespace, name, { path: "/?sleep=4000" })));
    await waitForReplicas(namespace, revision, count => count === 3, 20_000);
    // What requests started is not undone for a minute; requests one at a time keep the recommended one in use.
    const answeredBy: string[] = [];
    const trickle = startLoad(target(namespace, name), {
      concurrency: 1,
      path: "/?sleep=50",
      pauseMs: 200,
      onAnswer: ({ headers }) => answeredBy.push(String(headers["x-pod"])),
    });
    try {
      const demotedBy = ({ decision }: ScalingPage): string[] =>
        (decision.outcome.decision.demoted ?? []).map(({ name }) => name);
      await waitForDecision(namespace, revision, "demoted instances", page => demotedBy(page).length > 0, 120_000);
      const demoted = await waitFor("the gateways to know", async () => {
        const page = await scalingPage(namespace, revision);
        const known = await gatewayRevisions(namespace, revision);
        const names = page === undefined ? [] : demotedBy(page);
        const areTold = known.every(({ pods }) => pods.every(pod => pod.demoted === names.includes(pod.name)));
        return names.length > 0 && known.length > 0 && areTold && names;
      });
      // One request at a time finds the recommended one free; the first of these answers may have been under way.
      const answered = answeredBy.length;
      await waitFor("answers", () => answeredBy.length > answered + 10);
      expect(answeredBy.slice(answered + 1).filter(pod => demoted.includes(pod))).toEqual([]);
      await waitForReplicas(namespace, revision, count => count < 3, 120_000);
      await waitForReplicas(namespace, revision, count => count === 1, 150_000);
    } finally {
      const report = await trickle.end();
      expect(report.errors).toEqual([]);
      expect(Object.keys(report.byStatus)).toEqual(["200"]);
    }
  }, 420_000);

  it("keeps the last instance while a request is in progress, and none after the idle time-out", async () => {
    const name = fresh("billing");
    const object = service(namespace, name, {
      annotations: { ...CLASS, ...ours({ "cpu-always-allocated": "true", "idle-timeout": "8s" }) },
    });
    const revision = latestReadyRevision(await applyReady(object));
    const history = await History.begin(namespace, ["Deployment"]);
    const isAway = (objects: readonly AnyObject[]): boolean => replicasOf(revision)(objects) === 0;
    expect((await request(namespace, name, { path: "/?sleep=20000" })).status).toBe(200);
    expect(history.when("Deployment", isAway)).toBeUndefined();
    await history.first("Deployment", "no replicas", isAway);
    expect((await request(namespace, name)).status).toBe(200);
  });

  it("keeps the service's minimum, and a fixed number with manual scaling", async () => {
    const name = fresh("fixed");
    const history = await History.begin(namespace, ["Pod", "Service"]);
    const object = service(namespace, name, {
      annotations: CLASS,
      metadata: { annotations: { "run.googleapis.com/minScale": "2" } },
    });
    const revision = latestReadyRevision(await applyReady(object));
    // Before the first traffic, not some time after it.
    const bothReady = await history.first("Pod", "two ready pods", pods => readyPods(revision)(pods) === 2);
    expect(await history.first("Service", "the service to be ready", isTrue(name, "Ready"))).toBeGreaterThan(bothReady);
    await annotate(name, {
      "run.googleapis.com/scalingMode": "manual",
      "run.googleapis.com/manualInstanceCount": "3",
    });
    await waitForReplicas(namespace, revision, count => count === 3);
    await annotate(name, { "run.googleapis.com/manualInstanceCount": "1" });
    await waitForReplicas(namespace, revision, count => count === 1);
  });

  it("has the instances for the present load ready before traffic moves to a new revision", async () => {
    const name = fresh("moves");
    const version = (text: string) =>
      service(namespace, name, {
        annotations: { ...CLASS, ...maxScale(3) },
        containerConcurrency: 2,
        env: { TARGET: text, START_DELAY_MS: "1000" },
      });
    const old = latestReadyRevision(await applyReady(version("old")));
    let isAnsweredByNew = false;
    const sending = startLoad(target(namespace, name), {
      concurrency: 4,
      path: "/?sleep=400",
      onAnswer: ({ body }) => {
        isAnsweredByNew ||= body === "Hello new!\n";
      },
    });
    try {
      await waitForReplicas(namespace, old, count => count >= 2);
      await waitForDecision(namespace, old, "load", page => (observed(page).load?.concurrency1m ?? 0) > 2.5);
      const latest = `${name}-00002`;
      const history = await History.begin(namespace, ["Pod", "Route"]);
      await kube().apply([version("new")]);
      const moved = await history.first("Route", "traffic to move", routes =>
        routes.some(
          ({ metadata, status }) =>
            metadata?.name === name &&
            ((status?.["traffic"] ?? []) as readonly { revisionName?: string; percent?: number }[]).some(
              ({ revisionName, percent = 0 }) => revisionName === latest && percent > 0,
            ),
        ),
      );
      expect(await history.first("Pod", "two ready pods", pods => readyPods(latest)(pods) >= 2)).toBeLessThan(moved);
      await waitFor("the new revision to answer", () => isAnsweredByNew);
    } finally {
      const report = await sending.end();
      expect(report.errors).toEqual([]);
      expect(Object.keys(report.byStatus)).toEqual(["200"]);
    }
  });
});

describe("CPU", () => {
  const limited = { resources: { requests: { cpu: "5m", memory: "16Mi" }, limits: { cpu: "200m" } } };

  it("of pods that share their process namespace lowers their maximum concurrency", async () => {
    const name = fresh("adapts");
    const object = service(namespace, name, {
      annotations: { ...CLASS, ...maxScale(1), ...ours({ "share-process-namespace": "true" }) },
      containerConcurrency: 6,
      container: limited,
    });
    const revision = latestReadyRevision(await applyReady(object));
    const template = (await deploymentOf(revision))?.spec?.["template"] as { spec: Record<string, unknown> };
    expect(template.spec["shareProcessNamespace"]).toBe(true);
    const busy = startLoad(target(namespace, name), { concurrency: 6, path: "/?cpu=100" });
    try {
      const page = await waitForDecision(
        namespace,
        revision,
        "a lowered maximum",
        ({ adaptations = [] }) => adaptations.some(({ maximum }) => maximum < 6),
        90_000,
      );
      console.log(`adaptive concurrency: ${JSON.stringify(page.adaptations)}`);
      await waitFor("the gateways to know", async () => {
        const known = await gatewayRevisions(namespace, revision);
        const isLowered = ({ limit }: { readonly limit: number | "unlimited" }): boolean =>
          typeof limit === "number" && limit < 6;
        return known.length > 0 && known.every(({ pods }) => pods.length > 0 && pods.every(isLowered));
      });
    } finally {
      await busy.end();
    }
  });

  it("of other pods is what their node's kubelet counts", async () => {
    const name = fresh("counted");
    const object = service(namespace, name, { annotations: { ...CLASS, ...maxScale(1) }, container: limited });
    const revision = latestReadyRevision(await applyReady(object));
    const busy = startLoad(target(namespace, name), { concurrency: 2, path: "/?cpu=50" });
    try {
      const page = await waitForDecision(
        namespace,
        revision,
        "CPU use",
        seen => (observed(seen).load?.cpu1m ?? 0) > 0.02,
        120_000,
      );
      console.log(`CPU by the kubelet: ${observed(page).load?.cpu1m} of a limit of 0.2`);
      expect(observed(page).load?.cpu1m).toBeLessThan(0.4);
    } finally {
      await busy.end();
    }
  });

  it("is said not to count where no limit makes it comparable", async () => {
    const name = fresh("unlimited");
    const object = service(namespace, name, { annotations: { ...CLASS, ...maxScale(1) } });
    const revision = latestReadyRevision(await applyReady(object));
    await request(namespace, name);
    await waitFor("the status to say so", async () => {
      const seen = await kube().get({ ...serviceRef(namespace, revision), kind: "Revision" });
      return conditions(seen).some(({ type, reason }) => type === "Active" && reason === "CpuNotMeasured");
    });
    expect((await eventsOf(namespace, revision, "CpuNotMeasured")).join()).toContain("no CPU limit");
    await waitFor("the Service's event", async () => (await eventsOf(namespace, name, "CpuNotMeasured")).length > 0);
  });
});
