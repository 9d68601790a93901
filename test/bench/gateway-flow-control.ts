import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { pino } from "pino";
import { Registry } from "prom-client";
import { Pool } from "undici";
import { SUGGESTED_FLOW_SCHEMAS, SUGGESTED_PRIORITY_LEVELS } from "../../core/flowcontrol/bootstrap.ts";
import { parseConfig } from "../../dataplane/gateway/config.ts";
import { startGateway } from "../../dataplane/gateway/gateway.ts";
import { FakeApi } from "../../dataplane/gateway/testing/fake-api.ts";
import { systemClock } from "../../dataplane/shared/clock.ts";
import { quantile } from "../../hack/kit/load.ts";

/**
 * What flow control costs a gateway: CPU time per request of pairs of gateway processes, one with it and one without, loaded in
 * turns with the same requests (a service with a concurrency limit, the suggested levels and schemas) to a pod on loopback. Once
 * with anonymous requests, which is flow control by itself; once with those of 100 tenants with bearer tokens, which only the one
 * with flow control looks at: what telling them apart costs comes on top. Fails when either takes over 10 % more. A process keeps
 * the luck with which its code was compiled, so there are several pairs.
 * Usage: node test/bench/gateway-flow-control.ts [pairs] [rounds] [requests per round]
 */

const HOST = "127.0.0.1";
const MOST_RATIO = 1.1;
const CONNECTIONS = 32;
const TENANTS = 100;
const ROLE = process.argv[2];

interface Costs {
  readonly on: number;
  readonly off: number;
}

const quantileOf = (costs: readonly Costs[], of: keyof Costs, q: number): number =>
  quantile(
    costs.map(cost => cost[of]).sort((a, b) => a - b),
    q,
  );

/** Who sends the requests. */
const CLIENTS = ["anonymous", "100 tenants with tokens"] as const;
type Clients = (typeof CLIENTS)[number];

async function measure(pairs: number, rounds: number, requests: number): Promise<void> {
  const pod = createServer({ keepAliveTimeout: 60_000 }, (_req, res) => res.end("ok"));
  pod.listen(0, HOST);
  await once(pod, "listening");
  const podPort = (pod.address() as AddressInfo).port;
  console.log(
    `CPU per request, median of ${pairs} pairs of processes, each the lower quartile of ${rounds} rounds of ${requests}`,
  );
  try {
    for (const clients of CLIENTS) {
      const costs: Costs[] = [];
      for (let pair = 0; pair < pairs; pair++) costs.push(await measurePair(podPort, clients, rounds, requests));
      if (report(clients, costs) > MOST_RATIO) process.exitCode = 1;
    }
  } finally {
    pod.closeAllConnections();
    pod.close();
  }
}

function report(clients: Clients, costs: readonly Costs[]): number {
  const median = (of: keyof Costs): number => quantileOf(costs, of, 0.5);
  const ratio = median("on") / median("off");
  console.log(`${clients}:`);
  console.log(`  flow control off  ${median("off").toFixed(1)} us`);
  console.log(`  flow control on   ${median("on").toFixed(1)} us`);
  console.log(`  on / off          ${ratio.toFixed(3)} (at most ${MOST_RATIO})`);
  console.log(`  of each pair      ${costs.map(({ on, off }) => (on / off).toFixed(3)).join(" ")}`);
  return ratio;
}

async function measurePair(podPort: number, clients: Clients, rounds: number, requests: number): Promise<Costs> {
  const [on, off] = await Promise.all([
    Contender.start("on", podPort, clients),
    Contender.start("off", podPort, clients),
  ]);
  try {
    for (const contender of [on, off]) await contender.run(10 * requests);
    const samples: Costs[] = [];
    for (let round = 0; round < rounds; round++) {
      // Neither always has the machine after the other.
      const order = round % 2 === 0 ? [on, off] : [off, on];
      const cost = new Map<Contender, number>();
      for (const contender of order) cost.set(contender, await contender.run(requests));
      samples.push({ on: cost.get(on)!, off: cost.get(off)! });
    }
    // A busy machine makes rounds dearer, never cheaper.
    return { on: quantileOf(samples, "on", 0.25), off: quantileOf(samples, "off", 0.25) };
  } finally {
    await Promise.all([on.stop(), off.stop()]);
  }
}

/** A gateway process, and its clients. */
class Contender {
  readonly #child: ChildProcess;
  readonly #pool: Pool;
  readonly #clients: Clients;

  private constructor(child: ChildProcess, port: number, clients: Clients) {
    this.#child = child;
    this.#clients = clients;
    this.#pool = new Pool(`http://${HOST}:${port}`, { connections: CONNECTIONS });
  }

