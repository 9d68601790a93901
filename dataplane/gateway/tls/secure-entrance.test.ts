import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type PeerCertificate } from "node:tls";
import { pino } from "pino";
import { Registry } from "prom-client";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startListener } from "../../shared/http/listener.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { RawClient } from "../../shared/testing/raw-client.ts";
import { makeAuthority, type TestAuthority, type TestKeyPair } from "../../shared/testing/test-certificates.ts";
import { SecureEntrance } from "./secure-entrance.ts";
import { tlsMetrics } from "./tls-metrics.ts";

const PERIOD_MS = 10_000;
let authority: TestAuthority;
let clients: TestAuthority;
let first: TestKeyPair;
let second: TestKeyPair;
let client: TestKeyPair;
beforeAll(async () => {
  [authority, clients] = await Promise.all([makeAuthority("servers"), makeAuthority("clients")]);
  first = await authority.server({ commonName: "first", notAfterMs: 2_000_000_000_000 });
  second = await authority.server({ commonName: "second", notAfterMs: 2_100_000_000_000 });
  client = await clients.client({ commonName: "carol" });
});

let folder: string;
let clock: FakeClock;
let registry: Registry;
let logs: string[];
let users: (string | undefined)[];
const entrances: SecureEntrance[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "entrance-"));
  clock = new FakeClock();
  registry = new Registry();
  logs = [];
  users = [];
});
afterEach(async () => {
  for (const entrance of entrances.splice(0)) {
    entrance.destroy();
    await entrance.close();
  }
  await rm(folder, { recursive: true });
});

async function start(port = 0): Promise<SecureEntrance> {
  const entrance = new SecureEntrance({
    files: {
      certFile: join(folder, "tls.crt"),
      keyFile: join(folder, "tls.key"),
      clientCaFile: join(folder, "ca.crt"),
    },
    periodMs: PERIOD_MS,
    handshakeTimeoutMs: 5_000,
    clock,
    logger: pino({ level: "info" }, { write: (line: string) => void logs.push(line) }),
    metrics: tlsMetrics(registry),
    listen: tls =>
      startListener({
        port,
        host: "127.0.0.1",
        tls,
        onExchange: exchange => {
          const certificate = exchange.tls?.certificate;
          users.push(certificate?.problem ?? certificate?.commonName);
          exchange.answer(200, [], "ok");
        },
      }),
  });
  entrances.push(entrance);
  await entrance.start();
  return entrance;
}

const put = (name: string, content: string): Promise<void> => writeFile(join(folder, name), content);
async function putPair({ certificate, key }: TestKeyPair): Promise<void> {
  await put("tls.crt", certificate);
  await put("tls.key", key);
}

/** Lets it look again, and waits until it has. */
async function look(): Promise<void> {
  while (clock.pending === 0) await new Promise(resolve => setImmediate(resolve));
  clock.advance(PERIOD_MS);
  while (clock.pending === 0) await new Promise(resolve => setImmediate(resolve));
}

/** Whose certificate is shown to a client, which sends a request. */
async function shown(entrance: SecureEntrance, pair?: TestKeyPair): Promise<string> {
  const { port } = entrance;
  if (port === undefined) return "closed";
  const identity = pair === undefined ? {} : { cert: pair.certificate, key: pair.key };
  const socket = connect({ port, host: "127.0.0.1", ca: authority.certificate, ...identity });
  socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  let certificate: PeerCertificate | undefined;
  socket.once("secureConnect", () => (certificate = socket.getPeerCertificate()));
  await new Promise((resolve, reject) => socket.resume().once("close", resolve).once("error", reject));
  return String(certificate?.subject.CN);
}

async function metric(name: string): Promise<string | undefined> {
  const lines = (await registry.metrics()).split("\n");
  return lines
    .find(line => line.startsWith(name))
    ?.split(" ")
    .at(-1);
}
const EXPIRY = "fairway_gateway_tls_certificate_expiry_timestamp_seconds";
const failed = (file: string): Promise<string | undefined> =>
  metric(`fairway_gateway_tls_file_failures_total{file="${file}"}`);
const errors = (): string[] => logs.filter(line => line.includes('"level":50'));

