import { request as httpsRequest } from "node:https";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { systemClock } from "../clock.ts";
import { AMBIGUOUS_REQUESTS, SMUGGLED } from "../testing/ambiguous-requests.ts";
import { H2Client } from "../testing/h2-client.ts";
import { RawClient } from "../testing/raw-client.ts";
import { makeAuthority, type TestAuthority, type TestKeyPair } from "../testing/test-certificates.ts";
import type { Exchange } from "./exchange.ts";
import { endToEndHeaders } from "./hop-by-hop.ts";
import { startListener, type Listener } from "./listener.ts";
import { TlsFront, type TlsFrontOptions, type TlsKeys } from "./tls-front.ts";
import { tunnel } from "./tunnel.ts";

let authority: TestAuthority;
let clients: TestAuthority;
let server: TestKeyPair;
let alice: TestKeyPair;
beforeAll(async () => {
  [authority, clients] = await Promise.all([makeAuthority("servers"), makeAuthority("clients")]);
  server = await authority.server();
  alice = await clients.client({ commonName: "alice", organizations: ["devs", "ops"] });
});

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const seen: Exchange[] = [];
const failures: Error[] = [];

interface Started extends Listener {
  readonly front: TlsFront;
}

async function start(
  changes: Partial<TlsFrontOptions> & { readonly clientCa?: string | undefined } = {},
  onExchange: (exchange: Exchange) => void = exchange => exchange.answer(200, [], exchange.target),
): Promise<Started> {
  seen.length = 0;
  failures.length = 0;
  const front = new TlsFront({
    keys: keysOf(server, "clientCa" in changes ? changes.clientCa : clients.certificate),
    handshakeTimeoutMs: 5_000,
    mostHandshakes: 100,
    onFailure: error => failures.push(error),
    ...changes,
  });
  const listener = await startListener({
    port: 0,
    host: "127.0.0.1",
    tls: front,
    onExchange: exchange => {
      seen.push(exchange);
      onExchange(exchange);
    },
  });
  cleanups.push(() => {
    listener.destroy();
    return listener.close();
  });
  return Object.defineProperties({ front }, Object.getOwnPropertyDescriptors(listener)) as Started;
}

const keysOf = ({ certificate, key }: TestKeyPair, clientCa?: string): TlsKeys => ({ certificate, key, clientCa });
const as = (pair?: TestKeyPair): ConnectionOptions => ({
  ca: authority.certificate,
  ...(pair === undefined ? {} : { cert: pair.certificate, key: pair.key }),
});

async function get(listener: Listener, tls: ConnectionOptions, path = "/"): Promise<string> {
  const client = await RawClient.openTls(listener.port, tls);
  client.send(`GET ${path} HTTP/1.1`, "Host: a", "Connection: close", "", "");
  return client.all();
}

/** What the listener has found out about who came last. */
const certificate = () => seen.at(-1)?.tls?.certificate;

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(resolve => setImmediate(resolve));
}

