import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { BlockList, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT, type CryptoKey } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClientCertificate } from "../../shared/http/client-tls.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { firstOf, identifier } from "./identify.ts";
import { ANONYMOUS, authenticated, type Identity } from "./identity.ts";
import { OidcIssuerSchema, oidcTokens } from "./oidc.ts";
import { TokenIdentities, type TokenOwner, type TokenSource } from "./token-identity.ts";
import { reviewedTokens } from "./token-review.ts";

const never = new AbortController().signal;

const exchange = (
  headers: readonly (readonly [string, string])[],
  remoteAddress = "10.0.0.9",
  certificate?: Partial<ClientCertificate>,
) => ({
  remoteAddress,
  tls:
    certificate === undefined
      ? undefined
      : {
          certificate: {
            commonName: "carol",
            organizations: [],
            notAfterMs: Infinity,
            problem: undefined,
            ...certificate,
          },
        },
  rawHeaders: headers.flat(),
  header: (name: string) => headers.find(([own]) => own.toLowerCase() === name)?.[1],
});

describe("identifier", () => {
  const proxies = new BlockList();
  proxies.addSubnet("10.1.0.0", 16);
  const alice: Identity = { user: "alice", groups: ["system:authenticated"] };
  const tokens = new TokenIdentities({
    clock: new FakeClock(),
    source: async token => (token === "a1" ? { identity: alice } : undefined),
    onFailure: () => undefined,
  });
  const certificates = { wallMs: () => 1_000, systemNames: false };
  const identify = identifier({ proxies, certificates, tokens });

  it("believes a trusted proxy, and nobody else", async () => {
    const fields = [
      ["X-Remote-User", "eve"],
      ["X-Remote-Group", "system:masters"],
      ["X-Remote-Group", "devs"],
    ] as const;
    expect(identify(exchange(fields, "10.1.2.3"))).toEqual({
      user: "eve",
      groups: ["system:masters", "devs", "system:authenticated"],
    });
    expect(identify(exchange(fields))).toBe(ANONYMOUS);
    expect(identify(exchange(fields, "::1"))).toBe(ANONYMOUS);
    expect(identify(exchange(fields, ""))).toBe(ANONYMOUS);
    // Its word goes before a token; where it says nothing, the token counts.
    expect(identify(exchange([...fields, ["Authorization", "Bearer a1"]], "10.1.2.3"))).toMatchObject({ user: "eve" });
    expect(await identify(exchange([["Authorization", "Bearer a1"]], "10.1.2.3"))).toBe(alice);
  });

  const bearer = [["Authorization", "Bearer a1"]] as const;

  it("believes a client's certificate after a trusted proxy and before a token", async () => {
    const fields = [["X-Remote-User", "eve"], ...bearer] as const;
    expect(identify(exchange(fields, "10.1.2.3", {}))).toMatchObject({ user: "eve" });
    expect(identify(exchange(fields, "10.0.0.9", { organizations: ["devs", "ops"] }))).toEqual({
      user: "carol",
      groups: ["devs", "ops", "system:authenticated"],
    });
    // One that names nobody is none.
    expect(await identify(exchange(bearer, "", { commonName: "" }))).toBe(alice);
    expect(identify(exchange([], "", { commonName: "" }))).toBe(ANONYMOUS);
  });

  it("takes nobody with a bad certificate as anonymous, but for who else one may be", async () => {
    const bad = { problem: "INVALID_PURPOSE" };
    const refusal = "the client certificate does not hold: INVALID_PURPOSE";
    expect(() => identify(exchange([], "", bad))).toThrow(refusal);
    expect(await identify(exchange(bearer, "", bad))).toBe(alice);
    const made = exchange([["Authorization", "Bearer made-up"]], "", bad);
    await expect(identify(made)).rejects.toThrow(refusal);
    // The verdict is known by now.
    expect(() => identify(made)).toThrow(refusal);
    expect(identify(exchange([["X-Remote-User", "eve"]], "10.1.2.3", bad))).toMatchObject({ user: "eve" });
    // It ends while its connection lasts.
    expect(identify(exchange([], "", { notAfterMs: 1_000 }))).toMatchObject({ user: "carol" });
    expect(() => identify(exchange([], "", { notAfterMs: 999 }))).toThrow("CERT_HAS_EXPIRED");
  });

  it("lets only the cluster's own authority give the cluster's own names", () => {
    const master = { commonName: "root", organizations: ["system:masters", "devs"] };
    expect(identify(exchange([], "", master))).toEqual({ user: "root", groups: ["devs", "system:authenticated"] });
    const node = { commonName: "system:node:a", organizations: ["system:nodes"] };
    expect(identify(exchange([], "", node))).toBe(ANONYMOUS);
    const identifyOfCluster = identifier({
      proxies,
      certificates: { ...certificates, systemNames: true },
      tokens: undefined,
    });
    expect(identifyOfCluster(exchange([], "", master))).toEqual({
      user: "root",
      groups: ["system:masters", "devs", "system:authenticated"],
    });
    expect(identifyOfCluster(exchange([], "", node))).toMatchObject({ user: "system:node:a" });
  });

  it("takes who shows no token, or one of nobody's, as anonymous", async () => {
    expect(identify(exchange([]))).toBe(ANONYMOUS);
    expect(identify(exchange([["Authorization", "Basic YTpi"]]))).toBe(ANONYMOUS);
    expect(await identify(exchange([["Authorization", "bearer of-the-app"]]))).toBe(ANONYMOUS);
    expect(await identify(exchange([["Authorization", "bearer a1"]]))).toBe(alice);
    // Known by now: no turn of the event loop.
    expect(identify(exchange([["Authorization", "BEARER a1"]]))).toBe(alice);
  });
});

