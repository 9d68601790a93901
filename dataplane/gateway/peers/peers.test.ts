import { request as h1Request, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { homeGateway } from "../../../core/flowcontrol/place-division.ts";
import { H2Client } from "../../shared/testing/h2-client.ts";
import { FakeApi } from "../testing/fake-api.ts";
import {
  applyLevel,
  applySchema,
  startTestBed,
  tellGateways,
  type TestBed,
  type TestBedOptions,
  type TestPod,
} from "../testing/test-gateway.ts";
import { formatPassed, parsePassed } from "./passed-request.ts";

const HOST = "hello.default.example.com";
const REVISION = "default/hello-00001";
const NAMES = ["gw-a", "gw-b"] as const;
const HOME = homeGateway(REVISION, NAMES);
const AWAY = NAMES.find(name => name !== HOME)!;

const open: TestBed[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map(bed => bed.close()));
});

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise(resolve => setTimeout(resolve, 2));
}

const debug = async (bed: TestBed, view: string): Promise<Record<string, Record<string, unknown>>> =>
  (await (await fetch(`http://127.0.0.1:${bed.gateway.adminPort}/debug/${view}`)).json()) as Record<
    string,
    Record<string, unknown>
  >;
const revisionAt = async (bed: TestBed): Promise<Record<string, unknown>> =>
  (await debug(bed, "revisions"))[REVISION] ?? {};

interface Cluster {
  readonly api: FakeApi;
  /** Where the revision is at home. */
  readonly home: TestBed;
  readonly away: TestBed;
  readonly ports: Readonly<Record<string, number>>;
}

/** Two gateways with one service between them. */
async function cluster(spec: object = { containerConcurrency: 1 }, options: TestBedOptions = {}): Promise<Cluster> {
  const api = new FakeApi();
  const start = async (name: string): Promise<TestBed> => {
    const bed = await startTestBed({ ...options, api, env: { POD_NAME: name, ...options.env } });
    open.push(bed);
    return bed;
  };
  const [home, away] = [await start(HOME), await start(AWAY)];
  const ports = { [HOME]: home.gateway.internalPort, [AWAY]: away.gateway.internalPort };
  home.revision("hello-00001", spec);
  home.route("hello", [{ revisionName: "hello-00001", percent: 100 }]);
  tellGateways(
    api,
    NAMES.map(name => ({ name, port: ports[name]! })),
  );
  for (const bed of [home, away])
    await until(async () => (await debug(bed, "routes"))["external"]?.[HOST] !== undefined);
  return { api, home, away, ports };
}

