import { Agent, request as h1Request } from "node:http";
import { connect } from "node:http2";
import { afterEach, describe, expect, it } from "vitest";
import { AMBIGUOUS_REQUESTS, SMUGGLED } from "../testing/ambiguous-requests.ts";
import { H2Client } from "../testing/h2-client.ts";
import { RawClient } from "../testing/raw-client.ts";
import type { Exchange } from "./exchange.ts";
import { startListener, type Listener, type ListenerLimits } from "./listener.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const seen: Exchange[] = [];
async function start(
  onExchange: (exchange: Exchange) => void = exchange => exchange.answer(200, [], exchange.target),
  limits: Partial<ListenerLimits> = {},
): Promise<Listener> {
  seen.length = 0;
  const listener = await startListener({
    port: 0,
    host: "127.0.0.1",
    limits,
    onExchange: exchange => {
      seen.push(exchange);
      onExchange(exchange);
    },
  });
  cleanups.push(() => {
    listener.destroy();
    return listener.close();
  });
  return listener;
}

async function raw(listener: Listener, ...lines: string[]): Promise<string> {
  const client = await RawClient.open(listener.port);
  client.send(...lines);
  return client.all();
}

describe("one port for HTTP/1.1 and HTTP/2", () => {
  it("tells them apart by their first bytes, also when these come one by one", async () => {
    const listener = await start();
    const client = await RawClient.open(listener.port);
    for (const byte of "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n") {
      client.send(byte);
      await new Promise(resolve => setImmediate(resolve));
    }
    expect(await client.until(text => text.endsWith("/slow"))).toContain("200 OK");
    client.send("GET /again HTTP/1.1", "Host: a", "", "");
    expect(await client.until(text => text.endsWith("/again"))).toContain("200 OK");
    client.close();

    const h2 = new H2Client(listener.port);
    expect(await h2.request({ ":path": "/h2" })).toMatchObject({ status: 200, body: "/h2" });
    h2.close();
    expect(seen.map(exchange => exchange.protocol)).toEqual(["h1", "h1", "h2"]);
  });

  it("answers a client that offers h2c on its request as an ordinary one", async () => {
    const listener = await start();
    const text = await raw(
      listener,
      "GET /h2c HTTP/1.1",
      "Host: a",
      "Connection: Upgrade, HTTP2-Settings, close",
      "Upgrade: h2c",
      "HTTP2-Settings: AAMAAABkAAQAAP__",
      "",
      "",
    );
    expect(text).toMatch(/^HTTP\/1.1 200 OK/);
    expect(seen[0]?.upgrade).toBe(false);
  });

  it("reads the absolute form's host before the Host field's, and keeps the path untouched", async () => {
    const listener = await start();
    await raw(listener, "GET http://real.example.com/a//b?x=%2F HTTP/1.1", "Host: other", "Connection: close", "", "");
    expect(seen[0]).toMatchObject({ authority: "real.example.com", target: "/a//b?x=%2F" });
    await raw(listener, "GET http://real.example.com?x=1 HTTP/1.1", "Host: other", "Connection: close", "", "");
    expect(seen[1]).toMatchObject({ authority: "real.example.com", target: "/?x=1" });
  });

  it("takes header fields far over Node's own limits, and refuses what is over its own", async () => {
    const listener = await start(exchange => exchange.answer(200, [], String(exchange.rawHeaders.length / 2)));
    const many = Array.from({ length: 3_000 }, (_, i) => `x-${i}: y`);
    const answer = await raw(listener, "GET / HTTP/1.1", "Host: a", "Connection: close", ...many, "", "");
    expect(answer).toContain("\r\n\r\n3002");
    expect(await raw(listener, "GET / HTTP/1.1", "Host: a", `X: ${"y".repeat(70_000)}`, "", "")).toMatch(
      /^HTTP\/1.1 431 /,
    );
  });
});