describe("TokenIdentities", () => {
  function setUp(source: TokenSource) {
    const clock = new FakeClock();
    const asked: string[] = [];
    const failures: unknown[] = [];
    const tokens = new TokenIdentities({
      clock,
      source: (token, signal) => {
        asked.push(token);
        return source(token, signal);
      },
      onFailure: error => failures.push(error),
    });
    return { clock, asked, failures, tokens };
  }
  const owner = (user: string, expiresAtMs?: number): TokenOwner => ({
    identity: authenticated(user, []),
    expiresAtMs,
  });

  it("asks once for a token that many requests bring, and again when the verdict is old", async () => {
    const { clock, asked, tokens } = setUp(async token => owner(token));
    const found = await Promise.all([tokens.of("Bearer t"), tokens.of("Bearer t"), tokens.of("Bearer t")]);
    expect(found.map(identity => identity?.user)).toEqual(["t", "t", "t"]);
    clock.advance(299_000);
    expect(tokens.of("Bearer t")).toMatchObject({ user: "t" });
    expect(asked).toEqual(["t"]);
    clock.advance(2_000);
    await tokens.of("Bearer t");
    expect(asked).toEqual(["t", "t"]);
  });

  it("believes no token longer than it lasts, and a refusal for half a minute", async () => {
    const state = { known: false };
    const { clock, asked, tokens } = setUp(async token =>
      state.known ? owner(token, clock.wallMs() + 10_000) : undefined,
    );
    expect(await tokens.of("Bearer t")).toBeUndefined();
    state.known = true;
    clock.advance(29_000);
    expect(tokens.of("Bearer t")).toBeUndefined();
    clock.advance(2_000);
    expect(await tokens.of("Bearer t")).toMatchObject({ user: "t" });
    clock.advance(9_000);
    expect(tokens.of("Bearer t")).toMatchObject({ user: "t" });
    clock.advance(2_000);
    await tokens.of("Bearer t");
    expect(asked).toHaveLength(3);
  });

  it("looks at 64 new tokens at a time; a flood of others is anonymous, and known ones stay known", async () => {
    const gate = Promise.withResolvers<void>();
    const { asked, failures, tokens } = setUp(async token => {
      if (token === "good") return owner("good");
      await gate.promise;
      return undefined;
    });
    await tokens.of("Bearer good");
    const verdicts = Array.from({ length: 20_000 }, (_, i) => tokens.of(`Bearer made-up-${i}`));
    expect(asked).toHaveLength(65);
    expect(verdicts.filter(verdict => verdict === undefined)).toHaveLength(20_000 - 64);
    expect(failures).toHaveLength(20_000 - 64);
    expect(String(failures[0])).toContain("limit 64");
    expect(tokens.of("Bearer good")).toMatchObject({ user: "good" });
    gate.resolve();
    for (const verdict of verdicts) await verdict;
    for (let round = 0; round < 200; round++)
      await Promise.all(Array.from({ length: 64 }, async (_, i) => tokens.of(`Bearer more-${round}-${i}`)));
    expect(tokens.of("Bearer good")).toMatchObject({ user: "good" });
    expect(tokens.of(`Bearer ${"x".repeat(20_000)}`)).toBeUndefined();
  });

  it("waits three seconds at most, whatever its source does, and asks again at the next request", async () => {
    const signals: AbortSignal[] = [];
    const { clock, asked, failures, tokens } = setUp((_, signal) => {
      signals.push(signal);
      return new Promise(() => undefined);
    });
    const verdict = tokens.of("Bearer t");
    clock.advance(3_000);
    expect(await verdict).toBeUndefined();
    expect(signals[0]?.aborted).toBe(true);
    expect(failures.map(String)).toEqual(["Error: no verdict on a token in 3000 ms"]);
    void tokens.of("Bearer t");
    expect(asked).toHaveLength(2);
  });

  it("is not brought down by a source that fails", async () => {
    const { failures, tokens } = setUp(() => Promise.reject(new Error("away")));
    expect(await tokens.of("Bearer t")).toBeUndefined();
    expect(failures.map(String)).toEqual(["Error: away"]);
  });
});