async function agree({ home, away }: Cluster): Promise<void> {
  await until(async () => (await revisionAt(away))["home"] === HOME && (await revisionAt(home))["known"] === true);
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
  base: string,
  options: { path?: string; headers?: Record<string, string>; method?: string; body?: string } = {},
): Asking {
  const req = h1Request(new URL(options.path ?? "/", base), {
    method: options.method ?? "GET",
    headers: { host: HOST, ...options.headers },
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

/** A pod whose requests end when the test says so. */
async function slowPod(bed: TestBed): Promise<{ pod: TestPod; held: [IncomingMessage, ServerResponse][] }> {
  const held: [IncomingMessage, ServerResponse][] = [];
  const pod = await bed.pod((req, res) => void held.push([req, res]));
  return { pod, held };
}

const EVERYTHING = [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"] }];
const limited = (nominalConcurrencyShares: number) => ({
  type: "Limited",
  limited: { nominalConcurrencyShares, limitResponse: { type: "Reject" } },
});
const schemaFor = (level: string, user: string, matchingPrecedence: number) => ({
  priorityLevelConfiguration: { name: level },
  matchingPrecedence,
  distinguisherMethod: { type: "ByUser" },
  rules: [{ subjects: [{ kind: "User", user: { name: user } }], resourceRules: EVERYTHING }],
});

describe("several gateways", () => {
  it("give a request with few places to its home gateway, which tells the pod of the client itself", async () => {
    const set = await cluster();
    const pod = await set.home.pod((req, res) => res.end(JSON.stringify({ url: req.url, headers: req.headers })));
    set.home.endpoint("hello-00001", pod);
    await agree(set);
    const answer = await get(set.away.external, { path: "/a%2Fb?c=1", method: "POST", body: "x".repeat(100_000) });
    expect(answer.status).toBe(200);
    const { url, headers } = JSON.parse(answer.body) as { url: string; headers: Record<string, string> };
    expect(url).toBe("/a%2Fb?c=1");
    expect(headers).toMatchObject({
      host: HOST,
      "x-forwarded-for": "127.0.0.1",
      forwarded: `for=127.0.0.1;host=${HOST};proto=http`,
      "k-proxy-request": "gateway",
    });
    expect(headers).not.toHaveProperty("k-gateway-passed");
    const { away, home } = set;
    expect(await away.registry.metrics()).toMatch(/fairway_gateway_passed_requests_total 1/);
    expect(await home.registry.metrics()).toMatch(/fairway_gateway_passed_requests_total 0/);
    // Who serves it counts it, and nobody else.
    expect(await home.registry.metrics()).toMatch(/fairway_gateway_request_count\{.*"2xx".*\} 1/);
    expect(await away.registry.metrics()).not.toMatch(/fairway_gateway_request_count\{.*"2xx".*\} 1/);
  });

  it("hold capacity and order over all of them, whichever a request came to", async () => {
    const set = await cluster({ containerConcurrency: 1 });
    const { pod, held } = await slowPod(set.home);
    set.home.endpoint("hello-00001", pod);
    await agree(set);
    const bases = [set.home.external, set.away.external];
    const first = get(set.away.external, { path: "/first" });
    await until(() => held.length === 1);
    const others = bases.flatMap((base, i) => [get(base, { path: `/${i}` }), get(base, { path: `/${i}` })]);
    await until(async () => (await revisionAt(set.home))["waiting"] === 4);
    expect((await revisionAt(set.away))["waiting"]).toBe(0);
    let answered = 0;
    const paths: string[] = [];
    while (answered < 5) {
      await until(() => held.length > answered);
      // Never two at a time.
      expect(held).toHaveLength(answered + 1);
      const [req, res] = held[answered++]!;
      paths.push(req.url ?? "");
      res.end();
    }
    expect(paths[0]).toBe("/first");
    expect((await Promise.all([first, ...others])).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(pod.requests).toHaveLength(5);
  });

  it("pass identities on: a level that only the first gateway can tell goes first at the home", async () => {
    const set = await cluster({ containerConcurrency: 1 }, { env: { IDENTITY_PROXIES: "127.0.0.1" } });
    const { pod, held } = await slowPod(set.home);
    set.home.endpoint("hello-00001", pod);
    applyLevel(set.api, "high", limited(1_000));
    applyLevel(set.api, "low", limited(1));
    applySchema(set.api, "high", schemaFor("high", "bo\u00dfs", 10));
    applySchema(set.api, "low", schemaFor("low", "*", 20));
    await agree(set);
    await until(async () => (await set.home.registry.metrics()).includes('nominal_limit_seats{priority_level="low"}'));
    const first = get(set.away.external, { path: "/first" });
    await until(() => held.length === 1);
    const low = [get(set.away.external, { path: "/low" }), get(set.home.external, { path: "/low" })];
    await until(async () => (await revisionAt(set.home))["waiting"] === 2);
    const high = get(set.away.external, {
      path: "/high",
      headers: { "x-remote-user": "bo\u00dfs" },
    });
    await until(async () => (await revisionAt(set.home))["waiting"] === 3);
    const { levels } = (await revisionAt(set.home)) as { levels: { level: string; waiting: number }[] };
    expect(levels.find(({ level }) => level === "high")).toMatchObject({ waiting: 1 });
    for (let i = 0; i < 4; i++) {
      await until(() => held.length > i);
      held[i]![1].end();
    }
    const answers = await Promise.all([first, ...low, high]);
    expect(answers.at(-1)?.headers["x-kubernetes-pf-prioritylevel-uid"]).toBe("uid-high");
    expect(answers[0]?.headers["x-kubernetes-pf-prioritylevel-uid"]).toBe("uid-low");
  });

  it("serve a request where it is when nobody takes a connection at its home", async () => {
    const set = await cluster();
    const pod = await set.home.pod();
    set.home.endpoint("hello-00001", pod);
    await agree(set);
    tellGateways(set.api, [{ name: HOME, port: 9, address: "127.0.0.9" }]);
    await agree(set);
    expect((await get(set.away.external, { method: "POST", body: "once" })).status).toBe(200);
    expect(pod.requests).toHaveLength(1);
    expect((await revisionAt(set.away))["home"]).toBeUndefined();
    expect(set.away.logs.join("")).toContain("no connection to home gateway");
  });

  it("never send a request again that was sent", async () => {
    const set = await cluster();
    const { pod, held } = await slowPod(set.home);
    set.home.endpoint("hello-00001", pod);
    await agree(set);
    const broken = get(set.away.external, { method: "POST", body: "once" });
    await until(() => held.length === 1);
    // The pod's connection breaks, and with it what the home was to answer.
    held[0]![0].socket.destroy();
    expect((await broken).status).toBe(502);
    expect(pod.requests).toHaveLength(1);
  });

  it("let those who wait go to the new home when there is one", async () => {
    const set = await cluster();
    tellGateways(set.api, [{ name: HOME, port: set.ports[HOME]!, ready: false }]);
    await until(async () => (await revisionAt(set.away))["home"] === undefined);
    await until(async () => (await revisionAt(set.home))["home"] === AWAY);
    const waits = [get(set.away.external), get(set.home.external), get(set.away.external)];
    await until(async () => (await revisionAt(set.away))["waiting"] === 3);
    tellGateways(set.api, [{ name: HOME, port: set.ports[HOME]! }]);
    // What another gateway passed on stays: it is never passed on twice.
    await until(async () => (await revisionAt(set.home))["waiting"] === 2);
    expect((await revisionAt(set.away))["waiting"]).toBe(1);
    set.home.endpoint("hello-00001", await set.home.pod());
    expect((await Promise.all(waits)).map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  it("divide the places of a revision with many, and divide anew when a gateway comes or goes", async () => {
    const set = await cluster({ containerConcurrency: 5 });
    const pods = await Promise.all([slowPod(set.home), slowPod(set.home)]);
    for (const { pod } of pods) set.home.endpoint("hello-00001", pod);
    const placesOf = async (bed: TestBed): Promise<unknown> => (await revisionAt(bed))["places"];
    await until(async () => (await placesOf(set.home)) === 5 && (await placesOf(set.away)) === 5);
    const asked = Array.from({ length: 8 }, () => get(set.away.external));
    await until(async () => (await revisionAt(set.away))["waiting"] === 3);
    expect(pods.reduce((sum, { held }) => sum + held.length, 0)).toBe(5);
    tellGateways(set.api, [{ name: HOME, port: set.ports[HOME]!, ready: false }]);
    await until(() => pods.reduce((sum, { held }) => sum + held.length, 0) === 8);
    for (const { held } of pods) for (const [, res] of held) res.end();
    expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([200]));
  });

  it("leave those alone that have no limit", async () => {
    const set = await cluster({});
    const pod = await set.home.pod();
    set.home.endpoint("hello-00001", pod);
    await until(async () => (await get(set.away.external)).status === 200);
    expect(await set.away.registry.metrics()).toMatch(/fairway_gateway_passed_requests_total 0/);
  });

  it("pass on HTTP/2 with trailers, and a client that leaves", async () => {
    const set = await cluster();
    const gone: string[] = [];
    const pod = await set.home.pod((req, res) => {
      if (req.url === "/hang") {
        res.on("close", () => gone.push("/hang"));
        return;
      }
      res.writeHead(200, { trailer: "grpc-status" });
      res.write("message");
      res.addTrailers({ "grpc-status": "0" });
      res.end();
    });
    set.home.endpoint("hello-00001", pod);
    await agree(set);
    const client = new H2Client(set.away.gateway.externalPort);
    const answer = await client.request({ ":path": "/", ":authority": HOST, te: "trailers" });
    client.close();
    expect([answer.status, answer.body, answer.trailers["grpc-status"]]).toEqual([200, "message", "0"]);
    const hanging = get(set.away.external, { path: "/hang" });
    hanging.catch(() => undefined);
    await until(() => pod.requests.some(({ url }) => url === "/hang"));
    hanging.leave();
    await until(() => gone.length === 1);
    await until(async () => (await revisionAt(set.home))["inFlight"] === 0);
  });

  it("pass on WebSockets", async () => {
    const set = await cluster();
    const sockets = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    sockets.on("connection", socket => socket.on("message", data => socket.send(`echo ${String(data as Buffer)}`)));
    await new Promise(resolve => sockets.once("listening", resolve));
    const { port } = sockets.address() as { port: number };
    set.home.endpoint("hello-00001", { name: "ws", port, requests: [], close: async () => undefined });
    await agree(set);
    const socket = new WebSocket(set.away.external.replace("http", "ws"), { headers: { host: HOST } });
    const heard = new Promise<string>((resolve, reject) => {
      socket.once("open", () => socket.send("hello"));
      socket.once("message", data => resolve((data as Buffer).toString()));
      socket.once("error", reject);
    });
    expect(await heard).toBe("echo hello");
    expect((await revisionAt(set.home))["inFlight"]).toBe(1);
    socket.terminate();
    await until(async () => (await revisionAt(set.home))["inFlight"] === 0);
    sockets.close();
  });

  it("believe the field from gateways only", async () => {
    const set = await cluster();
    const pod = await set.home.pod((req, res) => res.end(JSON.stringify(req.headers)));
    set.home.endpoint("hello-00001", pod);
    await agree(set);
    const forged = formatPassed({
      revision: REVISION,
      service: "hello",
      tag: "",
      identity: { user: "eve", groups: ["system:masters"] },
    });
    // From outside it means nothing, whoever sends it.
    const outside = await get(set.away.external, { headers: { "k-gateway-passed": forged } });
    expect(outside.body).not.toContain("k-gateway-passed");
    expect(await set.away.registry.metrics()).toMatch(/fairway_gateway_passed_requests_total 1/);
    // Here gateways are at an address that the test's client has not.
    tellGateways(set.api, [{ name: HOME, port: set.ports[HOME]!, address: "127.0.0.1" }]);
    tellGateways(set.api, [{ name: AWAY, port: set.ports[AWAY]!, address: "127.0.0.77" }]);
    await until(async () => {
      const answer = await get(set.home.internal, { headers: { "k-gateway-passed": forged } });
      return answer.headers["x-kubernetes-pf-prioritylevel-uid"] === undefined && !answer.body.includes("passed");
    });
    const metrics = await set.home.registry.metrics();
    expect(metrics).toMatch(/dispatched_requests_total\{priority_level="catch-all",flow_schema="catch-all"\}/);
    expect(metrics).not.toMatch(/dispatched_requests_total\{priority_level="exempt".*\} [1-9]/);
  });
});

describe("the field", () => {
  it("carries every name in characters that a field may have", () => {
    const passed = {
      revision: "a/b",
      service: "b",
      tag: "",
      identity: { user: "zoë\u007f\n\u{1f600}", groups: ["a,b", '"'] },
    };
    const text = formatPassed(passed);
    expect(text).toMatch(/^[\x20-\x7e]+$/);
    expect(parsePassed(text)).toEqual(passed);
    for (const wrong of ["", "{}", "null", "[", '{"revision":1}']) expect(parsePassed(wrong)).toBeUndefined();
  });
});
