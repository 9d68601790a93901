import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { FakeClock, settle } from "../../core/testing/fake-clock.ts";
import { ownedBy } from "./capability.ts";
import { Controllers } from "./controllers.ts";
import { SharedInformers } from "./informers.ts";
import type { KubeApi } from "./kube-api.ts";
import { silentLogger } from "./logging.ts";
import { defineResource } from "./resource.ts";
import type { KubeObject, Reconciler } from "./types.ts";
import { createWorkQueueMetrics } from "./work-queue.ts";

const parents = defineResource<KubeObject>("example.dev/v1", "Parent", "parents");
const children = defineResource<KubeObject>("example.dev/v1", "Child", "children");

/** Two parents and a child, in caches that were filled by hand. */
async function setup() {
  const clock = new FakeClock();
  const ended = new AbortController();
  const metrics = new Registry();
  const objects: Record<string, unknown[]> = {
    parents: [{ metadata: { name: "p1", namespace: "a" } }, { metadata: { name: "p2", namespace: "a" } }],
    children: [
      {
        metadata: {
          name: "c",
          namespace: "a",
          ownerReferences: [
            { apiVersion: "example.dev/v1", kind: "Parent", name: "p1", uid: "u", controller: true },
            { apiVersion: "other.dev/v1", kind: "Parent", name: "not-this", uid: "v" },
          ],
        },
      },
    ],
  };
  const api: KubeApi = {
    call: async (_method, path) => ({
      metadata: { resourceVersion: "1" },
      items: objects[path.split("/").pop() ?? ""],
    }),
    async *watch(_path, _query, signal) {
      await new Promise(resolve => signal.addEventListener("abort", resolve, { once: true }));
    },
    discover: () => Promise.reject(new Error("not needed")),
    close: () => Promise.resolve(),
  };
  const informers = new SharedInformers({
    api,
    systemNamespace: "s",
    clock,
    random: () => 0,
    log: silentLogger,
    metrics,
  });
  const controllers = new Controllers({
    informers,
    clock,
    random: () => 0,
    log: silentLogger,
    metrics: createWorkQueueMetrics(metrics),
  });
  const runs: string[] = [];
  const reconciler: Reconciler = {
    name: "parents",
    reconcile: async ({ namespace, name }) => {
      runs.push(`${namespace ?? ""}/${name}`);
      return {};
    },
  };
  const controller = controllers.register({
    name: "parents",
    reconciler,
    watches: [ownedBy(children, parents)],
    initialKeys: [{ name: "always" }],
  });
  controllers.watch(parents, object => controller.hint(object));
  informers.start(ended.signal);
  await informers.whenSynced(ended.signal);
  return { controllers, controller, runs, ended, clock };
}

describe("controllers", () => {
  it("reconcile nothing before this replica leads, and everything when it begins to", async () => {
    const { controllers, controller, runs, ended } = await setup();
    await settle();
    controller.enqueue({ namespace: "a", name: "lost" });
    expect(runs).toEqual([]);
    const term = new AbortController();
    const led = controllers.lead(term.signal, () => 0);
    await settle();
    expect(runs.sort()).toEqual(["/always", "a/p1", "a/p2"]);
    term.abort();
    await led;
    ended.abort();
  });

  it("begin anew in each term", async () => {
    const { controllers, runs, ended } = await setup();
    for (let count = 0; count < 2; count++) {
      const term = new AbortController();
      const led = controllers.lead(term.signal, () => 0);
      await settle();
      term.abort();
      await led;
    }
    expect(runs.filter(run => run === "a/p1")).toHaveLength(2);
    ended.abort();
  });

  it("run tasks for the term, and stop everything when one fails", async () => {
    const { controllers, ended } = await setup();
    const log: string[] = [];
    let fail: (error: Error) => void = () => undefined;
    controllers.task("good", async signal => {
      await new Promise(resolve => signal.addEventListener("abort", resolve, { once: true }));
      log.push("good stopped");
    });
    controllers.task("bad", () => new Promise<void>((_resolve, reject) => (fail = reject)));
    const led = controllers.lead(new AbortController().signal, () => 0);
    led.catch(() => log.push("led failed"));
    await settle();
    fail(new Error("broken"));
    await expect(led).rejects.toThrow("task bad failed");
    expect(log).toEqual(["good stopped", "led failed"]);
    ended.abort();
  });

  it("call a task that ends by itself a failure", async () => {
    const { controllers, ended } = await setup();
    controllers.task("short", () => Promise.resolve());
    await expect(controllers.lead(new AbortController().signal, () => 0)).rejects.toThrow("task short failed");
    ended.abort();
  });

  it("refuse two of one name", async () => {
    const { controllers, ended } = await setup();
    expect(() =>
      controllers.register({ name: "parents", reconciler: { name: "x", reconcile: async () => ({}) } }),
    ).toThrow("registered already");
    ended.abort();
  });
});