describe("oidcTokens", () => {
  let server: Server;
  let origin: string;
  let key: CryptoKey;
  let otherKey: CryptoKey;
  let discoveries = 0;
  const served = { isAway: false };

  beforeAll(async () => {
    const pair = await generateKeyPair("ES256", { extractable: true });
    key = pair.privateKey;
    otherKey = (await generateKeyPair("ES256")).privateKey;
    const jwks = { keys: [{ ...(await exportJWK(pair.publicKey)), kid: "k1", alg: "ES256" }] };
    server = createServer((req, res) => {
      if (served.isAway) return void res.writeHead(503).end();
      if (req.url === "/.well-known/openid-configuration") {
        discoveries++;
        return void res.end(JSON.stringify({ issuer: origin, jwks_uri: `${origin}/keys` }));
      }
      res.setHeader("content-type", "application/json");
      res.end(JSON.stringify(jwks));
    });
    await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => new Promise(resolve => server.close(resolve)));

  const issuer = (more: object = {}) => OidcIssuerSchema.parse({ issuer: origin, audience: "fairway", ...more });
  const sign = (
    claims: Record<string, unknown>,
    more: { iss?: string; aud?: string; exp?: string; key?: CryptoKey } = {},
  ) =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: "ES256", kid: "k1" })
      .setIssuer(more.iss ?? origin)
      .setAudience(more.aud ?? "fairway")
      .setExpirationTime(more.exp ?? "5m")
      .sign(more.key ?? key);

  it("finds keys by discovery and takes user and groups from the claims, with prefixes", async () => {
    const source = oidcTokens([issuer({ usernameClaim: "email", usernamePrefix: "corp:", groupsPrefix: "corp:" })]);
    const owner = await source(await sign({ email: "a@x", groups: ["devs", 7] }), never);
    expect(owner?.identity).toEqual({ user: "corp:a@x", groups: ["corp:devs", "system:authenticated"] });
    expect(owner?.expiresAtMs).toBeGreaterThan(Date.now());
    await source(await sign({ email: "b@x" }), never);
    expect(discoveries).toBe(1);
    const plain = oidcTokens([issuer({ jwksUrl: `${origin}/keys` })]);
    expect((await plain(await sign({ sub: "u1", groups: "one" }), never))?.identity).toEqual({
      user: `${origin}#u1`,
      groups: ["one", "system:authenticated"],
    });
  });

  it("judges nothing that is not signed by the issuer for this audience and time", async () => {
    const source = oidcTokens([issuer()]);
    const refused = [
      await sign({ sub: "u" }, { key: otherKey }),
      await sign({ sub: "u" }, { aud: "other" }),
      await sign({ sub: "u" }, { exp: "-1m" }),
      await sign({ sub: "u" }, { iss: "http://elsewhere" }),
      await sign({}),
      new UnsecuredJWT({ sub: "u" }).setIssuer(origin).setAudience("fairway").setExpirationTime("5m").encode(),
      "no-jwt",
      "a.b.c",
      "",
    ];
    for (const token of refused) expect(await source(token, never)).toBeUndefined();
  });

  it("lets no issuer give names of the cluster's own", async () => {
    const source = oidcTokens([issuer({ usernamePrefix: "" })]);
    expect(await source(await sign({ sub: "system:admin" }), never)).toBeUndefined();
    const owner = await source(await sign({ sub: "u", groups: ["system:masters", "devs"] }), never);
    expect(owner?.identity.groups).toEqual(["devs", "system:authenticated"]);
  });

  it("says so when the keys cannot be had, and has them later", async () => {
    const source = oidcTokens([issuer()]);
    served.isAway = true;
    await expect(source(await sign({ sub: "u" }), never)).rejects.toThrow("503");
    served.isAway = false;
    expect(await source(await sign({ sub: "u" }), never)).toBeDefined();
  });

  it("leaves other tokens to the next source", async () => {
    const next: TokenSource = async token => ({ identity: authenticated(`by-${token}`, []) });
    const source = firstOf([oidcTokens([issuer()]), next]);
    expect((await source("x", never))?.identity.user).toBe("by-x");
    expect((await source(await sign({ sub: "u" }), never))?.identity.user).toBe(`${origin}#u`);
  });
});