  static async start(flowControl: "on" | "off", podPort: number, clients: Clients): Promise<Contender> {
    const child = fork(import.meta.filename, ["gateway", flowControl, String(podPort)]);
    const [{ port }] = (await once(child, "message")) as [{ readonly port: number }];
    return new Contender(child, port, clients);
  }

  /** Microseconds of CPU per request. */
  async run(requests: number): Promise<number> {
    const before = await this.#cpuUs();
    let left = requests;
    const client = async (): Promise<void> => {
      while (left-- > 0) {
        const answer = await this.#pool.request({
          path: "/api/items?page=2",
          method: "GET",
          headers: { host: "hello.default.example.com", ...this.#sender(left) },
        });
        if (answer.statusCode !== 200) throw new Error(`${answer.statusCode}: ${await answer.body.text()}`);
        await answer.body.dump();
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, client));
    return ((await this.#cpuUs()) - before) / requests;
  }

  #sender(request: number): { readonly authorization?: string } {
    return this.#clients === "anonymous" ? {} : { authorization: `Bearer tenant-${request % TENANTS}` };
  }

  async stop(): Promise<void> {
    await this.#pool.destroy();
    const exit = once(this.#child, "exit");
    this.#child.disconnect();
    await exit;
  }

  async #cpuUs(): Promise<number> {
    this.#child.send("cpu");
    const [{ cpuUs }] = (await once(this.#child, "message")) as [{ readonly cpuUs: number }];
    return cpuUs;
  }
}

async function beGateway(flowControl: boolean, podPort: number): Promise<void> {
  const api = new FakeApi();
  api.onCreate = (_path, object) => {
    const { token } = (object as { readonly spec: { readonly token: string } }).spec;
    const user = { username: `system:serviceaccount:tenants:${token}`, groups: GROUPS };
    return { status: { authenticated: true, user } };
  };
  fill(api, podPort);
  const gateway = await startGateway({
    config: parseConfig({
      POD_NAME: "bench",
      LISTEN_HOST: HOST,
      EXTERNAL_PORT: "0",
      INTERNAL_PORT: "0",
      ADMIN_PORT: "0",
      SHUTDOWN_DELAY_MS: "0",
      FLOW_CONTROL: String(flowControl),
      TOKEN_REVIEW: "all",
      REPORT_TOKEN_FILE: "/nowhere",
    }),
    kube: api,
    clock: systemClock,
    random: Math.random,
    logger: pino({ level: "silent" }),
    registry: new Registry(),
    probe: () => Promise.resolve(false),
    http1Port: () => podPort,
  });
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    process.send?.({ cpuUs: user + system });
  });
  process.on("disconnect", () => void gateway.stop().then(() => process.exit(0)));
  process.send?.({ port: gateway.externalPort });
}

const GROUPS = ["system:serviceaccounts", "system:serviceaccounts:tenants", "system:authenticated"];

/** One service with one pod, and the suggested flow-control objects. */
function fill(api: FakeApi, podPort: number): void {
  const namespace = "default";
  api.apply("/apis/serving.knative.dev/v1/revisions", {
    metadata: { name: "hello-00001", namespace, labels: { "serving.knative.dev/service": "hello" } },
    ...{ spec: { containers: [{ image: "app" }], containerConcurrency: 100 }, status: {} },
  });
  api.apply("/apis/serving.knative.dev/v1/routes", {
    metadata: { name: "hello", namespace, labels: {} },
    ...{
      status: {
        url: "http://hello.default.example.com",
        traffic: [{ revisionName: "hello-00001", percent: 100 }],
      },
    },
  });
  api.apply("/apis/discovery.k8s.io/v1/endpointslices", {
    metadata: {
      name: "hello-00001-private-1",
      namespace,
      labels: {
        "serving.knative.dev/revision": "hello-00001",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
      },
    },
    ...{
      addressType: "IPv4",
      ports: [{ name: "http", port: podPort }],
      endpoints: [{ addresses: [HOST], conditions: { ready: true }, targetRef: { name: "pod", uid: "pod" } }],
    },
  });
  const flowControl = "/apis/flowcontrol.fairway.dev/v1";
  for (const [plural, objects] of [
    ["prioritylevelconfigurations", SUGGESTED_PRIORITY_LEVELS],
    ["flowschemas", SUGGESTED_FLOW_SCHEMAS],
  ] as const)
    for (const { name, spec } of objects)
      api.apply(`${flowControl}/${plural}`, { metadata: { name, namespace: "" }, ...{ spec } });
}

if (ROLE === "gateway") await beGateway(process.argv[3] === "on", Number(process.argv[4]));
else await measure(Number(process.argv[2] ?? 15), Number(process.argv[3] ?? 10), Number(process.argv[4] ?? 1_000));
