import { createServer } from "node:net";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { KubeConfig } from "@kubernetes/client-node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createKubeApi, type KubeApi } from "./kube-api.ts";
import { FakeApiServer } from "./testing/fake-api-server.ts";

const never = new AbortController().signal;

describe("API client", () => {
  let server: FakeApiServer;
  let api: KubeApi;
  beforeEach(async () => {
    server = new FakeApiServer();
    api = createKubeApi(await server.start());
  });
  afterEach(async () => {
    await api.close();
    await server.stop();
  });

  it("bounds a call in time, also by a part of a millisecond", async () => {
    server.fault = () => "hang";
    await expect(api.call("GET", "/api/v1/pods", { signal: never, timeoutMs: 20.5 })).rejects.toMatchObject({
      code: 0,
      reason: "Timeout",
    });
  });

  it("bounds a call whose connection is never made", async () => {
    // A server that accepts nothing: its backlog is full.
    const deaf = createServer({ pauseOnConnect: true });
    deaf.listen(0, "127.0.0.1", 0);
    await once(deaf, "listening");
    const { port } = deaf.address() as AddressInfo;
    const config = new KubeConfig();
    config.loadFromClusterAndUser(
      { name: "c", server: `https://127.0.0.1:${port}`, skipTLSVerify: true },
      { name: "u" },
    );
    const client = createKubeApi(config);
    const startMs = performance.now();
    await expect(client.call("GET", "/api/v1/pods", { signal: never, timeoutMs: 50 })).rejects.toMatchObject({
      code: 0,
    });
    expect(performance.now() - startMs).toBeLessThan(2000);
    await client.close();
    deaf.close();
  });

  it("tells the server's wish to wait", async () => {
    server.fault = () => ({ code: 429, reason: "TooManyRequests" });
    await expect(api.call("GET", "/api/v1/pods", { signal: never })).rejects.toMatchObject({
      code: 429,
      reason: "TooManyRequests",
    });
  });

  it("finds where a kind is served, once", async () => {
    server.serveKind("example.dev/v1", "Thing", "things", false);
    const first = await api.discover("example.dev/v1", "Thing", never);
    await api.discover("example.dev/v1", "Thing", never);
    expect(first).toMatchObject({ plural: "things", namespaced: false });
    expect(server.requests).toHaveLength(1);
    await expect(api.discover("example.dev/v1", "Other", never)).rejects.toMatchObject({ code: 404 });
  });

  it("says that nobody answers", async () => {
    await server.stop();
    await expect(api.call("GET", "/api/v1/pods", { signal: never })).rejects.toMatchObject({
      code: 0,
      reason: "Unreachable",
    });
    server = new FakeApiServer();
    await server.start();
  });
});