describe("the entrance with TLS", () => {
  it("opens when its certificate comes, and not before", async () => {
    const entrance = await start();
    expect(entrance.port).toBeUndefined();
    expect(logs.join()).toContain("no certificate yet");
    await look();
    expect(entrance.port).toBeUndefined();
    expect(await metric(EXPIRY)).toBeUndefined();
    await putPair(first);
    await look();
    expect(await shown(entrance)).toBe("first");
    expect(await metric(EXPIRY)).toBe("2000000000");
    expect(errors()).toEqual([]);
    expect(await failed("certificate")).toBe("0");
  });

  it("is open at once where the certificate is there", async () => {
    await putPair(first);
    expect(await shown(await start())).toBe("first");
  });

  it("shows another certificate from then on, also by the link that a mount swaps", async () => {
    const write = async (version: string, { certificate, key }: TestKeyPair): Promise<void> => {
      await mkdir(join(folder, version));
      await put(`${version}/tls.crt`, certificate);
      await put(`${version}/tls.key`, key);
      await symlink(version, join(folder, "..next"));
      await rename(join(folder, "..next"), join(folder, "..data"));
    };
    await write("..1", first);
    await symlink("..data/tls.crt", join(folder, "tls.crt"));
    await symlink("..data/tls.key", join(folder, "tls.key"));
    const entrance = await start();
    const { port } = entrance;
    expect(await shown(entrance)).toBe("first");
    await look();
    expect(logs.filter(line => line.includes("new certificates"))).toHaveLength(0);
    await write("..2", second);
    await look();
    expect(await shown(entrance)).toBe("second");
    expect(entrance.port).toBe(port);
    expect(await metric(EXPIRY)).toBe("2100000000");
    expect(logs.filter(line => line.includes("new certificates"))).toHaveLength(1);
  });

  it.each([
    ["a key of another", async () => putPair({ certificate: second.certificate, key: first.key }), /not the key of/],
    ["no certificate", async () => put("tls.crt", "nothing"), /no certificate in it/],
    ["half a certificate", async () => put("tls.crt", first.certificate.replace(/\n[A-Za-z0-9+/]+\n/, "\n")), /none/],
    ["no key", async () => put("tls.key", ""), /no private key/],
    ["one file of two", async () => rm(join(folder, "tls.key")), /not there, though its certificate is/],
    ["a file that cannot be read", async () => swapForFolder("tls.crt"), /cannot be read: EISDIR/],
    [
      "nothing any more",
      async () => {
        await rm(join(folder, "tls.crt"));
        await rm(join(folder, "tls.key"));
      },
      /gone, with its key/,
    ],
  ])("keeps the last good one: %s", async (_title, spoil, message) => {
    await putPair(first);
    const entrance = await start();
    await spoil();
    await look();
    await look();
    expect(await shown(entrance)).toBe("first");
    // Counted each time, told once, and never what is in it.
    expect(await failed("certificate")).toBe("2");
    expect(errors()).toHaveLength(1);
    expect(errors()[0]).toMatch(message);
    expect(logs.join()).not.toContain(first.key.split("\n")[1]);
    await rm(join(folder, "tls.crt"), { recursive: true, force: true });
    await putPair(second);
    await look();
    expect(await shown(entrance)).toBe("second");
  });

  it("stays closed for a pair that is not good, and says so", async () => {
    await putPair({ certificate: second.certificate, key: first.key });
    const entrance = await start();
    expect(entrance.port).toBeUndefined();
    expect(errors()[0]).toMatch(/not the key of/);
    await putPair(second);
    await look();
    expect(await shown(entrance)).toBe("second");
  });

  it("asks clients when authorities come, and believes those that are named now", async () => {
    await putPair(first);
    const entrance = await start();
    await shown(entrance, client);
    await put("ca.crt", clients.certificate);
    await look();
    await shown(entrance, client);
    const others = await makeAuthority("others");
    await put("ca.crt", others.certificate + clients.certificate);
    await look();
    await shown(entrance, client);
    await put("ca.crt", others.certificate);
    await look();
    await shown(entrance, client);
    // Authorities that go are believed no longer.
    await rm(join(folder, "ca.crt"));
    await look();
    await shown(entrance, client);
    expect(users).toEqual([undefined, "carol", "carol", "UNABLE_TO_VERIFY_LEAF_SIGNATURE", undefined]);
    expect(errors()).toEqual([]);
  });

  it("keeps the authorities that were last good, and takes a new certificate all the same", async () => {
    await putPair(first);
    await put("ca.crt", clients.certificate);
    const entrance = await start();
    const middle = await clients.authority("middle");
    const bad = ["", "nothing", client.certificate, middle.certificate];
    for (const content of bad) {
      await put("ca.crt", content);
      await look();
    }
    await putPair(second);
    await look();
    expect(await shown(entrance, client)).toBe("second");
    expect(users).toEqual(["carol"]);
    expect(await failed("client-ca")).toBe("5");
    expect(errors().map(line => (JSON.parse(line) as { err: { message: string } }).err.message)).toEqual([
      expect.stringContaining("ca.crt: no certificate in it"),
      expect.stringContaining("ca.crt: not the certificate of an authority: CN=carol"),
      expect.stringContaining("ca.crt: no root, and without its issuer: CN=middle"),
    ]);
  });

  it("tries again when its port was taken", async () => {
    const taken = await startListener({ port: 0, host: "127.0.0.1", onExchange: exchange => exchange.abort() });
    const entrance = await start(taken.port);
    await putPair(first);
    await look();
    expect(entrance.port).toBeUndefined();
    expect(errors().join()).toContain("EADDRINUSE");
    await taken.close();
    await look();
    expect(await shown(entrance)).toBe("first");
  });

  it("rejects at its start when its port is taken", async () => {
    const taken = await startListener({ port: 0, host: "127.0.0.1", onExchange: exchange => exchange.abort() });
    await putPair(first);
    await expect(start(taken.port)).rejects.toThrow("EADDRINUSE");
    await taken.close();
  });

  it("looks no more when it ends, and counts who did not get in", async () => {
    await putPair(first);
    const entrance = await start();
    const plain = await RawClient.open(entrance.port ?? 0);
    plain.send("GET / HTTP/1.1", "Host: a", "", "");
    await plain.all();
    expect(await metric("fairway_gateway_tls_handshake_failures_total")).toBe("1");
    entrance.lastCalls();
    expect(clock.pending).toBe(0);
    expect(await shown(entrance)).toBe("first");
    await entrance.close();
    await expect(shown(entrance)).rejects.toThrow("ECONNREFUSED");
  });
});

async function swapForFolder(name: string): Promise<void> {
  await rm(join(folder, name));
  await mkdir(join(folder, name));
}
