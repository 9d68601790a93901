import { spawn, type ChildProcess } from "node:child_process";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { call } from "./testing/call.ts";

const MAIN = join(import.meta.dirname, "main.ts");

async function freePort(): Promise<number> {
  const server = createTcpServer();
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise(resolve => server.close(resolve));
  return port;
}

function run(env: Record<string, string>) {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", MAIN], {
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exit = new Promise<number | null>(resolve => child.once("exit", resolve));
  return { child, exit, stdout: text(child.stdout), stderr: text(child.stderr) };
}

describe("the queue-proxy process", () => {
  it.each([
    { title: "SIGTERM", end: (child: ChildProcess) => void child.kill("SIGTERM") },
    {
      title: "its preStop hook",
      end: async (_: ChildProcess, admin: number) => {
        expect((await call(`http://127.0.0.1:${admin}`, { path: "/terminate" })).status).toBe(200);
      },
    },
  ])("serves, and on $title finishes what is here before it exits 0", { timeout: 30_000 }, async ({ end }) => {
    const { promise: arrived, resolve } = Promise.withResolvers<ServerResponse>();
    const app = createServer((_req, res) => resolve(res));
    await new Promise<void>(listening => app.listen(0, "127.0.0.1", listening));
    const [http, h2c, admin, metrics] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
    const { child, exit, stdout } = run({
      CONTAINER_CONCURRENCY: "1",
      USER_PORT: String((app.address() as AddressInfo).port),
      REVISION_TIMEOUT_SECONDS: "300",
      SERVING_NAMESPACE: "default",
      SERVING_REVISION: "hello-00001",
      SERVING_POD: "hello-a",
      SERVING_ENABLE_REQUEST_LOG: "true",
      QUEUE_SERVING_PORT: String(http),
      QUEUE_SERVING_H2C_PORT: String(h2c),
      QUEUE_ADMIN_PORT: String(admin),
      QUEUE_METRICS_PORT: String(metrics),
      DRAIN_QUIET_MS: "100",
    });
    const url = `http://127.0.0.1:${http}`;
    const probe = () => call(url, { headers: { "k-network-probe": "queue" } }).then(({ status }) => status);
    for (let tries = 0; (await probe().catch(() => 0)) !== 200; tries++) {
      if (tries > 1000) throw new Error("never ready");
      await delay(10);
    }
    const request = call(url, { path: "/slow" });
    const res = await arrived;
    await end(child, admin);
    while ((await probe()) === 200) await delay(10);
    res.end("done");
    expect(await request).toMatchObject({ status: 200, body: "done", complete: true });
    expect(await exit).toBe(0);
    app.close();
    const lines = (await stdout)
      .trim()
      .split("\n")
      .map(line => JSON.parse(line) as Record<string, unknown>);
    expect(lines.map(line => line["msg"]).filter(Boolean)).toEqual([
      "listening",
      "the app is ready",
      "draining",
      "drained",
    ]);
    expect(lines.find(line => "httpRequest" in line)).toMatchObject({
      component: "queue-proxy",
      revision: "hello-00001",
      httpRequest: { requestMethod: "GET", requestUrl: "/slow", status: 200, responseSize: "4", protocol: "HTTP/1.1" },
    });
  });

  it("names what is wrong with its environment and exits 78", { timeout: 30_000 }, async () => {
    const { exit, stderr } = run({ USER_PORT: "x" });
    expect(await exit).toBe(78);
    expect(await stderr).toMatch(/^queue-proxy configuration: .*USER_PORT: .*\(value: x\)/);
  });
});