describe("reviewedTokens", () => {
  const CLUSTER = "https://kubernetes.default.svc";
  let folder: string;
  let ownTokenFile: string;
  const jwt = (iss: string, exp = Math.floor(Date.now() / 1000) + 600): string =>
    new UnsecuredJWT({ iss, exp }).encode();

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "fairway-token-"));
    ownTokenFile = join(folder, "token");
    await writeFile(ownTokenFile, `${jwt(CLUSTER)}\n`);
  });
  afterAll(() => rm(folder, { recursive: true }));

  function setUp(mode: "cluster" | "all", status: object = {}) {
    const posted: object[] = [];
    const source = reviewedTokens({
      kube: {
        create: async (_path, object) => {
          posted.push(object);
          return { ...object, status };
        },
      },
      mode,
      ownTokenFile,
    });
    return { posted, source };
  }
  const robot = { authenticated: true, user: { username: "system:serviceaccount:a:b", groups: ["g"] } };

  it("asks for tokens that say the cluster made them, and for no others", async () => {
    const { posted, source } = setUp("cluster", robot);
    expect(await source("opaque-of-the-app", never)).toBeUndefined();
    expect(await source(jwt("https://accounts.example.com"), never)).toBeUndefined();
    expect(posted).toEqual([]);
    const token = jwt(CLUSTER, 2_000_000_000);
    expect(await source(token, never)).toEqual({
      identity: { user: "system:serviceaccount:a:b", groups: ["g"] },
      expiresAtMs: 2_000_000_000_000,
    });
    expect(posted).toEqual([{ apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token } }]);
  });

  it("asks for all where that is wanted", async () => {
    const { source } = setUp("all", robot);
    expect((await source("opaque", never))?.identity.user).toBe("system:serviceaccount:a:b");
  });

  it("takes a refusal for nobody's token", async () => {
    for (const status of [undefined, {}, { authenticated: false, error: "expired" }, { authenticated: true }]) {
      const { source } = setUp("all", status);
      expect(await source("opaque", never)).toBeUndefined();
    }
  });
});
