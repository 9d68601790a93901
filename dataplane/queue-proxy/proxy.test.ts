import { type IncomingMessage, request as httpRequest, type ServerResponse } from "node:http";
import { afterEach, describe, expect, it, vi } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { PodStatSchema } from "../../api/wire/stats.ts";
import { H2Client } from "../shared/testing/h2-client.ts";
import { call, type CallOptions, type CallResult } from "./testing/call.ts";
import { startTestPod, type TestPod, type TestPodOptions } from "./testing/pod.ts";

// Time is in the tests' hand; this bounds the machine's.
vi.setConfig({ testTimeout: 20_000 });

let pod: TestPod | undefined;
afterEach(async () => {
  await pod?.close();
  pod = undefined;
});

const start = async (options: TestPodOptions): Promise<TestPod> => (pod = await startTestPod(options));
const hello = (_req: IncomingMessage, res: ServerResponse): void => void res.end("hello");

/** An app that keeps its requests until the test answers them. */
function holdingApp() {
  const held: { path: string; res: ServerResponse; gone: boolean }[] = [];
  let most = 0;
  const open = (): number => held.filter(request => !request.res.writableEnded && !request.gone).length;
  return {
    held,
    most: () => most,
    open,
    app: (req: IncomingMessage, res: ServerResponse): void => {
      const request = { path: req.url ?? "", res, gone: false };
      res.on("close", () => {
        if (!res.writableEnded) request.gone = true;
      });
      held.push(request);
      most = Math.max(most, open());
    },
  };
}

describe("requests", () => {
  it("reach the app with Host and the user's fields, without the system's", async () => {
    let seen: IncomingMessage["headers"] = {};
    const { url } = await start({
      app: (req, res) => {
        seen = req.headers;
        res.writeHead(201, { "x-from-app": "1" }).end("made");
      },
    });
    const answer = await call(url, {
      headers: {
        host: "hello.default.example.com",
        "k-proxy-request": "gateway",
        "x-forwarded-for": "1.2.3.4",
        "x-forwarded-proto": "https",
        "x-user": "u",
      },
    });
    expect(answer).toMatchObject({ status: 201, body: "made", headers: { "x-from-app": "1" } });
    expect(seen).toMatchObject({
      host: "hello.default.example.com",
      "x-forwarded-for": "1.2.3.4",
      "x-forwarded-proto": "https",
      forwarded: "for=1.2.3.4;proto=https",
      "x-user": "u",
    });
    expect(Object.keys(seen).filter(name => name.startsWith("k-"))).toEqual([]);
  });

  it("stream both ways at once", async () => {
    const { url } = await start({ app: (req, res) => void req.pipe(res) });
    const sent = httpRequest(url, { method: "POST", agent: false });
    const { promise: response, resolve } = Promise.withResolvers<IncomingMessage>();
    sent.on("response", resolve);
    sent.write("one");
    const res = await response;
    const next = (): Promise<string> => new Promise(got => res.once("data", (chunk: Buffer) => got(chunk.toString())));
    expect(await next()).toBe("one");
    sent.write("two");
    expect(await next()).toBe("two");
    sent.end();
    await new Promise(ended => res.once("end", ended));
  });

  it("hold the app back when the client does not read, and lose nothing", async () => {
    const size = 32 << 20;
    let written = 0;
    let stalled = false;
    const { url } = await start({
      app: (_req, res) => {
        const chunk = Buffer.alloc(1 << 16, "x");
        const write = (): void => {
          while (written < size) {
            written += chunk.length;
            if (!res.write(chunk)) {
              stalled = true;
              res.once("drain", write);
              return;
            }
          }
          res.end();
        };
        write();
      },
    });
    const { promise: response, resolve } = Promise.withResolvers<IncomingMessage>();
    httpRequest(url, { agent: false }, resolve).end();
    const res = await response;
    let before = -1;
    await pod?.until(() => {
      const same = stalled && written === before;
      before = written;
      return same;
    });
    expect(written).toBeLessThan(size);
    let received = 0;
    for await (const chunk of res as AsyncIterable<Buffer>) received += chunk.length;
    expect(received).toBe(size);
  });

  it("get a clear 502 when the app dies in the middle of them", async () => {
    const { url } = await start({ app: req => void req.socket.destroy() });
    const answer = await call(url);
    expect(answer.status).toBe(502);
    expect(answer.body).toMatch(/^the app ended the connection before it answered: /);
  });

  it("are cut off visibly when the app dies after it began to answer", async () => {
    const { url } = await start({
      app: (req, res) => {
        res.write("begun");
        setImmediate(() => req.socket.destroy());
      },
    });
    expect(await call(url)).toMatchObject({ status: 200, complete: false });
  });

  it("wait a moment for an app that is being restarted, and are sent once", async () => {
    let served = 0;
    const here = await start({ app: (_req, res) => void res.end(String(++served)) });
    await here.crashApp();
    const answer = call(here.url, { method: "POST", body: "x" });
    await here.pass(500);
    await here.restartApp();
    let result: CallResult | undefined;
    void answer.then(got => (result = got));
    await here.until(() => result !== undefined, 25);
    expect(result).toMatchObject({ status: 200, body: "1" });
  });

  it("get a clear 502 when the app stays away", async () => {
    const here = await start({ app: hello });
    await here.crashApp();
    let result: CallResult | undefined;
    void call(here.url).then(got => (result = got));
    await here.until(() => result !== undefined, 25);
    expect(result?.status).toBe(502);
    expect(result?.body).toMatch(/the app does not accept connections on port \d+: connect ECONNREFUSED/);
  });

  it("cancel at the app when the client leaves", async () => {
    const app = holdingApp();
    const here = await start({ app: app.app });
    const client = new AbortController();
    const gone = call(here.url, { signal: client.signal }).catch(() => "gone");
    await here.until(() => app.held.length === 1);
    client.abort();
    expect(await gone).toBe("gone");
    await here.until(() => app.held[0]?.gone === true);
  });
});

