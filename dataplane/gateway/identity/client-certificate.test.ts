import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request as httpsRequest } from "node:https";
import type { IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { ConnectionOptions } from "node:tls";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { H2Client } from "../../shared/testing/h2-client.ts";
import { makeAuthority, type TestAuthority, type TestKeyPair } from "../../shared/testing/test-certificates.ts";
import { startSubjectTestBed, startTestBed, tellGateways, type TestBed } from "../testing/test-gateway.ts";

const HOST = "hello.default.example.com";
const LEVEL = "x-fairway-prioritylevel";

let authority: TestAuthority;
let clients: TestAuthority;
beforeAll(async () => {
  [authority, clients] = await Promise.all([makeAuthority("servers"), makeAuthority("clients")]);
});

let bed: TestBed;
let folder: string;
afterEach(async () => {
  await bed.close();
  await rm(folder, { recursive: true });
});

/** A gateway with TLS before a service whose pod answers with the fields it got; requests of group `devs` are of the level `known`. */
async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), "gateway-"));
  const server = await authority.server();
  const files = { "tls.crt": server.certificate, "tls.key": server.key, "ca.crt": clients.certificate };
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
  bed = await startSubjectTestBed(
    { kind: "Group", group: { name: "devs" } },
    {
      env: {
        FLOW_CONTROL_DEBUG: "true",
        ACCESS_LOG: "true",
        TLS_PORT: "0",
        TLS_CERT_FILE: join(folder, "tls.crt"),
        TLS_KEY_FILE: join(folder, "tls.key"),
        TLS_CLIENT_CA_FILE: join(folder, "ca.crt"),
        TLS_RELOAD_PERIOD_MS: "100",
        TOKEN_REVIEW: "all",
        ...env,
      },
    },
  );
  while ((await get()).status !== 200) await new Promise(resolve => setTimeout(resolve, 2));
}

const as = (pair?: TestKeyPair): ConnectionOptions => ({
  ca: authority.certificate,
  ...(pair === undefined ? {} : { cert: pair.certificate, key: pair.key }),
});
const alice = (): Promise<TestKeyPair> => clients.client({ commonName: "alice", organizations: ["devs"] });

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

function get(pair?: TestKeyPair, headers: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = {
      ...as(pair),
      host: "127.0.0.1",
      port: bed.gateway.tlsPort,
      agent: false,
      servername: "localhost",
    };
    const req = httpsRequest({ ...options, headers: { host: HOST, ...headers } }, res => {
      text(res).then(body => resolve({ status: res.statusCode ?? 0, headers: res.headers, body }), reject);
    });
    req.on("error", reject);
    req.end();
  });
}

const lastLog = () => JSON.parse(bed.logs.filter(line => line.includes('"msg":"request"')).at(-1) ?? "{}") as object;

