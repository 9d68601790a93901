import "./pepr-mode.ts";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Capability } from "pepr";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { admissionCapability } from "../admission/index.ts";
import type { CapabilityModule } from "./capability.ts";
import { systemClock } from "./clock.ts";
import { parseConfig } from "./config.ts";
import { createKubeApi } from "./kube-api.ts";
import { configMaps, services } from "./kinds.ts";
import { silentLogger } from "./logging.ts";
import { operate } from "./operator.ts";
import { eventually } from "./testing/eventually.ts";
import { FakeApiServer, type StoredObject } from "./testing/fake-api-server.ts";

const WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const SERVICES = "/apis/serving.knative.dev/v1/namespaces/ns/services";
const LEASE = "/apis/coordination.k8s.io/v1/namespaces/fairway-system/leases/fairway-operator";
const SECRETS = "/api/v1/namespaces/fairway-system/secrets";
const SLICE = "/apis/discovery.k8s.io/v1/namespaces/fairway-system/endpointslices/fairway-autoscaler";

async function freePort(): Promise<number> {
  const probe = createServer().listen(0);
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}

/** The whole process but for its signals: Pepr, TLS, caches, election, against an API server on a loopback socket. */
describe("operator", () => {
  const server = new FakeApiServer();
  const stop = new AbortController();
  const reconciled: string[] = [];
  let directory: string;
  let webhookPort: number;
  let metricsPort: number;
  let ended: Promise<void>;

  const things: CapabilityModule = runtime => {
    const capability = new Capability({ name: "things", description: "" });
    const controller = runtime.registerController({
      name: "things",
      reconciler: {
        name: "things",
        reconcile: async key => {
          reconciled.push(key.name);
          return {};
        },
      },
    });
    capability.When(services.model, services).IsCreatedOrUpdated().Watch(controller.hint);
    return capability;
  };

  const get = async (path: string): Promise<{ code: number; text: string }> => {
    const response = await fetch(`http://127.0.0.1:${metricsPort}${path}`);
    return { code: response.status, text: await response.text() };
  };
  const caBundle = (): string => {
    const webhooks = server.get(`${WEBHOOKS}/fairway`)?.["webhooks"] as
      | { clientConfig: { caBundle?: string } }[]
      | undefined;
    return Buffer.from(webhooks?.[0]?.clientConfig.caBundle ?? "", "base64").toString();
  };
  /** Calls a webhook as the API server does: it trusts the bundle of the webhook configuration alone. */
  const review = (webhook: string, fields: object): Promise<Record<string, unknown>> =>
    new Promise((resolve, reject) => {
      const sent = request(
        {
          host: "127.0.0.1",
          port: webhookPort,
          path: webhook,
          method: "POST",
          servername: "fairway-operator.fairway-system.svc",
          ca: caBundle(),
          agent: false,
          headers: { "content-type": "application/json" },
        },
        response => {
          let text = "";
          response.setEncoding("utf8").on("data", chunk => (text += chunk));
          response.on("end", () => resolve((JSON.parse(text) as { response: Record<string, unknown> }).response));
        },
      );
      sent.on("error", reject);
      const kind = { group: "serving.knative.dev", version: "v1", kind: "Service" };
      const userInfo = { username: "ada" };
      sent.end(
        JSON.stringify({
          request: { uid: "u", operation: "CREATE", kind, userInfo, name: "x", namespace: "ns", ...fields },
        }),
      );
    });
  const service = (spec: object, metadata: object = {}) => ({
    apiVersion: "serving.knative.dev/v1",
    kind: "Service",
    metadata: { name: "x", namespace: "ns", ...metadata },
    spec: {
      template: { spec: { containers: [{ image: "kind.local/image" }], ...spec } },
      traffic: [{ latestRevision: true, percent: 100 }],
    },
  });

  beforeAll(async () => {
    // Pepr waits up to 3 s, by chance, before it reads its store.
    vi.spyOn(Math, "random").mockReturnValue(0);
    [webhookPort, metricsPort] = [await freePort(), await freePort()];
    const kubeConfig = await server.start();
    directory = await mkdtemp(join(tmpdir(), "fairway-test-"));
    const file = join(directory, "kubeconfig");
    await writeFile(file, kubeConfig.exportConfig());
    process.env["KUBECONFIG"] = file;
    server.serveKind(
      "admissionregistration.k8s.io/v1",
      "ValidatingWebhookConfiguration",
      "validatingwebhookconfigurations",
      false,
    );
    server.serveKind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices");
    server.put(WEBHOOKS, {
      metadata: { name: "fairway" },
      webhooks: [{ name: "w", clientConfig: { url: "x" } }],
    } as StoredObject);
    server.put(SERVICES, service({}) as StoredObject);
    const config = parseConfig({
      POD_NAME: "operator-1",
      POD_IP: "10.0.0.9",
      WEBHOOK_PORT: String(webhookPort),
      METRICS_PORT: String(metricsPort),
      SHUTDOWN_DELAY_MS: "0",
    });
    ended = operate(
      {
        config,
        loggerFor: () => silentLogger,
        clock: systemClock,
        random: () => 0,
        api: createKubeApi(kubeConfig),
        modules: [admissionCapability, things],
      },
      stop.signal,
    );
    await eventually(async () => expect((await get("/readyz")).code).toBe(200), 15_000);
  }, 30_000);

  afterAll(async () => {
    stop.abort();
    await ended;
    await server.stop();
    await rm(directory, { recursive: true });
    vi.restoreAllMocks();
  });

  it("leads, reconciles what was there before, and is the end of the stats Service", async () => {
    await eventually(() => expect(reconciled).toEqual(["x"]));
    expect(server.get(LEASE)).toMatchObject({ spec: { holderIdentity: "operator-1" } });
    await eventually(() => expect(server.get(SLICE)).toMatchObject({ endpoints: [{ addresses: ["10.0.0.9"] }] }));
  });

  it("fills in defaults and who made it, and leaves nothing of Pepr's on the object", async () => {
    const answer = await review("/mutate", { object: service({}) });
    expect(answer).toMatchObject({ uid: "u", allowed: true, patchType: "JSONPatch" });
    const patch = Buffer.from(String(answer["patch"]), "base64").toString();
    expect(patch).toContain('"/spec/template/spec/timeoutSeconds","value":300');
    expect(patch).toContain('"serving.knative.dev/creator":"ada"');
    expect(patch).not.toContain("pepr");
  });

  it("leaves an object without its kind's form to the API server's schema", async () => {
    expect(await review("/mutate", { object: service({ containers: "none" }) })).toEqual({ uid: "u", allowed: true });
  });

  it("refuses what cannot work in Knative's words", async () => {
    const object = service({ containerConcurrency: -1 });
    expect(await review("/validate", { object })).toMatchObject({
      allowed: false,
      status: {
        code: 400,
        reason: "BadRequest",
        message: "validation failed: expected 0 <= -1 <= 1000: spec.template.spec.containerConcurrency",
      },
    });
  });

  it("lets an object go whatever it says", async () => {
    const object = service({ containerConcurrency: -1 }, { deletionTimestamp: "2026-01-01T00:00:00Z" });
    expect(await review("/validate", { operation: "UPDATE", object, oldObject: object })).toMatchObject({
      allowed: true,
    });
  });

  it("validates by the settings of the ConfigMaps, and refuses a setting that cannot be used", async () => {
    const kind = { group: "", version: "v1", kind: "ConfigMap" };
    const configMap = (data: object) => ({
      metadata: { name: "config-autoscaler", namespace: "fairway-system" },
      data,
    });
    const namespace = "fairway-system";
    expect(await review("/validate", { kind, namespace, object: configMap({ "stable-window": "1s" }) })).toMatchObject({
      allowed: false,
      status: { message: 'validation failed: config-autoscaler: stable-window must be in [5s, 1h0m0s], was "1s"' },
    });
    expect(await review("/validate", { kind, namespace, object: configMap({}) })).toMatchObject({ allowed: true });
    const collection = `/api/v1/namespaces/${namespace}/${configMaps.plural}`;
    server.put(collection, {
      metadata: { name: "config-defaults", namespace },
      data: { "max-revision-timeout-seconds": "1000" },
    });
    await eventually(async () =>
      expect(await review("/validate", { object: service({ timeoutSeconds: 900 }) })).toMatchObject({ allowed: true }),
    );
  });

  it("puts the CA back when someone takes it out, and serves a new certificate without a restart", async () => {
    const first = caBundle();
    server.put(WEBHOOKS, {
      metadata: { name: "fairway" },
      webhooks: [{ name: "w", clientConfig: { url: "x" } }],
    } as StoredObject);
    await eventually(() => expect(caBundle()).toBe(first));
    server.remove(`${SECRETS}/fairway-webhook-certs`);
    await eventually(() => expect(caBundle()).not.toBe(first));
    await eventually(async () =>
      expect(await review("/mutate", { object: service({}) })).toMatchObject({ allowed: true }),
    );
  });

  it("shows metrics of its own and of Pepr", async () => {
    const { text } = await get("/metrics");
    expect(text).toContain('leader_election_master_status{name="fairway-operator"} 1');
    expect(text).toContain("fairway_admission_requests_total");
    expect(text).toContain("pepr_validate_count");
    expect((await get("/healthz")).code).toBe(200);
  });

  it("stops in order: readiness fails, the lease is given up, nothing listens any more", async () => {
    stop.abort();
    await ended;
    expect(server.get(LEASE)).toMatchObject({ spec: { holderIdentity: "" } });
    await expect(get("/healthz")).rejects.toThrow();
    await expect(review("/mutate", {})).rejects.toThrow();
  });
});