describe("containerConcurrency", () => {
  const env = { CONTAINER_CONCURRENCY: "2", QUEUE_DEPTH: "3" };

  it("is never exceeded; what waits is served in order; more than the queue holds is refused", async () => {
    const app = holdingApp();
    const here = await start({ app: app.app, env });
    const answers: CallResult[] = [];
    for (let i = 1; i <= 5; i++) {
      void call(here.url, { path: `/${i}` }).then(answer => answers.push(answer));
      await here.until(() => here.queueProxy.inside + here.queueProxy.waiting === i);
    }
    const refused = await call(here.url);
    expect(refused).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
    expect(refused.body).toBe("queue full: 3 requests wait for the app, limit 3\n");
    for (let done = 0; done < 5; done++) {
      await here.until(() => app.held.length > done);
      app.held[done]?.res.end("ok");
      await here.until(() => answers.length === done + 1);
    }
    expect(app.held.map(({ path }) => path)).toEqual(["/1", "/2", "/3", "/4", "/5"]);
    expect(app.most()).toBe(2);
    expect(answers.every(({ status }) => status === 200)).toBe(true);
  });

  it("lets go of a waiting client that leaves, before it costs the app anything", async () => {
    const app = holdingApp();
    const here = await start({ app: app.app, env: { CONTAINER_CONCURRENCY: "1" } });
    const first = call(here.url, { path: "/first" });
    await here.until(() => app.held.length === 1);
    const client = new AbortController();
    const leaving = call(here.url, { path: "/leaving", signal: client.signal }).catch(() => "gone");
    await here.until(() => here.queueProxy.waiting === 1);
    client.abort();
    await leaving;
    await here.until(() => here.queueProxy.waiting === 0);
    app.held[0]?.res.end();
    await first;
    expect(app.held.map(({ path }) => path)).toEqual(["/first"]);
    await here.until(() => here.queueProxy.inside === 0);
  });

  it("gives a request that waited its whole time at the app (knative/serving#10792)", async () => {
    const app = holdingApp();
    const here = await start({ app: app.app, env: { CONTAINER_CONCURRENCY: "1", REVISION_TIMEOUT_SECONDS: "10" } });
    const first = call(here.url);
    await here.until(() => app.held.length === 1);
    await here.pass(5000);
    const second = call(here.url);
    await here.until(() => here.queueProxy.waiting === 1);
    await here.pass(4900);
    app.held[0]?.res.end("in time");
    expect((await first).body).toBe("in time");
    await here.until(() => app.held.length === 2);
    // Its own ten seconds begin only now.
    await here.pass(9000);
    app.held[1]?.res.end("in time too");
    expect(await second).toMatchObject({ status: 200, body: "in time too" });
  });
});