describe("a client's certificate at the gateway", () => {
  it("says who sends a request, by either version of HTTP", async () => {
    await start();
    const pair = await alice();
    const answer = await get(pair);
    expect([answer.status, answer.headers[LEVEL]]).toEqual([200, "known"]);
    expect(answer.headers["x-kubernetes-pf-flowschema-uid"]).toBe("uid-known");
    expect(lastLog()).toMatchObject({ user: "alice", scheme: "https", protocol: "h1", priorityLevel: "known" });
    const h2 = new H2Client(bed.gateway.tlsPort ?? 0, as(pair));
    const second = await h2.request({ ":path": "/", ":authority": HOST });
    h2.close();
    expect([second.status, second.headers[LEVEL]]).toEqual([200, "known"]);
    expect(lastLog()).toMatchObject({ user: "alice", scheme: "https", protocol: "h2" });
    // Another one, or none, is another matter.
    expect((await get(await clients.client({ commonName: "bob" }))).headers[LEVEL]).toBe("catch-all");
    expect(lastLog()).toMatchObject({ user: "bob" });
    expect((await get()).headers[LEVEL]).toBe("catch-all");
    expect(lastLog()).toMatchObject({ user: "system:anonymous" });
  });

  it("tells the app of TLS, and nothing that the client made up", async () => {
    await start();
    const claims = { "x-forwarded-proto": "http", forwarded: "proto=http", "x-remote-user": "root" };
    const fields = JSON.parse((await get(await alice(), claims)).body) as IncomingHttpHeaders;
    expect(fields).toMatchObject({
      "x-forwarded-proto": "https",
      forwarded: `for=127.0.0.1;host=${HOST};proto=https`,
    });
    expect(fields).not.toHaveProperty("x-remote-user");
  });

  it("that does not hold is refused, unless a token says who it is", async () => {
    await start();
    bed.api.onCreate = (_path, object) => {
      const { token } = (object as { spec: { token: string } }).spec;
      const user = { username: "carol", groups: ["devs"] };
      return { status: token === "good" ? { authenticated: true, user } : { authenticated: false } };
    };
    const stranger = await (await makeAuthority()).client({ commonName: "alice", organizations: ["devs"] });
    const refused = await get(stranger);
    expect([refused.status, refused.headers["x-fairway-error"]]).toEqual([401, "CLIENT_CERTIFICATE_INVALID"]);
    expect(refused.body).toContain("UNABLE_TO_VERIFY_LEAF_SIGNATURE");
    expect((await get(stranger, { authorization: "Bearer made-up" })).status).toBe(401);
    const told = await get(stranger, { authorization: "Bearer good" });
    expect([told.status, told.headers[LEVEL]]).toEqual([200, "known"]);
    expect((await get(await clients.client({ commonName: "alice", usages: ["serverAuth"] }))).status).toBe(401);
  });

  it("that ends is not believed for longer, on a connection that lasts", async () => {
    await start();
    const short = await clients.client({
      commonName: "alice",
      organizations: ["devs"],
      // Its end is in whole seconds.
      notAfterMs: Math.ceil(Date.now() / 1_000) * 1_000 + 1_000,
    });
    const h2 = new H2Client(bed.gateway.tlsPort ?? 0, as(short));
    const ask = () => h2.request({ ":path": "/", ":authority": HOST });
    expect((await ask()).headers[LEVEL]).toBe("known");
    let last = await ask();
    while (last.status === 200) last = await ask();
    expect([last.status, last.body]).toEqual([401, expect.stringContaining("CERT_HAS_EXPIRED")]);
    h2.close();
  });

  it("gives no name of the cluster's own, unless the authority is the cluster's", async () => {
    await start();
    const master = await clients.client({ commonName: "root", organizations: ["system:masters"] });
    expect((await get(master)).headers[LEVEL]).toBe("catch-all");
    await bed.close();
    await start({ TLS_CLIENT_SYSTEM_NAMES: "true" });
    expect((await get(master)).headers[LEVEL]).toBe("exempt");
  });

  it("goes with a request to the gateway where it waits", async () => {
    await start();
    const pair = await alice();
    const home = await startTestBed({ api: bed.api, env: { POD_NAME: "gw-0", FLOW_CONTROL_DEBUG: "true" } });
    try {
      // With fewer places than gateways a revision has one home; gw-0 or gw-1, whichever it is, the outcome is the same.
      tellGateways(bed.api, [
        { name: "gw-0", port: home.gateway.internalPort },
        { name: "gw-1", port: bed.gateway.internalPort },
      ]);
      for (let i = 0; i < 4; i++) {
        const name = `home-0000${i}`;
        bed.revision(name, { containerConcurrency: 1 });
        bed.route(`home-${i}`, [{ revisionName: name, percent: 100 }]);
        bed.endpoint(name, await bed.pod((req, res) => res.end(JSON.stringify(req.headers))));
        const host = `home-${i}.default.example.com`;
        while ((await get(pair, { host })).status !== 200) await new Promise(resolve => setTimeout(resolve, 2));
        const answer = await get(pair, { host });
        expect(answer.headers[LEVEL]).toBe("known");
        expect(JSON.parse(answer.body)).toMatchObject({ "x-forwarded-proto": "https" });
      }
      expect(await bed.registry.metrics()).toMatch(/fairway_gateway_passed_requests_total [1-9]/);
    } finally {
      await home.close();
    }
  });

  it("says who opens a WebSocket", async () => {
    await start();
    const app = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    app.on("connection", (socket, req) => socket.send(String(req.headers["x-forwarded-proto"])));
    await new Promise(resolve => app.once("listening", resolve));
    const { port } = app.address() as { port: number };
    bed.revision("socket-00001");
    bed.route("socket", [{ revisionName: "socket-00001", percent: 100 }]);
    bed.endpoint("socket-00001", { name: "socket", port, requests: [], close: async () => undefined });
    const host = "socket.default.example.com";
    while ((await get(undefined, { host })).status === 404) await new Promise(resolve => setTimeout(resolve, 2));
    const socket = new WebSocket(`wss://127.0.0.1:${bed.gateway.tlsPort}/`, {
      ...as(await alice()),
      headers: { host },
    });
    const level = new Promise(resolve => socket.once("upgrade", ({ headers }) => resolve(headers[LEVEL])));
    expect(await new Promise(resolve => socket.once("message", data => resolve((data as Buffer).toString())))).toBe(
      "https",
    );
    expect(await level).toBe("known");
    socket.close();
    app.close();
  });

  it("is believed as the files say now", async () => {
    await start();
    const others = await makeAuthority("others");
    const pair = await others.client({ commonName: "dave", organizations: ["devs"] });
    expect((await get(pair)).status).toBe(401);
    await writeFile(join(folder, "ca.crt"), clients.certificate + others.certificate);
    // A connection made in the moment of the change is closed before its request is taken.
    const statusNow = () =>
      get(pair).then(
        ({ status }) => status,
        () => 401,
      );
    while ((await statusNow()) === 401) await new Promise(resolve => setTimeout(resolve, 20));
    expect((await get(pair)).headers[LEVEL]).toBe("known");
    expect((await get(await alice())).headers[LEVEL]).toBe("known");
  });
});
