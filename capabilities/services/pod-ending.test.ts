import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { FakeClock } from "../../core/testing/fake-clock.ts";
import type { Pod } from "./kinds.ts";
import { PodEndingReconciler, tellPodEnds, type TellPodEnds } from "./pod-ending.ts";
import { FakeCluster } from "./testing/fake-cluster.ts";

const KEY = { namespace: "default", name: "hello-00001-deployment-x" };
const DELETED_MS = Date.parse("2026-01-01T00:00:00Z");
const GRACE_SECONDS = 305;
const running = [{ name: "queue-proxy", state: { running: { startedAt: "2025-12-31T23:59:59Z" } } }];
const terminating = {
  deletionTimestamp: new Date(DELETED_MS + GRACE_SECONDS * 1000).toISOString(),
  deletionGracePeriodSeconds: GRACE_SECONDS,
};

interface Given {
  readonly metadata?: Pod["metadata"];
  readonly status?: Pod["status"];
  readonly tell?: TellPodEnds;
}

/** Reconciles the pod so long after its deletion. */
async function after(elapsedMs: number, { metadata = terminating, status, tell }: Given = {}) {
  const clock = new FakeClock(DELETED_MS + elapsedMs);

  const cluster = new FakeCluster(() => clock.nowMs());
  cluster.put<Pod>({ apiVersion: "v1", kind: "Pod", metadata: { ...KEY, ...metadata } });
  cluster.setStatus(
    { apiVersion: "v1", kind: "Pod", ...KEY },
    status ?? { podIP: "10.0.0.9", initContainerStatuses: running },
  );
  const told: string[] = [];
  const shortened: (number | undefined)[] = [];
  const reconciler = new PodEndingReconciler({
    pods: cluster.lister<Pod>("v1", "Pod"),
    writer: { delete: async ({ gracePeriodSeconds }) => void shortened.push(gracePeriodSeconds) },
    clock,
    tell: tell ?? (async ip => void told.push(ip)),
  });
  return { result: await reconciler.reconcile(KEY, new AbortController().signal), told, shortened };
}

const STARTED = "2025-12-31T23:59:50Z";
const withReady = (status: "True" | "False", lastTransitionTime: string): Given => ({
  status: { startTime: STARTED, conditions: [{ type: "Ready", status, lastTransitionTime }] },
});

describe("a pod that ends", () => {
  it("is left to its kubelet for 5 s, and then told", async () => {
    expect(await after(0)).toMatchObject({ result: { requeueAfterMs: 5000 }, told: [] });
    expect(await after(4999)).toMatchObject({ result: { requeueAfterMs: 1 }, told: [] });
    expect(await after(5000)).toMatchObject({ result: {}, told: ["10.0.0.9"] });
  });

  it("is told again by the queue when that failed", async () => {
    const tell = () => Promise.reject(new Error("connection refused"));
    await expect(after(5000, { tell })).rejects.toThrow("connection refused");
  });

  it.each<[string, Given]>([
    ["was not deleted", { metadata: {} }],
    ["has no queue-proxy yet", { status: { podIP: "10.0.0.9", initContainerStatuses: [] } }],
    [
      "has a queue-proxy that ended",
      {
        status: {
          podIP: "10.0.0.9",
          initContainerStatuses: [{ name: "queue-proxy", state: { terminated: { exitCode: 0 } } }],
        },
      },
    ],
    ["has no address", { status: { initContainerStatuses: running } }],
  ])("is not told: it %s", async (_, given) => {
    expect(await after(60_000, given)).toMatchObject({ result: {}, told: [] });
  });

  it("is not told any more when its time is over", async () => {
    expect((await after(GRACE_SECONDS * 1000)).told).toEqual(["10.0.0.9"]);
    expect(await after(GRACE_SECONDS * 1000 + 1)).toMatchObject({ result: {}, told: [] });
  });

  it("has 30 s at most when it never was ready", async () => {
    expect((await after(0)).shortened).toEqual([30]);
    expect((await after(0, withReady("False", "2025-12-31T23:59:51Z"))).shortened).toEqual([30]);
    expect((await after(0, { metadata: { ...terminating, deletionGracePeriodSeconds: 30 } })).shortened).toEqual([]);
  });

  it("keeps its grace period when it may have requests", async () => {
    expect((await after(0, withReady("True", "2025-12-31T23:59:55Z"))).shortened).toEqual([]);
    expect((await after(0, withReady("False", "2025-12-31T23:59:58Z"))).shortened).toEqual([]);
  });
});

describe("telling", () => {
  it("throws what was answered when that is no success", async () => {
    const server = createServer((req, res) => res.writeHead(req.url === "/terminate" ? 503 : 200).end());
    await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = server.address() as AddressInfo;
      await expect(tellPodEnds("127.0.0.1", AbortSignal.timeout(5000), port)).rejects.toThrow(
        "the queue-proxy at 127.0.0.1 answered 503 to /terminate, expected 200",
      );
    } finally {
      server.close();
    }
  });
});
