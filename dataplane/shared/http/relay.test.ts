import { createServer, request as h1Request, type IncomingMessage, type RequestListener } from "node:http";
import { createServer as createH2Server, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo, Server as NetServer, Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock, type Clock } from "../clock.ts";
import { FakeClock } from "../testing/fake-clock.ts";
import { H2Client } from "../testing/h2-client.ts";
import { RawClient } from "../testing/raw-client.ts";
import type { Exchange } from "./exchange.ts";
import { H1Upstream } from "./h1-upstream.ts";
import { H2Upstream } from "./h2-upstream.ts";
import { endToEndHeaders } from "./hop-by-hop.ts";
import { startListener, type Listener } from "./listener.ts";
import { NO_TIMEOUTS, relay, type RelayOptions, type RelayResult } from "./relay.ts";
import { DEFAULT_UPSTREAM, type Upstream } from "./upstream.ts";

type Version = "h1" | "h2";
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A request listener that works for both of Node's servers. */
type App = RequestListener;

async function startApp(version: Version, app: App): Promise<number> {
  const server: NetServer = version === "h1" ? createServer(app) : createH2Server(app as never);
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

interface Relaying {
  readonly port: number;
  readonly listener: Listener;
  readonly upstream: Upstream & { readonly connections: number };
  /** How each request ended. */
  readonly outcomes: Promise<RelayResult>[];
}

async function startRelay(
  version: Version,
  appPort: number,
  options: Partial<RelayOptions> & { clock?: Clock } = {},
): Promise<Relaying> {
  const Kind = version === "h1" ? H1Upstream : H2Upstream;
  const upstream = new Kind(`127.0.0.1:${appPort}`, DEFAULT_UPSTREAM);
  const outcomes: Promise<RelayResult>[] = [];
  const onExchange = (exchange: Exchange): void => {
    const headers = endToEndHeaders(exchange.rawHeaders, new Set(["host", "expect"]));
    const outcome = relay(
      exchange,
      upstream,
      { authority: exchange.authority, headers },
      { clock: systemClock, timeouts: NO_TIMEOUTS, whenLate: "abort", ...options },
    );
    outcomes.push(outcome);
    outcome.catch((error: Error) => exchange.answer(502, [], error.message));
  };
  const listener = await startListener({ port: 0, host: "127.0.0.1", onExchange });
  cleanups.push(() => {
    upstream.close();
    listener.destroy();
    return listener.close();
  });
  return { port: listener.port, listener, upstream, outcomes };
}

interface Answer {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly trailers: Record<string, unknown>;
  readonly body: string;
}

async function ask(
  version: Version,
  port: number,
  ask: { method?: string; path?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  const { method = "GET", path = "/", headers = {}, body } = ask;
  if (version === "h2") {
    const client = new H2Client(port);
    try {
      return await client.request(
        { ":method": method, ":path": path, ":authority": "a.example.com", ...headers },
        body,
      );
    } finally {
      client.close();
    }
  }
  const res = await new Promise<IncomingMessage>((resolve, reject) => {
    const req = h1Request(
      { port, host: "127.0.0.1", method, path, headers: { host: "a.example.com", ...headers }, agent: false },
      resolve,
    );
    req.on("error", reject);
    req.end(body);
  });
  const received = await text(res);
  return { status: res.statusCode ?? 0, headers: res.headers, trailers: res.trailers, body: received };
}

const echo: App = (req, res) => {
  const chunks: Buffer[] = [];
  req.on("data", (chunk: Buffer) => chunks.push(chunk));
  req.on("end", () => {
    res.writeHead(201, { "content-type": "application/json", "set-cookie": ["a=1", "b=2"] });
    res.end(
      JSON.stringify({
        method: req.method,
        url: req.url,
        host: req.headers.host ?? req.headers[":authority"],
        version: req.httpVersion,
        cookie: req.headers.cookie,
        x: req.headers["x-note"],
        body: Buffer.concat(chunks).toString(),
      }),
    );
  });
};

const pairs: [Version, Version][] = [
  ["h1", "h1"],
  ["h1", "h2"],
  ["h2", "h1"],
  ["h2", "h2"],
];

describe.each(pairs)("relay from %s to %s", (client, upstream) => {
  it("passes method, target, host, fields and body on, and status, fields and body back", async () => {
    const { port, outcomes } = await startRelay(upstream, await startApp(upstream, echo));
    const answer = await ask(client, port, {
      method: "PUT",
      path: "/a%2Fb//c?x=%20&y=1",
      headers: { "x-note": "caf\u00e9", cookie: "k=v" },
      body: "hello",
    });
    expect(answer.status).toBe(201);
    expect(answer.headers["set-cookie"]).toEqual(["a=1", "b=2"]);
    expect(JSON.parse(answer.body)).toMatchObject({
      method: "PUT",
      url: "/a%2Fb//c?x=%20&y=1",
      host: "a.example.com",
      version: upstream === "h1" ? "1.1" : "2.0",
      cookie: "k=v",
      body: "hello",
    });
    expect(await outcomes[0]).toMatchObject({ status: 201, responseBytes: Buffer.byteLength(answer.body) });
  });

  it("passes an empty body, HEAD, 204 and 304", async () => {
    const app: App = (req, res) => {
      const status = Number(req.url!.slice(1));
      res.writeHead(status, { "x-status": String(status) });
      res.end();
    };
    const { port } = await startRelay(upstream, await startApp(upstream, app));
    expect(await ask(client, port, { path: "/200" })).toMatchObject({ status: 200, body: "" });
    expect(await ask(client, port, { path: "/204" })).toMatchObject({ status: 204, body: "" });
    expect(await ask(client, port, { path: "/304" })).toMatchObject({ status: 304, body: "" });
    expect(await ask(client, port, { method: "HEAD", path: "/200" })).toMatchObject({
      status: 200,
      headers: { "x-status": "200" },
    });
  });

  it("passes trailers of the answer", async () => {
    const app: App = (_req, res) => {
      res.writeHead(200, { trailer: "grpc-status" });
      res.write("data");
      res.addTrailers({ "grpc-status": "0", "grpc-message": "fine" });
      res.end();
    };
    const { port } = await startRelay(upstream, await startApp(upstream, app));
    const answer = await ask(client, port);
    expect(answer).toMatchObject({
      status: 200,
      body: "data",
      trailers: { "grpc-status": "0", "grpc-message": "fine" },
    });
  });

  it("streams an answer as it comes, holding back what the client does not read", async () => {
    const total = 64 * 1024 * 1024;
    const piece = Buffer.alloc(64 * 1024);
    let written = 0;
    const app: App = (_req, res) => {
      const more = (): void => {
        while (written < total) {
          written += piece.length;
          if (!res.write(piece)) {
            res.once("drain", more);
            return;
          }
        }
        res.end();
      };
      more();
    };
    const { port } = await startRelay(upstream, await startApp(upstream, app));
    let first: () => void = () => undefined;
    const begun = new Promise<void>(resolve => (first = resolve));
    let received = 0;
    let resume: () => void;
    let done: Promise<void>;
    if (client === "h1") {
      const res = await new Promise<IncomingMessage>(resolve =>
        h1Request({ port, host: "127.0.0.1", agent: false }, resolve).end(),
      );
      res.on("data", (chunk: Buffer) => {
        if (received === 0) {
          res.pause();
          first();
        }
        received += chunk.length;
      });
      resume = () => res.resume();
      done = new Promise(resolve => res.on("end", resolve));
    } else {
      const h2 = new H2Client(port);
      cleanups.push(() => h2.close());
      const stream = h2.session.request({ ":path": "/" });
      stream.on("data", (chunk: Buffer) => {
        if (received === 0) {
          stream.pause();
          first();
        }
        received += chunk.length;
      });
      resume = () => stream.resume();
      done = new Promise(resolve => stream.on("end", resolve));
    }
    await begun;
    await settled(() => written);
    expect(written).toBeLessThan(total / 2);
    resume();
    await done;
    expect(received).toBe(total);
  });

  it("streams a request as it comes and holds the client back", async () => {
    let reading: () => void = () => undefined;
    const app: App = (req, res) => {
      req.pause();
      let size = 0;
      req.on("data", (chunk: Buffer) => (size += chunk.length));
      req.on("end", () => res.end(String(size)));
      req.pause();
      reading = () => req.resume();
    };
    const { port } = await startRelay(upstream, await startApp(upstream, app));
    const total = 64 * 1024 * 1024;
    const piece = Buffer.alloc(64 * 1024);
    let written = 0;
    const pour = (sink: NodeJS.WritableStream): void => {
      while (written < total) {
        written += piece.length;
        if (!sink.write(piece)) {
          sink.once("drain", () => pour(sink));
          return;
        }
      }
      sink.end();
    };
    let answer: Promise<string>;
    if (client === "h1") {
      const req = h1Request({ port, host: "127.0.0.1", agent: false, method: "POST" });
      answer = new Promise((resolve, reject) => {
        req.on("response", res => resolve(text(res)));
        req.on("error", reject);
      });
      pour(req);
    } else {
      const h2 = new H2Client(port);
      cleanups.push(() => h2.close());
      const stream = h2.session.request({ ":path": "/", ":method": "POST" });
      answer = text(stream);
      pour(stream);
    }
    await settled(() => written);
    expect(written).toBeLessThan(total / 2);
    reading();
    expect(await answer).toBe(String(total));
  });

  it("cancels the request at the upstream when the client leaves", async () => {
    let arrived: () => void = () => undefined;
    const started = new Promise<void>(resolve => (arrived = resolve));
    let left: () => void = () => undefined;
    const cancelled = new Promise<void>(resolve => (left = resolve));
    const app: App = (_req, res) => {
      res.on("close", left);
      arrived();
    };
    const { port, outcomes, listener } = await startRelay(upstream, await startApp(upstream, app));
    const pending = client === "h1" ? await leavingH1(port) : leavingH2(port);
    await started;
    pending.leave();
    await cancelled;
    await expect(outcomes[0]).rejects.toMatchObject({ code: "CLIENT_GONE" });
    await until(() => listener.active === 0);
  });

  it("tells a refused connection from a request that was sent", async () => {
    const unused = await startApp("h1", echo);
    await cleanups.pop()?.();
    const refused = await startRelay(upstream, unused);
    expect((await ask(client, refused.port, { method: "POST", body: "x" })).status).toBe(502);
    await expect(refused.outcomes[0]).rejects.toMatchObject({ code: "UPSTREAM_FAILED", sent: false });

    const broken = await startRelay(upstream, await startApp(upstream, req => breakOff(upstream, req)));
    expect((await ask(client, broken.port)).status).toBe(502);
    await expect(broken.outcomes[0]).rejects.toMatchObject({ code: "UPSTREAM_FAILED", sent: true });
  });

  it("cuts an answer off when the upstream breaks in the middle of it", async () => {
    const app: App = (req, res) => {
      res.writeHead(200);
      res.write("half");
      setImmediate(() => breakOff(upstream, req));
    };
    const { port, outcomes } = await startRelay(upstream, await startApp(upstream, app));
    await expect(ask(client, port)).rejects.toThrow();
    await expect(outcomes[0]).rejects.toMatchObject({ code: "UPSTREAM_FAILED", sent: true });
  });

  it.each([
    { kind: "whole", timeouts: { wholeMs: 500, responseStartMs: 0, idleMs: 0 } },
    { kind: "responseStart", timeouts: { wholeMs: 1000, responseStartMs: 500, idleMs: 0 } },
    { kind: "idle", timeouts: { wholeMs: 1000, responseStartMs: 0, idleMs: 500 } },
  ])("ends a silent upstream by its $kind timeout", async ({ kind, timeouts }) => {
    const clock = new FakeClock();
    let arrived: () => void = () => undefined;
    const started = new Promise<void>(resolve => (arrived = resolve));
    const { port, outcomes } = await startRelay(upstream, await startApp(upstream, () => arrived()), {
      clock,
      timeouts,
    });
    const answer = ask(client, port);
    await started;
    clock.advance(499);
    clock.advance(1);
    expect((await answer).status).toBe(502);
    await expect(outcomes[0]).rejects.toMatchObject({ code: "UPSTREAM_TIMEOUT", kind, limitMs: 500 });
    expect(clock.pending).toBe(0);
  });

  it("ends an answer that is late in the middle as if it were complete, where that is asked for", async () => {
    const clock = new FakeClock();
    const app: App = (_req, res) => {
      res.writeHead(200);
      res.write("begun");
    };
    const { port, outcomes } = await startRelay(upstream, await startApp(upstream, app), {
      clock,
      timeouts: { wholeMs: 1000, responseStartMs: 500, idleMs: 700 },
      whenLate: "end",
    });
    const answer = ask(client, port);
    await until(() => outcomes.length === 1 && clock.pending === 1);
    // The answer has begun, so the response start no longer counts; 700 ms without a byte do.
    await settled(() => clock.pending);
    clock.advance(699);
    clock.advance(1);
    expect(await answer).toMatchObject({ status: 200, body: "begun" });
    await expect(outcomes[0]).rejects.toMatchObject({ kind: "idle" });
  });

  it("uses its connections again", async () => {
    const app = await startApp(upstream, echo);
    const { port, upstream: pool } = await startRelay(upstream, app);
    for (let i = 0; i < 5; i++) await ask(client, port, { method: i % 2 === 0 ? "GET" : "HEAD" });
    expect(pool.connections).toBe(1);
  });
});

describe("relay", () => {
  it("passes early hints, and continues a body only when the upstream takes it", async () => {
    const app = createServer((_req, res) => {
      res.writeEarlyHints({ link: "</style.css>; rel=preload" });
      res.end("ok");
    });
    await new Promise<void>(resolve => app.listen(0, "127.0.0.1", resolve));
    cleanups.push(() => app.close());
    const { port } = await startRelay("h1", (app.address() as AddressInfo).port);
    const raw = await RawClient.open(port);
    cleanups.push(() => raw.close());
    raw.send("POST / HTTP/1.1", "Host: a", "Expect: 100-continue", "Content-Length: 5", "", "");
    await raw.until(received => received.startsWith("HTTP/1.1 100 Continue"));
    raw.send("hello");
    const received = await raw.until(sofar => sofar.endsWith("ok") || sofar.endsWith("0\r\n\r\n"));
    expect(received).toContain("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n");
    expect(received).toContain("HTTP/1.1 200 OK");
  });

  it("answers without continuing when no upstream is there, and ends the connection", async () => {
    const unused = await startApp("h1", echo);
    await cleanups.pop()?.();
    const { port } = await startRelay("h1", unused);
    const raw = await RawClient.open(port);
    raw.send("POST / HTTP/1.1", "Host: a", "Expect: 100-continue", "Content-Length: 5", "", "");
    const received = await raw.all();
    expect(received).toMatch(/^HTTP\/1.1 502 /);
    expect(received.toLowerCase()).toContain("connection: close");
  });

  it("takes an upload whose end the client announces but never sends for a client that left", async () => {
    const { port, outcomes } = await startRelay("h1", await startApp("h1", echo));
    const raw = await RawClient.open(port);
    raw.send("POST / HTTP/1.1", "Host: a", "Content-Length: 500", "", "part");
    await until(() => outcomes.length === 1);
    raw.close();
    await expect(outcomes[0]).rejects.toMatchObject({ code: "CLIENT_GONE" });
  });
});

function breakOff(version: Version, req: IncomingMessage): void {
  if (version === "h1") req.socket.destroy();
  else (req as unknown as { stream: ServerHttp2Stream }).stream.session?.destroy();
}

/** Resolves when the value has not changed for a while: for what should come to a standstill. */
async function settled(value: () => number): Promise<void> {
  for (let last = Number.NaN, same = 0; same < 10; ) {
    await new Promise(resolve => setTimeout(resolve, 10));
    same = value() === last ? same + 1 : 0;
    last = value();
  }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(resolve => setImmediate(resolve));
}

async function leavingH1(port: number): Promise<{ leave(): void }> {
  const raw = await RawClient.open(port);
  raw.send("GET / HTTP/1.1", "Host: a", "", "");
  return { leave: () => raw.close() };
}

function leavingH2(port: number): { leave(): void } {
  const h2 = new H2Client(port);
  cleanups.push(() => h2.close());
  const stream = h2.session.request({ ":path": "/", ":authority": "a" });
  stream.on("error", () => undefined);
  return { leave: () => stream.close(8) };
}
