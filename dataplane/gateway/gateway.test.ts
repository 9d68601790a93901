import { readFileSync } from "node:fs";
import { request as h1Request, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { H2Client } from "../shared/testing/h2-client.ts";
import { RawClient } from "../shared/testing/raw-client.ts";
import { startTestBed, type TestBed, type TestBedOptions } from "./testing/test-gateway.ts";

let bed: TestBed;
afterEach(async () => {
  await bed.close();
});

const HOST = "hello.default.example.com";

/** A service with one revision that takes all traffic. */
async function hello(spec: object = {}, options: TestBedOptions = {}): Promise<void> {
  bed = await startTestBed(options);
  bed.revision("hello-00001", spec);
  bed.route("hello", [{ revisionName: "hello-00001", percent: 100 }]);
  await until(async () => (await ask({ path: "/", host: HOST, method: "OPTIONS", timeoutMs: 20 })) !== 404);

  async function ask(o: {
    path: string;
    host: string;
    method: string;
    timeoutMs: number;
  }): Promise<number | undefined> {
    const routes = (await (await fetch(`http://127.0.0.1:${bed.gateway.adminPort}/debug/routes`)).json()) as {
      external: Record<string, unknown>;
    };
    return routes.external[o.host] === undefined ? 404 : undefined;
  }
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

interface Asking extends Promise<Answer> {
  leave(): void;
}

function get(
  path = "/",
  options: { host?: string; headers?: Record<string, string>; method?: string; body?: string; base?: string } = {},
): Asking {
  const req = h1Request(new URL(path, options.base ?? bed.external), {
    method: options.method ?? "GET",
    headers: { host: options.host ?? HOST, ...options.headers },
    agent: false,
  });
  const answer = new Promise<Answer>((resolve, reject) => {
    req.on("response", res => {
      text(res).then(body => resolve({ status: res.statusCode ?? 0, headers: res.headers, body }), reject);
    });
    req.on("error", reject);
    req.end(options.body);
  });
  return Object.assign(answer, { leave: () => req.destroy() });
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise(resolve => setTimeout(resolve, 2));
}

const debug = async (view: string): Promise<Record<string, Record<string, unknown>>> =>
  (await (await fetch(`http://127.0.0.1:${bed.gateway.adminPort}/debug/${view}`)).json()) as Record<
    string,
    Record<string, unknown>
  >;
const waiting = async (revision = "default/hello-00001"): Promise<unknown> =>
  (await debug("revisions"))[revision]?.["waiting"];
const podsOf = async (revision = "default/hello-00001"): Promise<{ name: string; inFlight: number; state: string }[]> =>
  ((await debug("revisions"))[revision]?.["pods"] ?? []) as { name: string; inFlight: number; state: string }[];

describe("gateway", () => {
  it("routes by host to a ready pod, with the path untouched and the client named", async () => {
    await hello();
    const pod = await bed.pod((req, res) => res.end(JSON.stringify({ url: req.url, headers: req.headers })));
    bed.endpoint("hello-00001", pod);
    const answer = await get("/a%2Fb//c/../d?x=%20", {
      headers: { "x-forwarded-for": "6.6.6.6", "k-network-probe": "queue" },
    });
    expect(answer.status).toBe(200);
    const { url, headers } = JSON.parse(answer.body) as { url: string; headers: Record<string, string> };
    expect(url).toBe("/a%2Fb//d?x=%20");
    expect(headers).toMatchObject({
      host: HOST,
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-proto": "http",
      forwarded: `for=127.0.0.1;host=${HOST};proto=http`,
      "k-proxy-request": "gateway",
    });
    expect(headers).not.toHaveProperty("k-network-probe");
  });

  it("knows cluster-local names on the internal listener only", async () => {
    await hello();
    bed.endpoint("hello-00001", await bed.pod());
    for (const host of ["hello.default", "hello.default.svc", "hello.default.svc.cluster.local", HOST])
      expect((await get("/", { host, base: bed.internal })).status).toBe(200);
    // While the gateway is in the path of a revision's own Service, requests for that end here too.
    for (const host of ["hello-00001.default", "hello-00001.default.svc.cluster.local"]) {
      expect((await get("/", { host, base: bed.internal })).status).toBe(200);
      expect(await debug(`flow-control/explain?host=${host}`)).toMatchObject({ service: "default/hello" });
    }
    expect((await get("/", { host: "hello-00002.default.svc", base: bed.internal })).status).toBe(404);
    const outside = await get("/", { host: "hello.default.svc.cluster.local" });
    expect([outside.status, outside.headers["x-fairway-error"]]).toEqual([404, "ROUTE_NOT_FOUND"]);
  });

  it("divides requests by percent exactly, and sends a tag's host to its revision", async () => {
    bed = await startTestBed();
    bed.revision("hello-00001");
    bed.revision("hello-00002");
    bed.route("hello", [
      { revisionName: "hello-00001", percent: 30, tag: "old", url: "http://old-hello.default.example.com" },
      { revisionName: "hello-00002", percent: 70 },
    ]);
    bed.endpoint("hello-00001", await bed.pod((_req, res) => res.end("one")));
    bed.endpoint("hello-00002", await bed.pod((_req, res) => res.end("two")));
    await until(async () => (await get()).status === 200);
    const { body: first } = await get("/", { host: "old-hello.default.example.com" });
    expect(first).toBe("one");
    // A route of the same fingerprint keeps its deck: exact over every ten.
    let ones = 0;
    for (let i = 0; i < 50; i++) if ((await get()).body === "one") ones++;
    expect(Math.abs(ones - 15)).toBeLessThanOrEqual(3);
  });

  it("passes WebSockets and gRPC-like HTTP/2 with trailers", async () => {
    await hello();
    const sockets = new WebSocketServer({ noServer: true });
    const pod = await bed.pod((_req, res) => {
      res.writeHead(200, { trailer: "grpc-status" });
      res.write("message");
      res.addTrailers({ "grpc-status": "0" });
      res.end();
    });
    bed.endpoint("hello-00001", pod);
    await until(async () => (await get()).status === 200);
    const h2 = new H2Client(bed.gateway.externalPort);
    const answer = await h2.request(
      { ":path": "/svc/Method", ":authority": HOST, ":method": "POST", te: "trailers" },
      "x",
    );
    expect(answer).toMatchObject({ status: 200, body: "message", trailers: { "grpc-status": "0" } });
    h2.close();
    sockets.close();
  });

  it("joins a WebSocket to a pod", async () => {
    await hello({ timeoutSeconds: 1, responseStartTimeoutSeconds: 1 });
    const sockets = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    sockets.on("connection", socket => socket.on("message", data => socket.send(`echo ${String(data as Buffer)}`)));
    await new Promise(resolve => sockets.once("listening", resolve));
    const { port } = sockets.address() as { port: number };
    bed.endpoint("hello-00001", { name: "ws", port, requests: [], close: async () => undefined });
    const socket = new WebSocket(`${bed.external.replace("http", "ws")}/chat`, { headers: { host: HOST } });
    await new Promise((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", reject);
    });
    const heard = new Promise(resolve => socket.once("message", data => resolve((data as Buffer).toString())));
    socket.send("hi");
    expect(await heard).toBe("echo hi");
    expect((await podsOf())[0]?.inFlight).toBe(1);
    socket.terminate();
    await until(async () => (await podsOf())[0]?.inFlight === 0);
    sockets.close();
  });
});

describe("gateway at zero", () => {
  it("holds a request, tells the autoscaler at once, and sends it to the first ready pod", async () => {
    await hello();
    const answer = get("/", { method: "POST", body: "payload" });
    await until(() => bed.reports.some(report => report.poke && report.revisions.length > 0));
    const poke = bed.reports.find(report => report.poke && report.revisions.length > 0);
    expect(poke?.revisions).toEqual([
      {
        namespace: "default",
        revision: "hello-00001",
        averageConcurrentRequests: 1,
        requestCount: 1,
        waiting: 1,
        inFlight: 0,
      },
    ]);
    bed.endpoint("hello-00001", await bed.pod((req, res) => void text(req).then(body => res.end(`got ${body}`))));
    expect(await answer).toMatchObject({ status: 200, body: "got payload" });
  });

  it("takes a starting pod's own word for its readiness while somebody waits", async () => {
    const asked: string[] = [];
    let isUp = false;
    await hello(
      {},
      {
        probe: address => {
          asked.push(address);
          return Promise.resolve(isUp);
        },
      },
    );
    const pod = await bed.pod();
    bed.endpoint("hello-00001", pod, { ready: false });
    await until(async () => (await podsOf()).length === 1);
    expect(asked).toEqual([]);
    const answer = get();
    await until(() => asked.length > 2);
    isUp = true;
    expect((await answer).status).toBe(200);
    const asks = asked.length;
    await get();
    expect(asked).toHaveLength(asks);
  });

  it("tells again when the autoscaler did not hear, and counts what it never heard of", async () => {
    await hello();
    bed.reply = undefined;
    const answer = get();
    await until(async () => (await waiting()) === 1);
    await until(async () => /fairway_gateway_report_failures_total [1-9]/.test(await bed.registry.metrics()));
    bed.reply = { needFull: false, hints: {} };
    await until(() => bed.reports.some(report => report.poke && report.revisions[0]?.waiting === 1));
    bed.endpoint("hello-00001", await bed.pod());
    expect((await answer).status).toBe(200);
  });

  // knative/serving #13211, #12728
  it("answers with the revision's own trouble as soon as it has failed", async () => {
    await hello();
    const plain = get();
    const json = get("/", { headers: { accept: "application/json" } });
    await until(async () => (await waiting()) === 2);
    const message = 'Unable to fetch image "nowhere": not found';
    bed.revision(
      "hello-00001",
      {},
      { conditions: [{ type: "Ready", status: "False", reason: "ImagePullBackOff", message }] },
    );
    const answer = await plain;
    expect(answer.status).toBe(503);
    expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    expect(answer.body).toBe(`revision default/hello-00001 cannot serve: ImagePullBackOff: ${message}\n`);
    expect(JSON.parse((await json).body)).toMatchObject({ error: { code: "REVISION_FAILED", status: 503 } });
  });

  it("bounds who waits in number and time", async () => {
    bed = await startTestBed();
    bed.revision(
      "hello-00001",
      {},
      {
        annotations: { "flowcontrol.fairway.dev/queue-length": "1", "flowcontrol.fairway.dev/max-wait": "200ms" },
        conditions: [
          { type: "ResourcesAvailable", status: "Unknown", reason: "Deploying", message: "pulling the image" },
        ],
      },
    );
    bed.route("hello", [{ revisionName: "hello-00001", percent: 100 }]);
    await until(async () => (await debug("routes"))["external"]?.[HOST] !== undefined);
    const first = get();
    await until(async () => (await waiting()) === 1);
    const second = await get();
    expect([second.status, second.headers["x-fairway-error"], second.headers["retry-after"]]).toEqual([
      429,
      "QUEUE_FULL",
      "30",
    ]);
    const late = await first;
    expect([late.status, late.headers["x-fairway-error"]]).toEqual([503, "NO_POD"]);
    expect(late.body).toContain("Deploying: pulling the image");
  });

  // knative/serving #13583
  it("forgets clients that left, and cancels what they had at pods", async () => {
    await hello({ containerConcurrency: 1 });
    const held: ServerResponse[] = [];
    let cancelled = 0;
    const pod = await bed.pod((_req, res) => {
      held.push(res);
      res.on("close", () => {
        if (!res.writableFinished) cancelled++;
      });
    });
    bed.endpoint("hello-00001", pod);
    const running = get();
    const queued = Array.from({ length: 5 }, () => get());
    running.catch(() => undefined);
    for (const one of queued) one.catch(() => undefined);
    await until(async () => (await waiting()) === 5);
    for (const one of queued) one.leave();
    await until(async () => (await waiting()) === 0);
    expect(pod.requests).toHaveLength(1);
    running.leave();
    await until(() => cancelled === 1);
    await until(async () => (await podsOf())[0]?.inFlight === 0);
    const next = get();
    await until(() => held.length === 2);
    held[1]!.end("free again");
    expect((await next).body).toBe("free again");
  });
});

describe("gateway and pods", () => {
  it("never sends more to a pod than containerConcurrency", async () => {
    await hello({ containerConcurrency: 2 });
    let now = 0;
    let most = 0;
    const app = (_req: unknown, res: ServerResponse): void => {
      most = Math.max(most, ++now);
      setTimeout(() => {
        now--;
        res.end("ok");
      }, 5);
    };
    bed.endpoint("hello-00001", await bed.pod(app));
    const answers = await Promise.all(Array.from({ length: 40 }, () => get()));
    expect(answers.every(answer => answer.status === 200)).toBe(true);
    expect(most).toBe(2);
  });

  // knative/serving #15211
  it("sends nothing to a terminating pod and lets what it has end", async () => {
    await hello();
    const held: ServerResponse[] = [];
    const old = await bed.pod((_req, res) => held.push(res));
    bed.endpoint("hello-00001", old);
    const running = get();
    await until(() => held.length === 1);
    const fresh = await bed.pod((_req, res) => res.end("fresh"));
    bed.endpoint("hello-00001", old, { ready: true, terminating: true });
    bed.endpoint("hello-00001", fresh);
    await until(async () => (await podsOf()).every(pod => pod.name === fresh.name));
    for (let i = 0; i < 20; i++) expect((await get()).body).toBe("fresh");
    held[0]!.end("old");
    expect((await running).body).toBe("old");
    expect(old.requests).toHaveLength(1);
  });

  it("tries another pod when one takes no connection, and only then", async () => {
    await hello();
    const dead = await bed.pod();
    await dead.close();
    const alive = await bed.pod();
    bed.endpoint("hello-00001", dead);
    bed.endpoint("hello-00001", alive);
    await until(async () => (await podsOf()).length === 2);
    for (let i = 0; i < 10; i++) expect((await get("/", { method: "POST", body: "x" })).status).toBe(200);
    expect(alive.requests).toHaveLength(10);
    expect(await bed.registry.metrics()).toMatch(/fairway_gateway_upstream_connect_errors_total\{.*\} [1-9]/);
  });

  // knative/serving #14370, #7791
  it("never sends a request twice once it was sent", async () => {
    await hello();
    const breaking = (req: { socket: { destroy(): void } }): void => void req.socket.destroy();
    const pods = [await bed.pod(breaking), await bed.pod(breaking)];
    for (const pod of pods) bed.endpoint("hello-00001", pod);
    const answer = await get();
    expect([answer.status, answer.headers["x-fairway-error"]]).toEqual([502, "UPSTREAM_FAILED"]);
    expect(pods[0]!.requests.length + pods[1]!.requests.length).toBe(1);
  });

  it("follows the autoscaler's hints", async () => {
    await hello({ containerConcurrency: 10 });
    const [one, two] = [await bed.pod(), await bed.pod()];
    bed.endpoint("hello-00001", one);
    bed.endpoint("hello-00001", two);
    bed.reply = {
      needFull: false,
      hints: { "default/hello-00001": { demotedPods: [two.name], podConcurrency: { [one.name]: 3 } } },
    };
    await until(async () => (await podsOf()).some(pod => (pod as unknown as { demoted: boolean }).demoted));
    for (let i = 0; i < 10; i++) await get();
    expect([one.requests.length, two.requests.length]).toEqual([10, 0]);
  });
});

describe("gateway and the cluster", () => {
  it("reports routes as programmed once it routes them and knows their revisions", async () => {
    bed = await startTestBed();
    bed.route("hello", [{ revisionName: "hello-00001", percent: 100 }]);
    await until(async () => (await debug("routes"))["external"]?.[HOST] !== undefined);
    await until(() => bed.reports.length > 0);
    expect(bed.reports[0]).toMatchObject({ gateway: "gw-1", full: true, programmed: {} });
    bed.revision("hello-00001");
    await until(() => bed.reports.some(report => report.programmed["default/hello"] !== undefined));
    const before = bed.reports.length;
    bed.route("hello", [
      { revisionName: "hello-00001", percent: 100, tag: "t", url: "http://t-hello.default.example.com" },
    ]);
    await until(() =>
      bed.reports.slice(before).some(report => report.programmed["default/hello"]?.includes("t-hello") === true),
    );
    expect(bed.reports.at(-1)?.full).toBe(false);
    const instances = new Set(bed.reports.map(report => report.instance));
    expect(instances.size).toBe(1);
    expect(bed.reports.map(report => report.sequence)).toEqual(bed.reports.map((_, i) => i + 1));
    bed.reply = { needFull: true, hints: {} };
    await until(() => bed.reports.at(-1)?.full === true);
    expect(bed.reports.at(-1)?.programmed).toHaveProperty(["default/hello"]);
  });

  it("measures each second, and once more after traffic has ended", async () => {
    await hello();
    bed.endpoint("hello-00001", await bed.pod((_req, res) => void setTimeout(() => res.end(), 300)));
    await Promise.all([get(), get()]);
    const regular = () => bed.reports.filter(report => !report.poke && report.revisions.length > 0);
    await until(() => regular().some(report => report.revisions[0]?.requestCount === 0));
    const stats = regular().map(report => report.revisions[0]!);
    expect(stats.reduce((sum, stat) => sum + stat.requestCount, 0)).toBe(2);
    const seconds = stats.reduce((sum, stat) => sum + stat.averageConcurrentRequests, 0);
    expect(seconds).toBeGreaterThan(0.5);
    expect(seconds).toBeLessThan(1);
    expect(stats.at(-1)).toMatchObject({ averageConcurrentRequests: 0, requestCount: 0 });
  });

  it("goes on with what it knew while the API server is away, and catches up", async () => {
    await hello();
    const pod = await bed.pod();
    bed.endpoint("hello-00001", pod);
    await until(async () => (await get()).status === 200);
    bed.api.isAway = true;
    bed.api.breakWatches();
    for (let i = 0; i < 5; i++) expect((await get()).status).toBe(200);
    bed.revision("bye-00001");
    bed.route("bye", [{ revisionName: "bye-00001", percent: 100 }]);
    bed.endpoint("bye-00001", pod);
    bed.api.isAway = false;
    // What happened meanwhile is found by listing, since the watch's version is too old.
    const { KubeError } = await import("./watch/kube-client.ts");
    await until(() => bed.api.watching === 6);
    bed.api.breakWatches(new KubeError("too old resource version", 410));
    await until(async () => (await get("/", { host: "bye.default.example.com" })).status === 200);
  });

  it("forgets a deleted route and revision", async () => {
    await hello();
    bed.endpoint("hello-00001", await bed.pod());
    await until(async () => (await get()).status === 200);
    expect(await bed.registry.metrics()).toContain('revision="hello-00001"');
    bed.api.delete("/apis/serving.knative.dev/v1/routes", "default", "hello");
    await until(async () => (await get()).status === 404);
    bed.api.delete("/apis/serving.knative.dev/v1/revisions", "default", "hello-00001");
    await until(async () => (await debug("revisions"))["default/hello-00001"] === undefined);
    expect(await bed.registry.metrics()).not.toContain('revision="hello-00001"');
  });

  it("drains: not ready first, running requests end, nothing new, admin last", async () => {
    await hello({}, { env: { SHUTDOWN_DELAY_MS: "300" } });
    const held: ServerResponse[] = [];
    bed.endpoint(
      "hello-00001",
      await bed.pod((req, res) => {
        if (req.url === "/long") held.push(res);
        else res.end("quick");
      }),
    );
    await until(async () => (await get()).status === 200);
    const running = get("/long");
    await until(() => held.length === 1);
    const stopped = bed.gateway.stop();
    const ready = await fetch(`http://127.0.0.1:${bed.gateway.adminPort}/readyz`);
    expect([ready.status, await ready.text()]).toEqual([503, "leaving\n"]);
    const late = await get();
    expect([late.status, late.headers.connection]).toEqual([200, "close"]);
    await until(async () => (await get().catch(() => undefined)) === undefined);
    held[0]!.end("whole");
    expect((await running).body).toBe("whole");
    await stopped;
    expect(bed.api.closed).toBe(true);
    await expect(fetch(`http://127.0.0.1:${bed.gateway.adminPort}/readyz`)).rejects.toThrow();
  });

  it("leaves when its own endpoint says that it is being deleted, though no signal came", async () => {
    await hello();
    const slice = (terminating: boolean) => ({
      metadata: {
        name: "fairway-gateway-internal-abc",
        namespace: "fairway-system",
        labels: { "kubernetes.io/service-name": "fairway-gateway-internal" },
      },
      ...{
        addressType: "IPv4",
        ports: [{ name: "http", port: 8081 }],
        endpoints: [
          { addresses: ["127.0.0.9"], conditions: { ready: !terminating, terminating }, targetRef: { name: "gw-1" } },
        ],
      },
    });
    const path = "/apis/discovery.k8s.io/v1/namespaces/fairway-system/endpointslices";
    bed.api.apply(path, slice(false));
    await new Promise(resolve => setTimeout(resolve, 20));
    expect((await fetch(`http://127.0.0.1:${bed.gateway.adminPort}/readyz`)).status).toBe(200);
    bed.api.apply(path, slice(true));
    await bed.gateway.stopped;
  });
});

describe("gateway under flow control", () => {
  const GROUP = "/apis/flowcontrol.fairway.dev/v1";
  const limited = (name: string, shares: number) => ({
    metadata: { name, namespace: "", ...{ uid: `uid-${name}` } },
    ...{
      spec: {
        type: "Limited",
        limited: { nominalConcurrencyShares: shares, borrowingLimitPercent: 0, limitResponse: { type: "Reject" } },
      },
    },
  });
  const everything = (name: string, level: string, header?: string) => ({
    metadata: { name, namespace: "", ...{ uid: `uid-${name}` } },
    ...{
      spec: {
        priorityLevelConfiguration: { name: level },
        matchingPrecedence: header === undefined ? 200 : 100,
        rules: [
          {
            subjects: [{ kind: "Group", group: { name: "*" } }],
            nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
            ...(header === undefined ? {} : { headers: [{ name: header }] }),
          },
        ],
      },
    },
  });

  it("names schema and level, refuses over a level's seats, and lets the other level through", async () => {
    await hello(
      {},
      {
        env: { MAX_REQUESTS_INFLIGHT: "5", MAX_MUTATING_REQUESTS_INFLIGHT: "0" },
        before: api => {
          api.apply(`${GROUP}/prioritylevelconfigurations`, limited("free", 1));
          api.apply(`${GROUP}/prioritylevelconfigurations`, limited("paid", 1));
          api.apply(`${GROUP}/prioritylevelconfigurations`, limited("rest", 1000));
          api.apply(`${GROUP}/flowschemas`, everything("free", "free"));
          api.apply(`${GROUP}/flowschemas`, everything("paid", "paid", "X-Paid"));
        },
      },
    );
    const held: ServerResponse[] = [];
    bed.endpoint("hello-00001", await bed.pod((_req, res) => held.push(res)));
    const first = get();
    await until(() => held.length === 1);
    const refused = await get();
    expect(refused.status).toBe(429);
    expect(refused.headers).toMatchObject({
      "retry-after": "1",
      "x-fairway-error": "TOO_MANY_REQUESTS",
      "x-kubernetes-pf-flowschema-uid": "uid-free",
      "x-kubernetes-pf-prioritylevel-uid": "uid-free",
    });
    const paid = get("/", { headers: { "x-paid": "yes" } });
    await until(() => held.length === 2);
    for (const res of held) res.end("ok");
    expect((await paid).headers["x-kubernetes-pf-flowschema-uid"]).toBe("uid-paid");
    expect((await first).status).toBe(200);
    const dump = await fetch(
      `http://127.0.0.1:${bed.gateway.adminPort}/debug/api_priority_and_fairness/dump_priority_levels`,
    );
    expect(await dump.text()).toMatch(/^free, +0, +true, +false, +0, +0, +1, +1, +0, +0$/m);
  });

  it("holds no seat for a request that waits for its place, nor for a joined WebSocket", async () => {
    await hello();
    const waitingOne = get();
    await until(async () => (await waiting()) === 1);
    const executing = async (): Promise<number> => {
      const { levels } = (await debug("flow-control")) as unknown as { levels: { executing: number }[] };
      return levels.reduce((sum, level) => sum + level.executing, 0);
    };
    expect(await executing()).toBe(0);
    const sockets = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    await new Promise(resolve => sockets.once("listening", resolve));
    const { port } = sockets.address() as { port: number };
    bed.endpoint("hello-00001", { name: "ws", port, requests: [], close: async () => undefined });
    expect((await waitingOne).status).toBe(426);
    const socket = new WebSocket(`${bed.external.replace("http", "ws")}/`, { headers: { host: HOST } });
    await new Promise((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", reject);
    });
    expect((await podsOf())[0]?.inFlight).toBe(1);
    expect(await executing()).toBe(0);
    socket.terminate();
    sockets.close();
  });
});

describe("gateway on the wire", () => {
  it("refuses what is not for a path, without touching a pod", async () => {
    await hello();
    const raw = await RawClient.open(bed.gateway.externalPort);
    raw.send("OPTIONS * HTTP/1.1", `Host: ${HOST}`, "Connection: close", "", "");
    expect(await raw.all()).toMatch(/^HTTP\/1.1 400 /);
  });

  it("answers what fails before the body is sent, and keeps the connection in step", async () => {
    await hello();
    const raw = await RawClient.open(bed.gateway.externalPort);
    raw.send("POST /x HTTP/1.1", "Host: nobody", "Content-Length: 5", "", "hello");
    raw.send("GET /y HTTP/1.1", "Host: nobody", "Connection: close", "", "");
    const received = await raw.all();
    expect(received.match(/HTTP\/1.1 404/g)).toHaveLength(2);
  });
});

describe("manifests", () => {
  it("name only variables that the gateway reads", () => {
    const manifest = readFileSync(new URL("../../manifests/base/gateway.yaml", import.meta.url), "utf8");
    const source = readFileSync(new URL("./config.ts", import.meta.url), "utf8");
    const names = [...manifest.matchAll(/name: ([A-Z][A-Z_]+),/g)].map(match => match[1]!);
    expect(names).toContain("POD_NAME");
    for (const name of names) if (name !== "NODE_OPTIONS") expect(source).toContain(`${name}:`);
  });
});
