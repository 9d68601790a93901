import { beforeAll, describe, expect, inject, it } from "vitest";
import { load, send } from "../../hack/kit/load.ts";
import { waitFor } from "../../hack/kit/wait.ts";
import {
  applyReady,
  kube,
  latestReadyRevision,
  ownNamespace,
  request,
  service,
  serviceRef,
  target,
  waitForNoPods,
  waitForReplicas,
} from "./support.ts";

const namespace = ownNamespace("traffic");
const WINDOW = { "autoscaling.knative.dev/window": "6s" };

/** What a service of the namespace says, asked through another one's pod: by a name that only exists inside the cluster. */
async function fromInside(url: string): Promise<{ readonly status: number; readonly body: string }> {
  const { status, body } = await request(namespace, "caller", { path: `/call?url=${encodeURIComponent(url)}` });
  return { status, body };
}

beforeAll(async () => {
  await applyReady(service(namespace, "caller", { annotations: { "autoscaling.knative.dev/min-scale": "1" } }));
});

describe("traffic of a service", () => {
  it("is divided by percent over its revisions, and tags lead to one each", async () => {
    await applyReady(service(namespace, "split", { env: { TARGET: "one" } }));
    const traffic = [
      { revisionName: "split-00001", percent: 75, tag: "old" },
      { latestRevision: true, percent: 25, tag: "new" },
    ];
    const ready = await applyReady(service(namespace, "split", { env: { TARGET: "two" }, spec: { traffic } }));
    expect(ready.status?.["traffic"]).toEqual([
      {
        revisionName: "split-00001",
        latestRevision: false,
        percent: 75,
        tag: "old",
        url: `http://old-split.${namespace}.example.com`,
      },
      {
        revisionName: "split-00002",
        latestRevision: true,
        percent: 25,
        tag: "new",
        url: `http://new-split.${namespace}.example.com`,
      },
    ]);
    const answers: Record<string, number> = {};
    const report = await load(target(namespace, "split"), {
      concurrency: 4,
      perClient: 50,
      onAnswer: ({ body }) => (answers[body] = (answers[body] ?? 0) + 1),
    });
    expect([report.errors, report.byStatus]).toEqual([[], { "200": 200 }]);
    // Exact at each gateway; with two of them each may be in the middle of a round of four.
    expect(answers["Hello two!\n"]).toBeGreaterThanOrEqual(48);
    expect(answers["Hello two!\n"]).toBeLessThanOrEqual(52);
    for (const [tag, body] of [
      ["old", "Hello one!\n"],
      ["new", "Hello two!\n"],
    ] as const) {
      const tagged = { ...inject("gateway"), host: `${tag}-split.${namespace}.example.com` };
      expect(await send(tagged)).toMatchObject({ status: 200, body });
      expect(await fromInside(`http://${tag}-split.${namespace}.svc.cluster.local/`)).toEqual({ status: 200, body });
    }
  });

  it("moves without a new revision and without a failed request", async () => {
    const stop = new AbortController();
    const seen: string[] = [];
    const sending = load(target(namespace, "split"), {
      concurrency: 2,
      perClient: 20_000,
      pauseMs: 10,
      until: stop.signal,
      onAnswer: ({ body }) => seen.push(body),
    });
    try {
      await kube().mergePatch(serviceRef(namespace, "split"), {
        spec: { traffic: [{ revisionName: "split-00001", percent: 100 }] },
      });
      await kube().waitForCondition(serviceRef(namespace, "split"), "Ready", "True");
      // Ready means: at every gateway.
      const first = seen.length;
      await waitFor("more answers", () => seen.length > first + 100);
      // Those under way while it became Ready may still be the other revision's.
      expect(new Set(seen.slice(first + 10))).toEqual(new Set(["Hello one!\n"]));
    } finally {
      stop.abort();
    }
    const report = await sending;
    expect([report.errors, Object.keys(report.byStatus)]).toEqual([[], ["200"]]);
    const after = await kube().get(serviceRef(namespace, "split"));
    expect(after?.status?.["latestCreatedRevisionName"]).toBe("split-00002");
    const untagged = { ...inject("gateway"), host: `old-split.${namespace}.example.com` };
    expect((await send(untagged)).status).toBe(404);
  });

  it("of a cluster-local service comes from inside only", async () => {
    const metadata = { labels: { "networking.knative.dev/visibility": "cluster-local" } };
    const ready = await applyReady(service(namespace, "private", { metadata, env: { TARGET: "inside" } }));
    const host = `private.${namespace}.svc.cluster.local`;
    expect(ready.status?.["url"]).toBe(`http://${host}`);
    for (const outside of [host, `private.${namespace}.example.com`, `private.${namespace}`]) {
      expect((await send({ ...inject("gateway"), host: outside })).status).toBe(404);
    }
    expect(await fromInside(`http://${host}/`)).toEqual({ status: 200, body: "Hello inside!\n" });
  });
});

describe("services call each other by name", () => {
  it.each([".svc.cluster.local", ".svc", ""])("as NAME.NAMESPACE%s", async suffix => {
    if (suffix === ".svc.cluster.local") await applyReady(service(namespace, "called", { env: { TARGET: "you" } }));
    expect(await fromInside(`http://called.${namespace}${suffix}/`)).toEqual({ status: 200, body: "Hello you!\n" });
  });

  it("also by the name of a revision", async () => {
    expect(await fromInside(`http://called-00001.${namespace}.svc.cluster.local/`)).toEqual({
      status: 200,
      body: "Hello you!\n",
    });
  });

  it("and wake the one that is at zero", async () => {
    const object = service(namespace, "sleeper", { annotations: WINDOW, env: { TARGET: "again" } });
    const revision = latestReadyRevision(await applyReady(object));
    await waitForReplicas(namespace, revision, count => count === 0);
    await waitForNoPods(namespace, `serving.knative.dev/revision=${revision}`);
    expect(await fromInside(`http://sleeper.${namespace}.svc.cluster.local/`)).toEqual({
      status: 200,
      body: "Hello again!\n",
    });
    await waitForReplicas(namespace, revision, count => count === 0);
    await waitForNoPods(namespace, `serving.knative.dev/revision=${revision}`);
    expect(await fromInside(`http://${revision}.${namespace}.svc.cluster.local/`)).toEqual({
      status: 200,
      body: "Hello again!\n",
    });
  });
});