describe("timeouts", () => {
  const ask = async (here: TestPod, options: CallOptions, ms: number, began: () => boolean): Promise<CallResult> => {
    let result: CallResult | undefined;
    void call(here.url, options).then(got => (result = got));
    await here.until(began);
    await here.pass(ms);
    await here.until(() => result !== undefined);
    return result!;
  };

  it("whole: 504 when nothing of the answer came in time", async () => {
    const app = holdingApp();
    const here = await start({ app: app.app, env: { REVISION_TIMEOUT_SECONDS: "10" } });
    const result = await ask(here, {}, 10_000, () => app.held.length === 1);
    expect(result).toMatchObject({ status: 504, complete: true });
    expect(result.body).toMatch(/^request timeout: /);
    await here.until(() => app.held[0]?.gone === true);
  });

  it("whole: an answer that has begun ends there, cleanly", async () => {
    const app = holdingApp();
    const here = await start({ app: app.app, env: { REVISION_TIMEOUT_SECONDS: "10" } });
    const result = await ask(here, {}, 10_000, () => {
      app.held[0]?.res.writeHead(200).write("begun");
      return app.held.length === 1;
    });
    expect(result).toMatchObject({ status: 200, body: "begun", complete: true });
  });

  it("whole: an answer that promised more than came is cut off visibly", async () => {
    const app = holdingApp();
    const here = await start({ app: app.app, env: { REVISION_TIMEOUT_SECONDS: "10" } });
    const result = await ask(here, {}, 10_000, () => {
      app.held[0]?.res.writeHead(200, { "content-length": "100" }).write("begun");
      return app.held.length === 1;
    });
    expect(result).toMatchObject({ status: 200, complete: false });
  });

  it("response start: 504 before the first byte, no bound after it", async () => {
    const app = holdingApp();
    const env = { REVISION_TIMEOUT_SECONDS: "60", REVISION_RESPONSE_START_TIMEOUT_SECONDS: "5" };
    const here = await start({ app: app.app, env });
    expect(await ask(here, {}, 5000, () => app.held.length === 1)).toMatchObject({ status: 504 });
    let result: CallResult | undefined;
    void call(here.url).then(got => (result = got));
    await here.until(() => app.held.length === 2);
    app.held[1]?.res.write("begun");
    await here.pass(20_000);
    app.held[1]?.res.end(", done");
    await here.until(() => result !== undefined);
    expect(result).toMatchObject({ status: 200, body: "begun, done", complete: true });
  });

  it("idle: counts from the last part of the answer", async () => {
    const app = holdingApp();
    const here = await start({ app: app.app, env: { REVISION_IDLE_TIMEOUT_SECONDS: "3" } });
    let result: CallResult | undefined;
    const { promise: begun, resolve } = Promise.withResolvers<void>();
    let parts = 0;
    const sent = httpRequest(here.url, { agent: false }, res => {
      res.on("data", () => {
        parts++;
        resolve();
      });
      res.on("close", () => (result = { status: 200, headers: {}, body: "", complete: res.complete }));
    });
    sent.end();
    await here.until(() => app.held.length === 1);
    app.held[0]?.res.write("a");
    await begun;
    await here.pass(2500);
    app.held[0]?.res.write("b");
    await here.until(() => parts === 2);
    await here.pass(2500);
    expect(result).toBeUndefined();
    await here.pass(600);
    await here.until(() => result !== undefined);
    expect(result?.complete).toBe(true);
  });
});

describe("WebSocket", () => {
  it("lives beyond every timeout once the app agreed, and holds its place", async () => {
    const env = {
      CONTAINER_CONCURRENCY: "1",
      REVISION_TIMEOUT_SECONDS: "5",
      REVISION_RESPONSE_START_TIMEOUT_SECONDS: "5",
      REVISION_IDLE_TIMEOUT_SECONDS: "5",
    };
    const here = await start({
      app: hello,
      env,
      prepare: server => {
        new WebSocketServer({ server: server as never }).on("connection", socket =>
          socket.on("message", data => socket.send((data as Buffer).toString())),
        );
      },
    });
    const socket = new WebSocket(here.url.replace("http", "ws"));
    await new Promise(resolve => socket.once("open", resolve));
    await here.pass(60_000);
    const echoed = new Promise(resolve => socket.once("message", data => resolve((data as Buffer).toString())));
    socket.send("still here");
    expect(await echoed).toBe("still here");
    expect(here.queueProxy.inside).toBe(1);
    socket.close();
    await here.until(() => here.queueProxy.inside === 0);
  });
});

