import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { KubeConfig } from "@kubernetes/client-node";
import { afterEach, describe, expect, it } from "vitest";
import { createKubeClient, type KubeClient } from "./kube-client.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(handler: RequestListener): Promise<KubeClient> {
  const server = createServer(handler);
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromClusterAndUser(
    { name: "c", server: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, skipTLSVerify: true },
    { name: "u", token: "secret" },
  );
  const client = createKubeClient(kubeConfig);
  cleanups.push(async () => {
    await client.close();
    server.closeAllConnections();
    server.close();
  });
  return client;
}

const never = new AbortController().signal;

describe("kube client", () => {
  it("lists with its token and the query", async () => {
    const seen: unknown[] = [];
    const client = await start((req, res) => {
      seen.push(req.url, req.headers.authorization);
      res.end('{"items":[]}');
    });
    expect(await client.list("/apis/x/v1/things", { limit: "5", labelSelector: "a,b=c" }, never)).toEqual({
      items: [],
    });
    expect(seen).toEqual(["/apis/x/v1/things?limit=5&labelSelector=a%2Cb%3Dc", "Bearer secret"]);
  });

  it("gives the events of a watch, however they are cut", async () => {
    const client = await start((_req, res) => {
      const text = '{"type":"ADDED","object":{"n":"\u00e9"}}\n{"type":"BOOKMARK","object":{}}\n';
      const bytes = Buffer.from(text);
      for (const byte of bytes) res.write(Uint8Array.of(byte));
      res.end();
    });
    const events: unknown[] = [];
    for await (const event of client.watch("/things", { resourceVersion: "7" }, never)) events.push(event);
    expect(events).toEqual([
      { type: "ADDED", object: { n: "\u00e9" } },
      { type: "BOOKMARK", object: {} },
    ]);
  });

  it("fails with the status of the answer, or 0 without one", async () => {
    const client = await start((_req, res) => res.writeHead(410).end("too old"));
    await expect(client.list("/things", {}, never)).rejects.toMatchObject({ code: "KUBE_FAILED", status: 410 });
    await cleanups.pop()?.();
    await expect(client.list("/things", {}, never)).rejects.toMatchObject({ status: 0 });
  });

  it("ends a watch with its signal", async () => {
    const client = await start((_req, res) => res.write('{"type":"ADDED","object":{}}\n'));
    const controller = new AbortController();
    const events: unknown[] = [];
    const followed = (async () => {
      for await (const event of client.watch("/things", {}, controller.signal)) {
        events.push(event);
        controller.abort();
      }
    })();
    await expect(followed).rejects.toMatchObject({ code: "KUBE_FAILED" });
    expect(events).toHaveLength(1);
  });
});
