import { execFileSync, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/**
 * What a queue-proxy costs a cold start: from exec until a probe is answered 200 with an app that is there already, and
 * until the first request is answered; beside it a Node program that does nothing but listen, measured in turns with it.
 * CPU time is the number to compare on a busy machine. Usage: node test/bench/queue-proxy-start.ts [rounds]
 */

const ROOT = join(import.meta.dirname, "..", "..");
const HOST = "127.0.0.1";
const LISTEN_ONLY = "require('node:http').createServer((_, res) => res.end()).listen(process.env.QUEUE_SERVING_PORT)";
const PATIENCE_MS = 30_000;

interface Sample {
  readonly readyMs: number;
  readonly firstRequestMs: number;
  readonly cpuMs: number;
}

async function freePort(): Promise<number> {
  const server = createTcpServer();
  await new Promise<void>(resolve => server.listen(0, HOST, resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise(resolve => server.close(resolve));
  return port;
}

function get(port: number, headers: Readonly<Record<string, string>>): Promise<number> {
  return new Promise(resolve => {
    const sent = request({ host: HOST, port, headers, agent: false }, res => {
      res.resume();
      res.on("end", () => resolve(res.statusCode ?? 0));
    });
    sent.on("error", () => resolve(0));
    sent.end();
  });
}

/** Of all threads of a process so far. */
function cpuMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const nanoseconds = threads.map(id =>
    Number(readFileSync(`/proc/${pid}/task/${id}/schedstat`, "utf8").split(" ")[0]),
  );
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e6;
}

async function measure(args: readonly string[], appPort: number): Promise<Sample> {
  const [http, h2c, admin, metrics] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  const startMs = performance.now();
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      CONTAINER_CONCURRENCY: "0",
      USER_PORT: String(appPort),
      REVISION_TIMEOUT_SECONDS: "300",
      SERVING_NAMESPACE: "bench",
      SERVING_REVISION: "bench-00001",
      SERVING_POD: "bench",
      QUEUE_SERVING_PORT: String(http),
      QUEUE_SERVING_H2C_PORT: String(h2c),
      QUEUE_ADMIN_PORT: String(admin),
      QUEUE_METRICS_PORT: String(metrics),
    },
  });
  try {
    while ((await get(http, { "k-network-probe": "queue" })) !== 200) {
      if (performance.now() - startMs > PATIENCE_MS) throw new Error(`not ready after ${PATIENCE_MS} ms`);
      await delay(1);
    }
    const readyAtMs = performance.now();
    await get(http, { "k-proxy-request": "gateway" });
    return {
      readyMs: readyAtMs - startMs,
      firstRequestMs: performance.now() - readyAtMs,
      cpuMs: cpuMs(child.pid ?? 0),
    };
  } finally {
    child.kill("SIGKILL");
  }
}

function report(title: string, samples: readonly Sample[]): void {
  const line = (name: string, pick: (sample: Sample) => number): string => {
    const sorted = samples.map(pick).sort((a, b) => a - b);
    const at = (share: number): string => (sorted[Math.floor(share * (sorted.length - 1))] ?? NaN).toFixed(1);
    return `${name} min ${at(0)} p50 ${at(0.5)} p90 ${at(0.9)}`;
  };
  console.log(
    [
      title.padEnd(12),
      line("ready ms", s => s.readyMs),
      line("first request ms", s => s.firstRequestMs),
      line("CPU ms", s => s.cpuMs),
    ].join(" | "),
  );
}

const rounds = Number(process.argv[2] ?? 20);
execFileSync(process.execPath, ["hack/build.ts", "queue-proxy"], { cwd: ROOT });
const app = createServer((_req, res) => res.end("ok"));
await new Promise<void>(resolve => app.listen(0, HOST, resolve));
const { port } = app.address() as AddressInfo;
const queueProxy: Sample[] = [];
const listenOnly: Sample[] = [];
for (let i = 0; i < rounds; i++) {
  queueProxy.push(await measure([join(ROOT, "dist", "queue-proxy.cjs")], port));
  listenOnly.push(await measure(["-e", LISTEN_ONLY], port));
}
app.close();
app.closeAllConnections();
report("queue-proxy", queueProxy);
report("listen only", listenOnly);
