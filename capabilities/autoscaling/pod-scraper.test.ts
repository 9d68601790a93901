import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { PodStat } from "../../api/wire/stats.ts";
import { podScraper } from "./pod-scraper.ts";

const stat: PodStat = {
  podName: "pod-1",
  timestampMs: 1000,
  uptimeMs: 5000,
  averageConcurrentRequests: 2.5,
  averageProxiedConcurrentRequests: 2,
  requestCount: 7,
  proxiedRequestCount: 6,
};

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

/** A queue-proxy that answers so, or never when `answer` is undefined. */
async function queueProxy(answer: { status: number; body: string } | undefined): Promise<number> {
  const created = createServer((_req, res) => {
    if (answer !== undefined) res.writeHead(answer.status).end(answer.body);
  });
  server = created;
  await new Promise<void>(resolve => created.listen(0, "127.0.0.1", resolve));
  return (created.address() as AddressInfo).port;
}

const pod = { name: "pod-1", ip: "127.0.0.1" };
const never = new AbortController().signal;

describe("podScraper", () => {
  it("reads the pod's last second", async () => {
    const port = await queueProxy({ status: 200, body: JSON.stringify(stat) });
    expect(await podScraper(1000, port)(pod, never)).toEqual(stat);
  });

  it("refuses numbers of another pod that now has the address", async () => {
    const port = await queueProxy({ status: 200, body: JSON.stringify({ ...stat, podName: "pod-2" }) });
    await expect(podScraper(1000, port)(pod, never)).rejects.toThrow("127.0.0.1 answered for pod pod-2, not pod-1");
  });

  it("names the field that is wrong", async () => {
    const port = await queueProxy({ status: 200, body: JSON.stringify({ ...stat, requestCount: -1 }) });
    await expect(podScraper(1000, port)(pod, never)).rejects.toThrow("pod pod-1: requestCount is invalid");
  });

  it("says which status a failing pod answered", async () => {
    const port = await queueProxy({ status: 503, body: "" });
    await expect(podScraper(1000, port)(pod, never)).rejects.toThrow("pod pod-1: GET /stats answered 503");
  });

  it("gives up on a pod that does not answer", async () => {
    const port = await queueProxy(undefined);
    await expect(podScraper(50, port)(pod, never)).rejects.toThrow();
  });

  it("ends when its caller does", async () => {
    const port = await queueProxy(undefined);
    await expect(podScraper(60_000, port)(pod, AbortSignal.abort())).rejects.toThrow();
  });
});