describe("a port with TLS", () => {
  it("serves HTTP/1.1 and HTTP/2 by ALPN, and HTTP/1.1 to who does not use it", async () => {
    const listener = await start();
    expect(await get(listener, as(), "/plain")).toMatch(/^HTTP\/1.1 200 .*\/plain$/s);
    expect(await get(listener, { ...as(), ALPNProtocols: ["http/1.1"] })).toMatch(/^HTTP\/1.1 200 /);
    const h2 = new H2Client(listener.port, as());
    expect(await h2.request({ ":path": "/h2" })).toMatchObject({ status: 200, body: "/h2" });
    expect(h2.session.alpnProtocol).toBe("h2");
    h2.close();
    expect(seen.map(({ protocol, tls }) => [protocol, tls])).toEqual([
      ["h1", { certificate: undefined }],
      ["h1", { certificate: undefined }],
      ["h2", { certificate: undefined }],
    ]);
  });

  it("takes no HTTP/2 that was not agreed on, and no protocol it does not know", async () => {
    const listener = await start();
    const client = await RawClient.openTls(listener.port, as());
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    expect(await client.all()).toMatch(/^HTTP\/1.1 400 /);
    await expect(RawClient.openTls(listener.port, { ...as(), ALPNProtocols: ["spdy/3"] })).rejects.toThrow(/alert/);
    expect(seen).toEqual([]);
  });

  it.each([
    ["TLSv1.3", undefined],
    ["TLSv1.2", "TLSv1.2"],
  ] as const)("speaks %s", async (version, maxVersion) => {
    const listener = await start();
    const client = await RawClient.openTls(listener.port, { ...as(), ...(maxVersion && { maxVersion }) });
    expect((client.socket as ReturnType<typeof connectTls>).getProtocol()).toBe(version);
    client.close();
  });

  it("speaks no version before 1.2", async () => {
    const listener = await start();
    const old = { minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
    await expect(RawClient.openTls(listener.port, { ...as(), ...old })).rejects.toThrow(/alert protocol version/);
    await until(() => failures.length === 1);
  });

  it("waits for a handshake that long, and for so many at a time", async () => {
    const listener = await start({ handshakeTimeoutMs: 300, mostHandshakes: 2 });
    const slow = await Promise.all([RawClient.open(listener.port), RawClient.open(listener.port)]);
    const third = await RawClient.open(listener.port);
    expect(await third.all()).toBe("");
    expect(failures.map(String)).toEqual(["Error: too many TLS handshakes at a time: limit 2"]);
    await Promise.all(slow.map(client => client.all()));
    expect(failures).toHaveLength(3);
    // They are over: others have their turn.
    for (let i = 0; i < 5; i++) expect(await get(listener, as())).toMatch(/200 OK/);
    // Who speaks HTTP to it, or leaves, is no more than a failure.
    const confused = await RawClient.open(listener.port);
    confused.send("GET / HTTP/1.1", "Host: a", "", "");
    await confused.all();
    (await RawClient.open(listener.port)).close();
    await until(() => failures.length === 5);
    expect(await get(listener, as())).toMatch(/200 OK/);
  });

  it("ends who sends nothing after the handshake, and one whose HTTP/2 is none", async () => {
    const front = new TlsFront({
      keys: keysOf(server),
      handshakeTimeoutMs: 5_000,
      mostHandshakes: 10,
      onFailure: () => undefined,
    });
    const listener = await startListener({
      port: 0,
      host: "127.0.0.1",
      tls: front,
      limits: { headersTimeoutMs: 200, keepAliveMs: 300 },
      onExchange: exchange => exchange.answer(200, [], ""),
    });
    cleanups.push(() => listener.close());
    expect(await (await RawClient.openTls(listener.port, as())).all()).toMatch(/^HTTP\/1.1 408 |^$/);
    const quiet = await RawClient.openTls(listener.port, { ...as(), ALPNProtocols: ["h2"] });
    await quiet.all();
    const wrong = await RawClient.openTls(listener.port, { ...as(), ALPNProtocols: ["h2"] });
    wrong.send("GET / HTTP/1.1", "Host: a", "", "");
    await wrong.all();
    expect(wrong.received).not.toContain("HTTP/1.1");
  });

  it("drains as one without", async () => {
    let finish: () => void = () => undefined;
    const listener = await start({}, exchange => {
      if (exchange.target === "/long") finish = () => exchange.answer(200, [], "done");
      else exchange.answer(200, [], "quick");
    });
    const idle = await RawClient.openTls(listener.port, as());
    idle.send("GET /quick HTTP/1.1", "Host: a", "", "");
    await idle.until(text => text.endsWith("quick"));
    const running = await RawClient.openTls(listener.port, as());
    running.send("GET /long HTTP/1.1", "Host: a", "", "");
    await until(() => seen.length === 2);
    expect(listener.active).toBe(1);
    const closed = listener.close();
    await idle.all();
    finish();
    expect((await running.all()).toLowerCase()).toContain("connection: close");
    await closed;
    expect(listener.active).toBe(0);
  });

  it("carries WebSockets", async () => {
    const app = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    cleanups.push(() => app.close());
    app.on("connection", socket => socket.on("message", data => socket.send(data, { binary: false })));
    await new Promise(resolve => app.once("listening", resolve));
    const { port } = app.address() as { port: number };
    const listener = await start({}, exchange => {
      const request = { authority: "a", headers: endToEndHeaders(exchange.rawHeaders, new Set(["host"])) };
      const options = { clock: systemClock, host: "127.0.0.1", port, connectTimeoutMs: 1_000, responseStartMs: 0 };
      tunnel(exchange, request, options).catch(() => exchange.abort());
    });
    const client = new WebSocket(`wss://127.0.0.1:${listener.port}/`, as(alice));
    await new Promise((resolve, reject) => client.once("open", resolve).once("error", reject));
    client.send("hello");
    expect(await new Promise(resolve => client.once("message", data => resolve((data as Buffer).toString())))).toBe(
      "hello",
    );
    expect(certificate()).toMatchObject({ commonName: "alice", problem: undefined });
    expect(listener.active).toBe(1);
    client.close();
    await until(() => listener.active === 0);
  });
});

describe("what could smuggle a request is refused behind TLS as well", () => {
  it.each(AMBIGUOUS_REQUESTS)("$title", async ({ head, status }) => {
    const listener = await start();
    const client = await RawClient.openTls(listener.port, as());
    client.send(...head, "", SMUGGLED);
    const text = await client.all();
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(text.match(/HTTP\/1.1/g)).toHaveLength(1);
    expect(seen).toEqual([]);
  });
});

describe("a client's certificate", () => {
  it("is read: its last CN, every O, its end", async () => {
    const listener = await start();
    await get(listener, as(alice));
    expect(certificate()).toMatchObject({ commonName: "alice", organizations: ["devs", "ops"], problem: undefined });
    const endsInMs = (certificate()?.notAfterMs ?? 0) - Date.now();
    expect(endsInMs).toBeGreaterThan(3_500_000);
    expect(endsInMs).toBeLessThanOrEqual(3_600_000);
    const h2 = new H2Client(listener.port, as(alice));
    await h2.request({ ":path": "/" });
    h2.close();
    expect(certificate()).toMatchObject({ commonName: "alice", organizations: ["devs", "ops"], problem: undefined });
  });

  it("may have no CN, no O, and letters of every kind", async () => {
    const listener = await start();
    await get(listener, as(await clients.client({ organizations: ["devs"] })));
    expect(certificate()).toMatchObject({ commonName: "", organizations: ["devs"] });
    await get(listener, as(await clients.client({ commonName: "CN=é, O=ü\n/O=ops+O=x" })));
    expect(certificate()).toMatchObject({ commonName: "CN=é, O=ü\n/O=ops+O=x", organizations: [] });
  });

  it("is asked for and not required", async () => {
    const listener = await start();
    expect(await get(listener, as())).toMatch(/200 OK/);
    expect(certificate()).toBeUndefined();
  });

  it("is not asked for where no authority is named", async () => {
    const listener = await start({ clientCa: undefined });
    expect(await get(listener, as(alice))).toMatch(/200 OK/);
    expect(certificate()).toBeUndefined();
  });

  it("that does not hold is told with its reason", async () => {
    const listener = await start();
    const other = await makeAuthority("others");
    const hourMs = 3_600_000;
    const problems = async (pair: TestKeyPair): Promise<string | undefined> => {
      expect(await get(listener, as(pair))).toMatch(/200 OK/);
      return certificate()?.problem;
    };
    expect(await problems(await other.client({ commonName: "alice" }))).toBe("UNABLE_TO_VERIFY_LEAF_SIGNATURE");
    const ended = { notBeforeMs: Date.now() - 2 * hourMs, notAfterMs: Date.now() - hourMs };
    expect(await problems(await clients.client({ commonName: "alice", ...ended }))).toBe("CERT_HAS_EXPIRED");
    const early = { notBeforeMs: Date.now() + hourMs, notAfterMs: Date.now() + 2 * hourMs };
    expect(await problems(await clients.client({ commonName: "alice", ...early }))).toBe("CERT_NOT_YET_VALID");
    expect(await problems(await clients.client({ commonName: "alice", usages: ["serverAuth"] }))).toBe(
      "INVALID_PURPOSE",
    );
    // As upstream's: one that does not say what it is for is for this too.
    expect(await problems(await clients.client({ commonName: "alice", usages: [] }))).toBeUndefined();
    expect(await problems(await clients.client({ commonName: "a", usages: ["serverAuth", "clientAuth"] }))).toBe(
      undefined,
    );
    expect(await problems(server)).toBeDefined();
  });

  it("comes with its issuers, up to the one that is named", async () => {
    const middle = await clients.authority("team CA");
    const pair = await middle.client({ commonName: "bob" });
    const listener = await start();
    await get(listener, as({ ...pair, certificate: pair.certificate + "\n" + middle.certificate }));
    expect(certificate()).toMatchObject({ commonName: "bob", problem: undefined });
    await get(listener, as(pair));
    expect(certificate()?.problem).toBe("UNABLE_TO_VERIFY_LEAF_SIGNATURE");
  });

  it.each(["TLSv1.2", "TLSv1.3"] as const)("is the same in a session that is resumed (%s)", async version => {
    const listener = await start();
    const resume = async (pair: TestKeyPair): Promise<boolean> => {
      const options = { ...as(pair), port: listener.port, host: "127.0.0.1", maxVersion: version };
      const first = connectTls(options);
      const session = new Promise<Buffer>((resolve, reject) => first.once("session", resolve).once("error", reject));
      first.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      await new Promise(resolve => first.resume().once("close", resolve));
      const second = connectTls({ ...options, session: await session });
      second.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      await new Promise(resolve => second.once("secureConnect", resolve));
      const isReused = second.isSessionReused();
      await new Promise(resolve => second.resume().once("close", resolve));
      return isReused;
    };
    expect(await resume(alice)).toBe(true);
    expect(seen.map(({ tls }) => tls?.certificate)).toEqual([certificate(), certificate()]);
    expect(certificate()).toMatchObject({ commonName: "alice", organizations: ["devs", "ops"], problem: undefined });
    await resume(await (await makeAuthority()).client({ commonName: "alice" }));
    expect(certificate()?.problem).toBeDefined();
  });
});

describe("keys that change", () => {
  it("are shown to who comes from then on, and nobody else notices", async () => {
    const listener = await start();
    const client = await RawClient.openTls(listener.port, as(alice));
    client.send("GET /1 HTTP/1.1", "Host: a", "", "");
    await client.until(text => text.endsWith("/1"));
    const next = await makeAuthority("next");
    listener.front.renew(keysOf(await next.server(), clients.certificate));
    client.send("GET /2 HTTP/1.1", "Host: a", "", "");
    await client.until(text => text.endsWith("/2"));
    client.close();
    await expect(get(listener, as(alice))).rejects.toThrow(/verify/);
    expect(await get(listener, { ...as(alice), ca: next.certificate })).toMatch(/200 OK/);
    expect(certificate()).toMatchObject({ commonName: "alice", problem: undefined });
  });

  it("that are none change nothing", async () => {
    const listener = await start();
    const other = await authority.server();
    const wrong = [
      keysOf({ certificate: server.certificate, key: other.key }, clients.certificate),
      keysOf({ certificate: "nothing", key: server.key }),
      keysOf({ certificate: server.certificate, key: "nothing" }, clients.certificate),
    ];
    for (const keys of wrong) expect(() => listener.front.renew(keys)).toThrow();
    await get(listener, as(alice));
    expect(certificate()).toMatchObject({ commonName: "alice", problem: undefined });
  });

  it("of clients' authorities end connections from before, once their requests are answered", async () => {
    const answers: (() => void)[] = [];
    const listener = await start({}, exchange => {
      if (exchange.target === "/wait") answers.push(() => exchange.answer(200, [], "waited"));
      else if (exchange.target === "/begun") {
        exchange.respond(200, ["content-length", "5"]);
        exchange.write(Buffer.from("be"));
        answers.push(() => {
          exchange.write(Buffer.from("gun"));
          exchange.end();
        });
      } else exchange.answer(200, [], exchange.target);
    });
    const open = async (path: string): Promise<RawClient> => {
      const client = await RawClient.openTls(listener.port, as(alice));
      client.send(`GET ${path} HTTP/1.1`, "Host: a", "", "");
      return client;
    };
    const idle = await open("/idle");
    await idle.until(text => text.endsWith("/idle"));
    const waiting = await open("/wait");
    const begun = await open("/begun");
    await begun.until(text => text.endsWith("be"));
    const h2 = new H2Client(listener.port, as(alice));
    const stream = h2.request({ ":path": "/wait" });
    const idleH2 = new H2Client(listener.port, as(alice));
    await idleH2.request({ ":path": "/idle" });
    await until(() => answers.length === 3);

    const others = await makeAuthority("others");
    const closed = new Promise(resolve => idleH2.session.once("close", resolve));
    listener.front.renew(keysOf(server, others.certificate));
    await closed;
    await idle.all();
    // Sent before the answer: what came in on the word of an authority that does not count any more is not served by it.
    begun.send("GET /late HTTP/1.1", "Host: a", "", "");
    for (const answer of answers) answer();
    expect((await waiting.all()).toLowerCase()).toContain("connection: close");
    expect(await begun.all()).toMatch(/begunHTTP\/1.1 421 /);
    expect(await stream).toMatchObject({ status: 200, body: "waited" });
    expect(seen.map(({ target }) => target)).not.toContain("/late");

    await get(listener, as(alice));
    expect(certificate()?.problem).toBeDefined();
    await get(listener, as(await others.client({ commonName: "carol" })));
    expect(certificate()).toMatchObject({ commonName: "carol", problem: undefined });
  });
});

it("is what ordinary clients can talk to", async () => {
  const listener = await start();
  const status = await new Promise((resolve, reject) => {
    httpsRequest({ ...as(alice), host: "localhost", port: listener.port }, res => {
      res.resume().once("end", () => resolve(res.statusCode));
    })
      .once("error", reject)
      .end();
  });
  expect(status).toBe(200);
});
