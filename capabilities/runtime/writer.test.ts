import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createKubeApi, type KubeApi } from "./kube-api.ts";
import { keyText } from "./resource.ts";
import { FakeApiServer } from "./testing/fake-api-server.ts";
import type { ClusterWriter, KubeObject } from "./types.ts";
import { createWriter } from "./writer.ts";

const collection = "/apis/example.dev/v1/namespaces/a/things";
const thing = (fields: object = {}): KubeObject & { readonly status?: unknown } => ({
  apiVersion: "example.dev/v1",
  kind: "Thing",
  metadata: { name: "x", namespace: "a" },
  ...fields,
});

describe("writer", () => {
  let server: FakeApiServer;
  let api: KubeApi;
  let writer: ClusterWriter;
  let cache: Map<string, KubeObject>;
  const { signal } = new AbortController();
  const writes = () => server.requests.filter(({ method }) => method !== "GET");

  beforeEach(async () => {
    server = new FakeApiServer();
    api = createKubeApi(await server.start());
    server.serveKind("example.dev/v1", "Thing", "things");
    cache = new Map();
    writer = createWriter({
      api,
      cached: (_apiVersion, _kind, key) => cache.get(keyText(key)),
      metrics: new Registry(),
    });
  });
  afterEach(async () => {
    await api.close();
    await server.stop();
  });

  /** What the informer would do. */
  const refresh = () => {
    const object = server.get(`${collection}/x`);
    if (object !== undefined) cache.set("a/x", object);
  };

  it("applies by server-side apply as `fairway`, with force", async () => {
    await writer.apply(thing({ spec: { size: 1 } }), signal);
    expect(writes()[0]).toMatchObject({
      method: "PATCH",
      path: `${collection}/x`,
      contentType: "application/apply-patch+yaml",
      body: { kind: "Thing", spec: { size: 1 } },
    });
    expect(Object.fromEntries(writes()[0]?.query ?? [])).toEqual({ fieldManager: "fairway", force: "true" });
  });

  it("makes no call when the same was applied and the cache shows it", async () => {
    await writer.apply(thing({ spec: { size: 1 } }), signal);
    refresh();
    const returned = await writer.apply(thing({ spec: { size: 1 } }), signal);
    expect(returned.metadata?.uid).toBe("uid-1");
    expect(writes()).toHaveLength(1);
    server.put(collection, {
      ...thing(),
      metadata: { name: "x", namespace: "a", labels: { other: "y" } },
      spec: { size: 1 },
    });
    refresh();
    await writer.apply(thing({ spec: { size: 1 } }), signal);
    expect(writes()).toHaveLength(1);
  });

  it("applies again when someone changed it, when a field was left out, and when it was made anew", async () => {
    await writer.apply(thing({ spec: { size: 1, color: "red" } }), signal);
    server.put(collection, { ...thing(), metadata: { name: "x", namespace: "a" }, spec: { size: 9, color: "red" } });
    refresh();
    await writer.apply(thing({ spec: { size: 1, color: "red" } }), signal);
    expect(writes()).toHaveLength(2);
    refresh();
    await writer.apply(thing({ spec: { size: 1 } }), signal);
    expect(writes()).toHaveLength(3);
    server.remove(`${collection}/x`);
    server.put(collection, { ...thing(), metadata: { name: "x", namespace: "a" }, spec: { size: 1 } });
    refresh();
    await writer.apply(thing({ spec: { size: 1 } }), signal);
    expect(writes()).toHaveLength(4);
  });

  it("applies an object that is not in the cache", async () => {
    await writer.apply(thing(), signal);
    await writer.apply(thing(), signal);
    expect(writes()).toHaveLength(2);
  });

  it("does not compare what the server has put in another form since its own answer", async () => {
    await writer.apply(thing({ spec: { cpu: "1000m" } }), signal);
    const stored = server.get(`${collection}/x`);
    cache.set("a/x", { ...stored, spec: { cpu: "1" } } as KubeObject);
    await writer.apply(thing({ spec: { cpu: "1000m" } }), signal);
    expect(writes()).toHaveLength(1);
  });

  it("keeps field managers apart", async () => {
    await writer.apply(thing({ spec: { size: 1 } }), signal);
    refresh();
    await writer.applyPart(thing({ spec: { replicas: 3 } }), "fairway-autoscaler", signal);
    expect(writes()[1]?.query.get("fieldManager")).toBe("fairway-autoscaler");
    refresh();
    await writer.applyPart(thing({ spec: { replicas: 3 } }), "fairway-autoscaler", signal);
    await writer.apply(thing({ spec: { size: 1 } }), signal);
    expect(writes()).toHaveLength(2);
  });

  it("applies only the status, to the same object, and only when it differs", async () => {
    server.put(collection, thing({ spec: { size: 1 } }) as never);
    refresh();
    const live = server.get(`${collection}/x`);
    await writer.applyStatus({ ...live, status: { ready: true } } as KubeObject, signal);
    expect(writes()[0]).toMatchObject({
      path: `${collection}/x/status`,
      body: {
        apiVersion: "example.dev/v1",
        kind: "Thing",
        metadata: { name: "x", uid: "uid-1" },
        status: { ready: true },
      },
    });
    expect(writes()[0]?.body).not.toHaveProperty("spec");
    refresh();
    await writer.applyStatus({ ...live, status: { ready: true } } as KubeObject, signal);
    expect(writes()).toHaveLength(1);
    await expect(
      writer.applyStatus(
        { ...thing(), metadata: { name: "x", namespace: "a", uid: "old" }, status: 1 } as KubeObject,
        signal,
      ),
    ).rejects.toMatchObject({ code: 409, reason: "Conflict" });
  });

  it("fails to create what exists", async () => {
    await writer.create(thing(), signal);
    await expect(writer.create(thing(), signal)).rejects.toMatchObject({ code: 409, reason: "AlreadyExists" });
  });

  it("patches metadata by merge, unless the cache already shows it", async () => {
    server.put(collection, { metadata: { name: "x", namespace: "a", labels: { a: "1", b: "2" } } });
    refresh();
    const ref = { apiVersion: "example.dev/v1", kind: "Thing", namespace: "a", name: "x" };
    await writer.patchMetadata(ref, { labels: { a: "1", c: null } }, signal);
    expect(writes()).toHaveLength(0);
    await writer.patchMetadata(ref, { labels: { b: null }, annotations: { d: "4" } }, signal);
    expect(writes()[0]?.contentType).toBe("application/merge-patch+json");
    expect(server.get(`${collection}/x`)?.metadata).toMatchObject({ labels: { a: "1" }, annotations: { d: "4" } });
  });

  it("deletes the very object, in the background; one that is gone or replaced is a success", async () => {
    const { metadata } = server.put(collection, thing() as never);
    const ref = { apiVersion: "example.dev/v1", kind: "Thing", namespace: "a", name: "x" };
    await writer.delete({ ...ref, uid: "other" }, signal);
    expect(server.get(`${collection}/x`)).toBeDefined();
    await writer.delete({ ...ref, uid: metadata.uid ?? "" }, signal);
    expect(server.get(`${collection}/x`)).toBeUndefined();
    expect(writes().at(-1)?.body).toMatchObject({ propagationPolicy: "Background" });
    expect(writes().at(-1)?.body).not.toHaveProperty("gracePeriodSeconds");
    await writer.delete({ ...ref, uid: metadata.uid ?? "" }, signal);
    await writer.delete({ ...ref, uid: metadata.uid ?? "", gracePeriodSeconds: 30 }, signal);
    expect(writes().at(-1)?.body).toMatchObject({ gracePeriodSeconds: 30 });
  });

  it("says code and reason of a refusal, and of no answer", async () => {
    server.fault = ({ method }) => (method === "PATCH" ? { code: 422, reason: "Invalid" } : undefined);
    await expect(writer.apply(thing(), signal)).rejects.toMatchObject({ code: 422, reason: "Invalid" });
    server.fault = () => "hang";
    const abort = new AbortController();
    const pending = writer.apply(thing(), abort.signal);
    abort.abort();
    await expect(pending).rejects.toMatchObject({ code: 0, reason: "Aborted" });
  });
});
