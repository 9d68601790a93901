import { X509Certificate } from "node:crypto";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeClock } from "../../core/testing/fake-clock.ts";
import type { Clock } from "./clock.ts";
import { createKubeApi, type KubeApi } from "./kube-api.ts";
import { silentLogger } from "./logging.ts";
import { eventually } from "./testing/eventually.ts";
import { FakeApiServer } from "./testing/fake-api-server.ts";
import type { KubeObject } from "./types.ts";
import { CertificateKeeper } from "./webhook-certificates.ts";

const DAY_MS = 86_400_000;
const path = "/api/v1/namespaces/fairway-system/secrets/fairway-webhook-certs";

describe("webhook certificates", () => {
  let server: FakeApiServer;
  let api: KubeApi;
  let clock: FakeClock;
  let stop: AbortController;

  beforeEach(async () => {
    server = new FakeApiServer();
    api = createKubeApi(await server.start());
    clock = new FakeClock(Date.now());
    stop = new AbortController();
  });
  afterEach(async () => {
    stop.abort();
    await api.close();
    await server.stop();
  });

  const keeper = (hosts = ["a.svc"], with_: Clock = clock) =>
    new CertificateKeeper({
      api,
      namespace: "fairway-system",
      hosts,
      clock: with_,
      random: () => 0,
      log: silentLogger,
      metrics: new Registry(),
    });
  const read = () => keeper().read(server.get(path) as KubeObject);
  const authorities = () => (read()?.caBundle.match(/BEGIN/g) ?? []).length;

  /** Advances in steps until `done` holds: the keeper works over a real socket in between. */
  const advanceUntil = async (stepMs: number, done: () => boolean) => {
    for (let step = 0; step < 200 && !done(); step++) {
      await clock.advance(stepMs);
      await new Promise(resolve => setTimeout(resolve, 5));
    }
    expect(done()).toBe(true);
  };

  it("makes the Secret once, although several replicas try", async () => {
    await Promise.all([keeper().ensure(stop.signal), keeper().ensure(stop.signal), keeper().ensure(stop.signal)]);
    const made = read();
    expect(new X509Certificate(made?.serving.certificate ?? "").subjectAltName).toBe("DNS:a.svc");
    expect(server.requests.filter(({ method }) => method === "POST").length).toBeGreaterThan(0);
    const { resourceVersion } = server.get(path)?.metadata ?? {};
    await keeper().ensure(stop.signal);
    expect(server.get(path)?.metadata.resourceVersion).toBe(resourceVersion);
  });

  it("makes it anew when it is damaged", async () => {
    server.put("/api/v1/namespaces/fairway-system/secrets", {
      metadata: { name: "fairway-webhook-certs" },
      data: { "tls.crt": "eA==" },
    });
    expect(read()).toBeUndefined();
    await keeper().ensure(stop.signal);
    expect(read()).toBeDefined();
  });

  it("waits out an API server that is away", async () => {
    server.fault = () => ({ code: 503, reason: "ServiceUnavailable" });
    const ensured = keeper().ensure(stop.signal);
    await eventually(() => expect(server.requests.length).toBeGreaterThan(0));
    server.fault = () => undefined;
    await advanceUntil(1000, () => read() !== undefined);
    await ensured;
  });

  it("renews the serving certificate after 60 of its 90 days and keeps the authority", async () => {
    await keeper().ensure(stop.signal);
    const before = read();
    const waitMs = await keeper().step(stop.signal);
    expect(waitMs / DAY_MS).toBeCloseTo(60, 1);
    await clock.advance(waitMs - 2000);
    expect(await keeper().step(stop.signal)).toBeLessThanOrEqual(2000);
    await clock.advance(2000);
    expect(await keeper().step(stop.signal)).toBe(0);
    expect(read()?.serving.certificate).not.toBe(before?.serving.certificate);
    expect(read()?.caBundle).toBe(before?.caBundle);
  });

  it("issues for new names", async () => {
    await keeper(["a.svc"]).ensure(stop.signal);
    await keeper(["a.svc", "b.svc"]).step(stop.signal);
    expect(new X509Certificate(read()?.serving.certificate ?? "").subjectAltName).toBe("DNS:a.svc, DNS:b.svc");
  });

  it("changes the authority in two steps, so that every served certificate is in every bundle", async () => {
    await keeper().ensure(stop.signal);
    const first = read();
    await clock.advance(2440 * DAY_MS);
    const verifies = (bundle: string | undefined, pem: string | undefined) =>
      (bundle ?? "")
        .split(/(?<=END CERTIFICATE-----\n)/)
        .filter(text => text.includes("BEGIN"))
        .some(text => new X509Certificate(pem ?? "").verify(new X509Certificate(text).publicKey));
    await keeper().step(stop.signal);
    const renewed = read();
    expect(renewed?.caBundle).toBe(first?.caBundle);
    await keeper().step(stop.signal);
    const announced = read();
    expect(authorities()).toBe(2);
    expect(announced?.serving).toEqual(renewed?.serving);
    expect(verifies(announced?.caBundle, first?.serving.certificate)).toBe(true);
    const waitMs = await keeper().step(stop.signal);
    expect(waitMs / 60_000).toBeCloseTo(10, 1);
    await clock.advance(waitMs);
    await keeper().step(stop.signal);
    const promoted = read();
    expect(verifies(announced?.caBundle, promoted?.serving.certificate)).toBe(true);
    expect(verifies(first?.caBundle, promoted?.serving.certificate)).toBe(false);
    expect(verifies(promoted?.caBundle, announced?.serving.certificate)).toBe(true);
    expect(authorities()).toBe(2);
  });
});
