import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectCluster } from "./cluster-api.ts";
import { getFromPod, listObjects } from "./objects.ts";
import { z } from "zod";

const signal = new AbortController().signal;
let folder: string;
let server: Server;
let kubeconfig: string;
const requests: IncomingMessage[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fairway-cli-"));
  server = createServer((req, res) => {
    requests.push(req);
    const url = new URL(req.url ?? "/", "http://x");
    const answer = (status: number, body: string): void => void res.writeHead(status).end(body);
    if (url.pathname === "/pages") {
      const page = Number(url.searchParams.get("continue") ?? "0");
      return answer(200, JSON.stringify({ metadata: { continue: page < 2 ? String(page + 1) : "" }, items: [page] }));
    }
    if (url.pathname.endsWith("/proxy/plain")) return answer(404, "unknown to the pod\n");
    return answer(403, JSON.stringify({ kind: "Status", message: "forbidden" }));
  });
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
  kubeconfig = join(folder, "config");
  const context = (name: string, namespace?: string) => ({ name, context: { cluster: "c", user: "u", namespace } });
  await writeFile(
    kubeconfig,
    JSON.stringify({
      "current-context": "one",
      clusters: [
        {
          name: "c",
          cluster: {
            server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
            "insecure-skip-tls-verify": true,
          },
        },
      ],
      users: [{ name: "u", user: { token: "secret" } }],
      contexts: [context("one", "shop"), context("two")],
    }),
  );
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise(resolve => server.close(resolve));
  await rm(folder, { recursive: true });
});

describe("the connection to a cluster", () => {
  it("takes server, credentials and namespace from the kubeconfig, and both from the command line", async () => {
    const api = await connectCluster({ kubeconfig }, signal);
    expect(api.namespace).toBe("shop");
    expect(await api.get("/api", { a: "1 2" })).toEqual({
      status: 403,
      body: { kind: "Status", message: "forbidden" },
    });
    expect(requests.at(-1)).toMatchObject({ url: "/api?a=1+2", headers: { authorization: "Bearer secret" } });
    await api.close();
    expect((await connectCluster({ kubeconfig, context: "two" }, signal)).namespace).toBe("default");
    expect((await connectCluster({ kubeconfig, namespace: "mine" }, signal)).namespace).toBe("mine");
  });

  it("reads lists page by page", async () => {
    const api = await connectCluster({ kubeconfig }, signal);
    expect(await listObjects(api, "/pages", z.number(), "pages")).toEqual([0, 1, 2]);
    await api.close();
  });

  it("tells the refusal of a pod from that of the API server", async () => {
    const api = await connectCluster({ kubeconfig }, signal);
    const pod = { namespace: "n", name: "p", port: 9090 };
    expect(await getFromPod(api, pod, "/plain")).toEqual({ status: 404, body: "unknown to the pod\n" });
    await expect(getFromPod(api, pod, "/other")).rejects.toMatchObject({ exitCode: 4, message: "pod n/p: forbidden" });
    await api.close();
  });

  it("fails with the reason: no file, no context, no server", async () => {
    const missing = join(folder, "none");
    await expect(connectCluster({ kubeconfig: missing }, signal)).rejects.toMatchObject({ exitCode: 2 });
    await expect(connectCluster({ kubeconfig, context: "three" }, signal)).rejects.toMatchObject({
      exitCode: 3,
      message: 'no context "three" in the kubeconfig; there are: one, two',
    });
    const dead = join(folder, "dead");
    await writeFile(
      dead,
      JSON.stringify({
        "current-context": "c",
        clusters: [{ name: "c", cluster: { server: "http://127.0.0.1:1", "insecure-skip-tls-verify": true } }],
        users: [{ name: "u", user: {} }],
        contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      }),
    );
    const api = await connectCluster({ kubeconfig: dead }, signal);
    await expect(api.get("/api")).rejects.toMatchObject({
      exitCode: 5,
      message: expect.stringContaining("cannot reach http://127.0.0.1:1: ") as string,
    });
    await api.close();
  });
});
