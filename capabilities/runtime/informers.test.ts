import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "./clock.ts";
import { SharedInformers } from "./informers.ts";
import { createKubeApi, type KubeApi } from "./kube-api.ts";
import { silentLogger } from "./logging.ts";
import { defineResource } from "./resource.ts";
import { eventually } from "./testing/eventually.ts";
import { FakeApiServer } from "./testing/fake-api-server.ts";
import type { KubeObject } from "./types.ts";

const things = defineResource<KubeObject & { readonly size?: number }>("example.dev/v1", "Thing", "things");
const inA = "/apis/example.dev/v1/namespaces/a/things";
const inB = "/apis/example.dev/v1/namespaces/b/things";

describe("shared informers", () => {
  let server: FakeApiServer;
  let api: KubeApi;
  let stop: AbortController;
  let metrics: Registry;
  let informers: SharedInformers;
  let seen: string[];

  beforeEach(async () => {
    server = new FakeApiServer();
    api = createKubeApi(await server.start());
    stop = new AbortController();
    metrics = new Registry();
    seen = [];
    informers = new SharedInformers({
      api,
      systemNamespace: "system",
      clock: systemClock,
      random: () => 0,
      log: silentLogger,
      metrics,
    });
    informers.onChange(things, (object, phase) =>
      seen.push(`${phase} ${object.metadata?.namespace}/${object.metadata?.name}`),
    );
  });

  afterEach(async () => {
    stop.abort();
    await api.close();
    await server.stop();
  });

  const start = async () => {
    informers.start(stop.signal);
    await informers.whenSynced(stop.signal);
    await eventually(() => expect(server.openWatches).toBe(1));
  };

  it("lists over several pages, then follows changes, and tells its handlers", async () => {
    for (let index = 0; index < 1100; index++) server.put(inA, { metadata: { name: `t${index}`, namespace: "a" } });
    await start();
    expect(informers.lister(things).list()).toHaveLength(1100);
    expect(informers.hasSynced()).toBe(true);
    seen.length = 0;
    server.put(inB, { metadata: { name: "x", namespace: "b" }, size: 1 });
    server.put(inB, { metadata: { name: "x", namespace: "b" }, size: 2 });
    server.remove(`${inA}/t7`);
    await eventually(() => expect(seen).toEqual(["added b/x", "modified b/x", "deleted a/t7"]));
    expect(informers.lister(things).get({ namespace: "b", name: "x" })).toMatchObject({
      apiVersion: "example.dev/v1",
      kind: "Thing",
      size: 2,
    });
    expect(informers.lister(things).list({ namespace: "b" })).toHaveLength(1);
  });

  it("finds by label and by owner, also after these have changed", async () => {
    const owned = (name: string, uid: string, revision: string) =>
      server.put(inA, {
        metadata: {
          name,
          namespace: "a",
          labels: { "serving.knative.dev/revision": revision, other: "x" },
          ownerReferences: [{ apiVersion: "v1", kind: "Owner", name: "o", uid }],
        },
      });
    owned("one", "u1", "r1");
    owned("two", "u1", "r2");
    await start();
    const lister = informers.lister(things);
    const names = (objects: readonly KubeObject[]) => objects.map(object => object.metadata?.name);
    expect(names(lister.ownedBy("u1"))).toEqual(["one", "two"]);
    expect(names(lister.list({ labels: { "serving.knative.dev/revision": "r2" } }))).toEqual(["two"]);
    expect(names(lister.list({ labels: { other: "x", "serving.knative.dev/revision": "r1" } }))).toEqual(["one"]);
    expect(names(lister.list({ namespace: "b", labels: { other: "x" } }))).toEqual([]);
    owned("two", "u2", "r1");
    await eventually(() => expect(names(lister.ownedBy("u1"))).toEqual(["one"]));
    expect(names(lister.ownedBy("u2"))).toEqual(["two"]);
    expect(names(lister.list({ labels: { "serving.knative.dev/revision": "r1" } }))).toEqual(["one", "two"]);
    expect(names(lister.list({ labels: { "serving.knative.dev/revision": "r2" } }))).toEqual([]);
  });

  it("does not keep managedFields nor kubectl's copy of the object", async () => {
    server.put(inA, {
      metadata: {
        name: "x",
        namespace: "a",
        managedFields: [{ manager: "kubectl" }],
        annotations: { "kubectl.kubernetes.io/last-applied-configuration": "{}", kept: "yes" },
      },
    });
    await start();
    const metadata = informers.lister(things).get({ namespace: "a", name: "x" })?.metadata;
    expect(metadata).not.toHaveProperty("managedFields");
    expect(metadata?.annotations).toEqual({ kept: "yes" });
  });

  it("goes on from the last version seen when a watch breaks, without listing again", async () => {
    await start();
    server.put(inA, { metadata: { name: "x", namespace: "a" } });
    await eventually(() => expect(seen).toEqual(["added a/x"]));
    server.breakWatches();
    server.put(inA, { metadata: { name: "y", namespace: "a" } });
    await eventually(() => expect(seen).toEqual(["added a/x", "added a/y"]));
    expect(server.requests.filter(({ query }) => query.get("watch") === null)).toHaveLength(1);
  });

  it("lists again when the watch is too old, and sees what was deleted meanwhile", async () => {
    server.put(inA, { metadata: { name: "gone", namespace: "a" } });
    server.put(inA, { metadata: { name: "kept", namespace: "a" } });
    await start();
    seen.length = 0;
    server.fault = () => ({ code: 503, reason: "ServiceUnavailable" });
    server.breakWatches();
    server.remove(`${inA}/gone`);
    server.put(inA, { metadata: { name: "new", namespace: "a" } });
    server.compact();
    expect(informers.lister(things).list()).toHaveLength(2);
    server.fault = () => undefined;
    await eventually(() => expect(seen).toEqual(["deleted a/gone", "added a/new"]));
    expect(await metrics.metrics()).toContain('fairway_informer_relists_total{kind="Thing"} 1');
  });

  it("moves its version on with bookmarks, so that an old watch need not list again", async () => {
    await start();
    server.put("/api/v1/namespaces/a/others", { metadata: { name: "o", namespace: "a" } });
    server.bookmark("/apis/example.dev/v1/things");
    await eventually(() => expect(server.openWatches).toBe(1));
    server.put(inA, { metadata: { name: "x", namespace: "a" } });
    await eventually(() => expect(seen).toEqual(["added a/x"]));
    server.remove(`${inA}/x`);
    server.bookmark("/apis/example.dev/v1/things");
    await eventually(() => expect(seen).toEqual(["added a/x", "deleted a/x"]));
    server.compact();
    server.breakWatches();
    await eventually(() => expect(server.openWatches).toBe(1));
    expect(await metrics.metrics()).not.toContain('fairway_informer_relists_total{kind="Thing"} 1');
  });

  it("reports a replaced object as deleted and added", async () => {
    server.put(inA, { metadata: { name: "x", namespace: "a" } });
    await start();
    seen.length = 0;
    server.fault = () => ({ code: 500, reason: "InternalError" });
    server.breakWatches();
    server.remove(`${inA}/x`);
    server.put(inA, { metadata: { name: "x", namespace: "a" } });
    server.compact();
    server.fault = () => undefined;
    await eventually(() => expect(seen).toEqual(["deleted a/x", "added a/x"]));
  });

  it("starts although the API server is away at first", async () => {
    server.fault = () => ({ code: 503, reason: "ServiceUnavailable" });
    server.put(inA, { metadata: { name: "x", namespace: "a" } });
    informers.start(stop.signal);
    await eventually(() => expect(server.requests.length).toBeGreaterThan(1));
    expect(informers.hasSynced()).toBe(false);
    expect(informers.unsynced()).toEqual(["/apis/example.dev/v1/things"]);
    server.fault = () => undefined;
    await informers.whenSynced(stop.signal);
    expect(seen).toEqual(["added a/x"]);
  });

  it("a handler that throws does not keep others from being told", async () => {
    informers.onChange(things, () => {
      throw new Error("broken");
    });
    const told: string[] = [];
    informers.onChange(things, object => told.push(object.metadata?.name ?? ""));
    await start();
    server.put(inA, { metadata: { name: "x", namespace: "a" } });
    await eventually(() => expect(told).toEqual(["x"]));
  });
});