describe("h2c app", () => {
  it("is reached over HTTP/2 from HTTP/1.1 and HTTP/2 clients, trailers included", async () => {
    const seen: string[] = [];
    const here = await start({
      protocol: "h2c",
      app: (req, res) => {
        seen.push(`${req.httpVersion} ${String(req.headers[":authority"])} ${String(req.headers.te)}`);
        res.setHeader("trailer", "grpc-status");
        res.write("hi");
        res.addTrailers({ "grpc-status": "0" });
        res.end();
      },
    });
    expect(await call(here.url, { headers: { host: "a.example.com" } })).toMatchObject({ status: 200, body: "hi" });
    const client = new H2Client(here.queueProxy.ports.h2c);
    const answer = await client.request(
      { ":method": "POST", ":path": "/x", ":authority": "b.example.com", te: "trailers" },
      "body",
    );
    client.close();
    expect(answer).toMatchObject({ status: 200, body: "hi", trailers: { "grpc-status": "0" } });
    expect(seen).toEqual(["2.0 a.example.com undefined", "2.0 b.example.com trailers"]);
  });
});

describe("probes", () => {
  const probe = (here: TestPod, headers: Record<string, string> = { "k-network-probe": "queue" }) =>
    call(here.url, { headers });

  it("are answered as soon as the app listens, however they are marked", async () => {
    const here = await start({ app: hello, listening: false });
    for (const headers of [{ "user-agent": "kube-probe/1.37" }, { "k-kubelet-probe": "1" }]) {
      let result: CallResult | undefined;
      void probe(here, headers).then(got => (result = got));
      await here.until(() => result !== undefined, 25);
      expect(result?.status).toBe(503);
      expect(result?.body).toMatch(/ECONNREFUSED/);
    }
    let result: CallResult | undefined;
    void probe(here).then(got => (result = got));
    await here.pass(100);
    expect(result).toBeUndefined();
    await here.restartApp();
    const beforeMs = here.clock.nowMs();
    await here.until(() => result !== undefined, 1);
    expect(result).toMatchObject({ status: 200, body: "queue" });
    expect(here.clock.nowMs() - beforeMs).toBeLessThan(500);
  });

  it("make the user's own check, and see when an app that was ready is so no more", async () => {
    let status = 200;
    const paths: string[] = [];
    const here = await start({
      app: (req, res) => {
        paths.push(`${req.url} ${req.headers["user-agent"]}`);
        res.writeHead(status).end();
      },
      env: { SERVING_READINESS_PROBE: JSON.stringify({ httpGet: { path: "/healthz" } }) },
    });
    await here.until(async () => (await probe(here)).status === 200, 25);
    status = 500;
    const answer = await probe(here);
    expect(answer.status).toBe(503);
    expect(answer.body).toMatch(/\/healthz: status 500/);
    expect(new Set(paths)).toEqual(new Set(["/healthz kube-probe/1"]));
  });

  it("answer the probe of the way with its hash", async () => {
    const here = await start({ app: hello });
    const answer = await probe(here, { "k-network-probe": "probe", "k-network-hash": "abc" });
    expect(answer).toMatchObject({ status: 200, headers: { "k-network-hash": "abc" } });
  });

  it("count nowhere", async () => {
    const here = await start({ app: hello });
    const probed = probe(here);
    await here.pass(1000);
    await probed;
    const { metrics } = here.queueProxy.ports;
    const stat = PodStatSchema.parse(JSON.parse((await call(`http://127.0.0.1:${metrics}`, { path: "/stats" })).body));
    expect(stat).toMatchObject({ requestCount: 0, averageConcurrentRequests: 0 });
  });
});

