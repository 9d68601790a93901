import { beforeAll, describe, expect, it } from "vitest";
import type { AnyObject } from "../../hack/kit/kube.ts";
import { load, send } from "../../hack/kit/load.ts";
import { waitFor } from "../../hack/kit/wait.ts";
import {
  applyReady,
  cluster,
  kube,
  latestReadyRevision,
  ownNamespace,
  replicas,
  request,
  service,
  serviceRef,
  target,
  waitForNoPods,
  waitForReplicas,
} from "./support.ts";

const namespace = ownNamespace("traffic");
const WINDOW = { "autoscaling.knative.dev/window": "6s" };
const AT_ZERO = { "autoscaling.knative.dev/initial-scale": "0" };

/** What a service of the namespace says, asked through another one's pod: by a name that only exists inside the cluster. */
async function fromInside(url: string, caller = "caller"): Promise<{ readonly status: number; readonly body: string }> {
  const { status, body } = await request(namespace, caller, { path: `/call?url=${encodeURIComponent(url)}` });
  return { status, body };
}

/** Two revisions, which share the requests 3 : 1. */
async function applySplit(name: string): Promise<AnyObject> {
  await applyReady(service(namespace, name, { env: { TARGET: "one" } }));
  const traffic = [
    { revisionName: `${name}-00001`, percent: 75, tag: "old" },
    { latestRevision: true, percent: 25, tag: "new" },
  ];
  return applyReady(service(namespace, name, { env: { TARGET: "two" }, spec: { traffic } }));
}

beforeAll(async () => {
  await applyReady(service(namespace, "caller", { annotations: { "autoscaling.knative.dev/min-scale": "1" } }));
});

describe("traffic of a service", () => {
  it("is divided by percent over its revisions, and tags lead to one each", async () => {
    const ready = await applySplit("split");
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
      const tagged = { ...cluster().gateway, host: `${tag}-split.${namespace}.example.com` };
      expect(await send(tagged)).toMatchObject({ status: 200, body });
      expect(await fromInside(`http://${tag}-split.${namespace}.svc.cluster.local/`)).toEqual({ status: 200, body });
    }
  });

  it("moves without a new revision and without a failed request", async () => {
    await applySplit("moved");
    const stop = new AbortController();
    const seen: string[] = [];
    const sending = load(target(namespace, "moved"), {
      concurrency: 2,
      perClient: 20_000,
      pauseMs: 10,
      until: stop.signal,
      onAnswer: ({ body }) => seen.push(body),
    });
    try {
      await kube().mergePatch(serviceRef(namespace, "moved"), {
        spec: { traffic: [{ revisionName: "moved-00001", percent: 100 }] },
      });
      await kube().waitForCondition(serviceRef(namespace, "moved"), "Ready", "True");
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
    const after = await kube().get(serviceRef(namespace, "moved"));
    expect(after?.status?.["latestCreatedRevisionName"]).toBe("moved-00002");
    const untagged = { ...cluster().gateway, host: `old-moved.${namespace}.example.com` };
    expect((await send(untagged)).status).toBe(404);
  });

  it("of a cluster-local service comes from inside only, and wakes it there", async () => {
    const object = service(namespace, "private", {
      metadata: { labels: { "networking.knative.dev/visibility": "cluster-local" } },
      annotations: AT_ZERO,
      env: { TARGET: "inside" },
    });
    const ready = await applyReady(object);
    const host = `private.${namespace}.svc.cluster.local`;
    expect(ready.status?.["url"]).toBe(`http://${host}`);
    for (const outside of [host, `private.${namespace}.example.com`, `private.${namespace}`]) {
      expect((await send({ ...cluster().gateway, host: outside })).status).toBe(404);
    }
    // What may not come in wakes nobody.
    expect(await replicas(namespace, latestReadyRevision(ready))).toBe(0);
    expect(await fromInside(`http://${host}/`)).toEqual({ status: 200, body: "Hello inside!\n" });
  });
});

describe("services call each other by name", () => {
  beforeAll(async () => {
    await applyReady(service(namespace, "called", { env: { TARGET: "you" } }));
  });

  it.each([".svc.cluster.local", ".svc", ""])("as NAME.NAMESPACE%s", async suffix => {
    expect(await fromInside(`http://called.${namespace}${suffix}/`)).toEqual({ status: 200, body: "Hello you!\n" });
  });

  it("also by the name of a revision", async () => {
    expect(await fromInside(`http://called-00001.${namespace}.svc.cluster.local/`)).toEqual({
      status: 200,
      body: "Hello you!\n",
    });
  });

  it("over HTTP/1.1, and the one that is called sees its own name", async () => {
    const { status, body } = await fromInside(`http://called.${namespace}.svc.cluster.local/headers`);
    const { host, protocol } = JSON.parse(body) as { readonly host: string; readonly protocol: string };
    expect([status, host, protocol]).toEqual([200, `called.${namespace}.svc.cluster.local`, "HTTP/1.1"]);
  });

  it("and wake each other, be it by the name of a service or of a revision", async () => {
    const names = ["front", "sleeper", "other"] as const;
    const revisions = await Promise.all(
      names.map(async name =>
        latestReadyRevision(
          await applyReady(service(namespace, name, { annotations: WINDOW, env: { TARGET: `from ${name}` } })),
        ),
      ),
    );
    await Promise.all(
      revisions.map(async revision => {
        await waitForReplicas(namespace, revision, count => count === 0);
        await waitForNoPods(namespace, `serving.knative.dev/revision=${revision}`);
      }),
    );
    expect(await fromInside(`http://sleeper.${namespace}.svc.cluster.local/`, "front")).toEqual({
      status: 200,
      body: "Hello from sleeper!\n",
    });
    expect(await replicas(namespace, "other-00001")).toBe(0);
    expect(await fromInside(`http://other-00001.${namespace}.svc.cluster.local/`, "front")).toEqual({
      status: 200,
      body: "Hello from other!\n",
    });
  });
});