describe("what could smuggle a request is refused", () => {
  it.each(AMBIGUOUS_REQUESTS)("$title", async ({ head, status }) => {
    const listener = await start();
    const text = await raw(listener, ...head, "", SMUGGLED);
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(text.match(/HTTP\/1.1/g)).toHaveLength(1);
    expect(seen).toEqual([]);
  });

  it("a broken chunk ends the connection after its request", async () => {
    const targets: string[] = [];
    const listener = await start(exchange => {
      targets.push(exchange.target);
      exchange
        .body()
        .on("error", () => undefined)
        .resume();
    });
    await raw(
      listener,
      "POST /one HTTP/1.1",
      "Host: a",
      "Transfer-Encoding: chunked",
      "",
      "zz",
      "GET /two HTTP/1.1",
      "Host: a",
      "",
      "",
    );
    expect(targets).toEqual(["/one"]);
  });

  it("CONNECT is no method here", async () => {
    const listener = await start();
    expect(await raw(listener, "CONNECT a:80 HTTP/1.1", "Host: a", "", "")).toMatch(/^HTTP\/1.1 405 /);
  });
});

describe("clients that take their time", () => {
  it("are cut off while they have not sent a whole head", async () => {
    const listener = await start(undefined, { headersTimeoutMs: 200 });
    expect(await raw(listener, "")).toBe("");
    expect(await raw(listener, "GET / HT")).toMatch(/^HTTP\/1.1 408 /);
    expect(await raw(listener, "PRI * HT")).toBe("");
    expect(seen).toEqual([]);
  });

  it("may take long over a body", async () => {
    const listener = await start(
      exchange =>
        exchange
          .body()
          .on("end", () => exchange.answer(200, [], "whole"))
          .resume(),
      { headersTimeoutMs: 200 },
    );
    const client = await RawClient.open(listener.port);
    client.send("POST / HTTP/1.1", "Host: a", "Content-Length: 4", "", "ab");
    await new Promise(resolve => setTimeout(resolve, 1_500));
    client.send("cd");
    expect(await client.until(text => text.endsWith("whole"))).toContain("200 OK");
    client.close();
  });
});

describe("draining", () => {
  it("tells clients to close, ends idle connections, and waits for what runs", async () => {
    let finish: () => void = () => undefined;
    const listener = await start(exchange => {
      if (exchange.target === "/long") finish = () => exchange.answer(200, [], "done");
      else exchange.answer(200, [], "quick");
    });
    const idle = await RawClient.open(listener.port);
    idle.send("GET /quick HTTP/1.1", "Host: a", "", "");
    await idle.until(text => text.endsWith("quick"));
    expect(idle.received.toLowerCase()).toContain("connection: keep-alive");
    const running = await RawClient.open(listener.port);
    running.send("GET /long HTTP/1.1", "Host: a", "", "");
    await until(() => seen.length === 2);
    expect(listener.active).toBe(1);

    listener.lastCalls();
    const late = await raw(listener, "GET /quick HTTP/1.1", "Host: a", "", "");
    expect(late.toLowerCase()).toContain("connection: close");

    const closed = listener.close();
    expect(await idle.all()).toContain("quick");
    await expect(RawClient.open(listener.port)).rejects.toThrow("ECONNREFUSED");
    finish();
    expect((await running.all()).toLowerCase()).toContain("connection: close");
    await closed;
    expect(listener.active).toBe(0);
  });

  it("lets HTTP/2 streams end after GOAWAY", async () => {
    let finish: () => void = () => undefined;
    const listener = await start(exchange => {
      finish = () => exchange.answer(200, [], "done");
    });
    const session = connect(`http://127.0.0.1:${listener.port}`);
    const stream = session.request({ ":path": "/" });
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    await until(() => seen.length === 1);
    const closed = listener.close();
    finish();
    await new Promise(resolve => stream.once("end", resolve));
    expect(Buffer.concat(chunks).toString()).toBe("done");
    await closed;
  });

  it("reuses a connection of a well-behaved client until then", async () => {
    const listener = await start();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number | undefined>();
    for (let i = 0; i < 3; i++)
      await new Promise<void>((resolve, reject) => {
        const req = h1Request({ port: listener.port, host: "127.0.0.1", agent }, res => {
          ports.add(res.socket.localPort);
          res.resume().on("end", resolve);
        });
        req.on("error", reject);
        req.end();
      });
    expect(ports.size).toBe(1);
    agent.destroy();
  });
});

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(resolve => setImmediate(resolve));
}