describe("statistics", () => {
  it("tell what a gateway has counted from what it has not, weighted by time", async () => {
    const app = holdingApp();
    const here = await start({ app: app.app });
    await here.pass(1000);
    const all = [
      call(here.url, { headers: { "k-proxy-request": "gateway" } }),
      call(here.url, { headers: { "k-proxy-request": "gateway" } }),
      call(here.url),
    ];
    await here.until(() => app.held.length === 3);
    await here.pass(500);
    for (const { res } of app.held) res.end();
    await Promise.all(all);
    await here.until(() => here.queueProxy.inside === 0);
    await here.pass(500);
    const { metrics } = here.queueProxy.ports;
    const base = `http://127.0.0.1:${metrics}`;
    const stat = PodStatSchema.parse(JSON.parse((await call(base, { path: "/stats" })).body));
    expect(stat).toMatchObject({ podName: "hello-00001-deployment-a", requestCount: 3, proxiedRequestCount: 2 });
    expect(stat.averageConcurrentRequests).toBeCloseTo(1.5, 1);
    expect(stat.averageProxiedConcurrentRequests).toBeCloseTo(1, 1);
    const text = (await call(base, { path: "/metrics" })).body;
    expect(text).toMatch(/kn_serving_invocation_duration_seconds_count\{[^}]*http_response_status_code="200"[^}]*\} 3/);
    expect(text).toMatch(/fairway_queue_proxy_in_flight\{[^}]*revision="hello-00001"[^}]*\} 0/);
  });
});

describe("drain", () => {
  const ready = async (here: TestPod): Promise<number> =>
    (await call(`http://127.0.0.1:${here.queueProxy.ports.admin}`, { path: "/ready" })).status;

  it("serves what is here and what still comes, is not ready, and ends when all is done", async () => {
    const app = holdingApp();
    const here = await start({ app: app.app });
    await here.until(async () => (await ready(here)) === 200, 25);
    const first = call(here.url, { path: "/first" });
    await here.until(() => app.held.length === 1);
    let ended: { readonly complete: boolean } | undefined;
    void here.queueProxy.ended.then(result => (ended = result));
    here.queueProxy.drain();
    expect(await ready(here)).toBe(503);
    expect((await call(here.url, { headers: { "k-network-probe": "queue" } })).status).toBe(503);
    await here.pass(10_000);
    const second = call(here.url, { path: "/second" });
    await here.until(() => app.held.length === 2);
    for (const { res } of app.held) res.end("ok");
    expect(await first).toMatchObject({ status: 200, body: "ok", complete: true, headers: { connection: "close" } });
    expect(await second).toMatchObject({ status: 200, body: "ok", complete: true });
    await here.pass(2000);
    expect(ended).toBeUndefined();
    await here.pass(1000);
    await here.until(() => ended !== undefined);
    expect(ended).toEqual({ complete: true });
    await expect(call(here.url)).rejects.toThrow(/ECONNREFUSED/);
  });

  it("keeps preStop waiting until the pod is drained, so that the app is stopped last", async () => {
    const app = holdingApp();
    const here = await start({ app: app.app });
    const request = call(here.url);
    await here.until(() => app.held.length === 1);
    let preStop: CallResult | undefined;
    void call(`http://127.0.0.1:${here.queueProxy.ports.admin}`, { path: "/drain" }).then(got => (preStop = got));
    await here.until(async () => (await ready(here)) === 503);
    here.queueProxy.drain();
    await here.pass(20_000);
    expect(preStop).toBeUndefined();
    app.held[0]?.res.end("ok");
    expect((await request).body).toBe("ok");
    await here.until(() => preStop !== undefined, 50);
    expect(preStop).toMatchObject({ status: 200, body: "drained\n" });
  });

  it("lets preStop go when only the app is restarted", async () => {
    const here = await start({ app: hello });
    let preStop: CallResult | undefined;
    void call(`http://127.0.0.1:${here.queueProxy.ports.admin}`, { path: "/drain" }).then(got => (preStop = got));
    await here.until(async () => (await ready(here)) === 503);
    await here.until(() => preStop !== undefined, 50);
    expect(preStop).toMatchObject({ status: 200, body: "serving\n" });
    expect(await ready(here)).toBe(200);
  });

  it("cuts off at the limit what does not end", async () => {
    const app = holdingApp();
    const here = await start({ app: app.app, env: { DRAIN_MAX_MS: "5000" } });
    const request = call(here.url).catch(() => "cut off");
    await here.until(() => app.held.length === 1);
    let ended: { readonly complete: boolean } | undefined;
    void here.queueProxy.ended.then(result => (ended = result));
    here.queueProxy.drain();
    await here.until(() => ended !== undefined, 50);
    expect(ended).toEqual({ complete: false });
    expect(await request).toBe("cut off");
  });
});
