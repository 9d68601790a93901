import { connect as connectH2, type IncomingHttpHeaders } from "node:http2";
import { connect as connectTcp } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  makeAuthority,
  type TestAuthority,
  type TestKeyPair,
} from "../../dataplane/shared/testing/test-certificates.ts";
import { gatewayAddress, SYSTEM_NAMESPACE, systemReady, type GatewayAddress } from "../../hack/kit/install.ts";
import type { AnyObject } from "../../hack/kit/kube.ts";
import { load, send, type Answer } from "../../hack/kit/load.ts";
import { metricValue } from "../../hack/kit/metrics.ts";
import { waitFor } from "../../hack/kit/wait.ts";
import { applyReady, kube, ownNamespace, request, service } from "./support.ts";

const namespace = ownNamespace("certs");
const NAME = "who";
const HOST = `${NAME}.${namespace}.example.com`;
const FLOW_CONTROL = "flowcontrol.fairway.dev/v1";
const ADMIN_PORT = 9090;
const SCHEMA_UID = "x-kubernetes-pf-flowschema-uid";
const USER = `${namespace}-alice`;
const GROUP = `${namespace}-devs`;
const HOUR_MS = 3_600_000;

const SECRET = { apiVersion: "v1", kind: "Secret", name: "fairway-gateway-tls", namespace: SYSTEM_NAMESPACE };
const CLIENT_CA = {
  apiVersion: "v1",
  kind: "ConfigMap",
  name: "fairway-gateway-client-ca",
  namespace: SYSTEM_NAMESPACE,
};

const schema = (name: string, subject: object): AnyObject => ({
  apiVersion: FLOW_CONTROL,
  kind: "FlowSchema",
  metadata: { name: `${namespace}-${name}` },
  spec: {
    priorityLevelConfiguration: { name: "workload-low" },
    matchingPrecedence: 700,
    distinguisherMethod: { type: "ByUser" },
    rules: [
      {
        subjects: [subject],
        resourceRules: [
          { verbs: ["*"], apiGroups: ["serving.knative.dev"], resources: ["services"], namespaces: [namespace] },
        ],
      },
    ],
  },
});
const schemas = [
  schema("a-user", { kind: "User", user: { name: USER } }),
  schema("b-group", { kind: "Group", group: { name: GROUP } }),
];

let servers: TestAuthority;
let clients: TestAuthority;
let address: GatewayAddress;
/** What came of a connection before there was a certificate. */
let before: string;
let byUser: string | undefined;
let byGroup: string | undefined;

beforeAll(async () => {
  [servers, clients] = await Promise.all([makeAuthority("servers"), makeAuthority("clients")]);
  address = await gatewayAddress(kube(), 443);
  before = await tryToConnect();
  if (before === CONNECTED) {
    // Of an earlier run on this cluster: a gateway that was given a certificate keeps it.
    await kube().delete(SECRET);
    await kube().delete(CLIENT_CA);
    for (const name of await gatewayPods())
      await kube().delete({ apiVersion: "v1", kind: "Pod", name, namespace: SYSTEM_NAMESPACE });
    before = await waitFor("gateways without a certificate", async () => {
      const outcome = await tryToConnect();
      return outcome === CONNECTED ? undefined : outcome;
    });
    await systemReady(kube());
  }
  [byUser, byGroup] = (await kube().apply(schemas)).map(({ metadata }) => metadata?.uid);
  await applyReady(service(namespace, NAME, { annotations: { "autoscaling.knative.dev/min-scale": "1" } }));
});
afterAll(async () => {
  for (const { metadata } of schemas)
    await kube().delete({ apiVersion: FLOW_CONTROL, kind: "FlowSchema", name: metadata?.name ?? "" });
  await kube().delete(SECRET);
  await kube().delete(CLIENT_CA);
});

const CONNECTED = "connected";
const tryToConnect = (): Promise<string> =>
  new Promise(resolve => {
    const socket = connectTcp({ host: address.address, port: address.port });
    socket.once("error", error => resolve(error.message));
    socket.once("connect", () => {
      socket.destroy();
      resolve(CONNECTED);
    });
  });

const gatewayPods = async (): Promise<string[]> =>
  (await kube().list("v1", "Pod", SYSTEM_NAMESPACE, "app.kubernetes.io/component=gateway"))
    .filter(({ metadata }) => metadata?.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata?.name ?? "");

/** A kubelet looks at volumes once a minute, and when a pod changes: an annotation spares the minute. */
async function lookNow(): Promise<undefined> {
  for (const name of await gatewayPods())
    await kube().mergePatch(
      { apiVersion: "v1", kind: "Pod", name, namespace: SYSTEM_NAMESPACE },
      { metadata: { annotations: { "test.fairway.dev/look": String(Date.now()) } } },
    );
  return undefined;
}

const putServer = async ({ certificate, key }: TestKeyPair): Promise<void> => {
  const { name, namespace, ...kind } = SECRET;
  const stringData = { "tls.crt": certificate, "tls.key": key };
  await kube().apply([{ ...kind, metadata: { name, namespace }, type: "kubernetes.io/tls", stringData }]);
};
const putClientCa = async (...authorities: readonly TestAuthority[]): Promise<void> => {
  const { name, namespace, ...kind } = CLIENT_CA;
  const data = { "ca.crt": authorities.map(({ certificate }) => certificate).join("\n") };
  await kube().apply([{ ...kind, metadata: { name, namespace }, data }]);
};

/** Waits until it holds at each gateway, by what its metrics say. */
async function eachGateway(what: string, holds: (metrics: string) => boolean): Promise<void> {
  await waitFor(
    what,
    async () => {
      for (const pod of await gatewayPods())
        if (!holds(await kube().podGet(SYSTEM_NAMESPACE, pod, ADMIN_PORT, "/metrics"))) return lookNow();
      return true;
    },
    { timeoutMs: 120_000, everyMs: 2_000 },
  );
}
const EXPIRY = "fairway_gateway_tls_certificate_expiry_timestamp_seconds";
/** Certificates are told apart by their end. */
const serverUntil = (atMs: number): Promise<TestKeyPair> => servers.server({ commonName: "gateway", notAfterMs: atMs });
const shown = (atMs: number): Promise<void> =>
  eachGateway("the certificate to be shown", metrics => metricValue(metrics, EXPIRY) === Math.floor(atMs / 1_000));

const tlsOf = (pair?: TestKeyPair): ConnectionOptions => ({
  ca: servers.certificate,
  servername: "localhost",
  ...(pair === undefined ? {} : { cert: pair.certificate, key: pair.key }),
});
const target = (pair?: TestKeyPair) => ({ ...address, host: HOST, tls: tlsOf(pair) });
const ask = (pair?: TestKeyPair, path = "/"): Promise<Answer> => send(target(pair), { path });
const alice = (authority = clients): Promise<TestKeyPair> =>
  authority.client({ commonName: USER, organizations: [GROUP] });

/** Each new connection may be to another gateway: so often until it is the same for all. */
const CONNECTIONS = 12;
const askOften = async (pair?: TestKeyPair): Promise<readonly Answer[]> =>
  Promise.all(Array.from({ length: CONNECTIONS }, () => ask(pair)));
const untilAll = (what: string, pair: TestKeyPair, holds: (answer: Answer) => boolean): Promise<unknown> =>
  waitFor(what, async () => ((await askOften(pair)).every(holds) ? true : lookNow()), {
    timeoutMs: 120_000,
    everyMs: 2_000,
  });

async function askH2(pair: TestKeyPair): Promise<IncomingHttpHeaders> {
  const session = connectH2(`https://${address.address}:${address.port}`, tlsOf(pair));
  try {
    return await new Promise((resolve, reject) => {
      session.once("error", reject);
      session.request({ ":path": "/", ":authority": HOST }).once("response", resolve).once("error", reject).resume();
    });
  } finally {
    session.close();
  }
}

/** The end of the certificate that gateways were last given. */
let current = 0;
/** Gives them another one, and waits until they show it. */
async function renew(): Promise<void> {
  current = (current === 0 ? Date.now() + 24 * HOUR_MS : current) + HOUR_MS;
  await putServer(await serverUntil(current));
  await shown(current);
}
/** What a test begins with: TLS is on, and clients are asked for certificates. */
async function asking(): Promise<void> {
  if (current === 0) await renew();
  await putClientCa(clients);
  await untilAll("certificates to be asked for", await alice(), ({ headers }) => headers[SCHEMA_UID] === byUser);
}

describe("TLS and client certificates", () => {
  it("is off without the Secret, and on when there is one", async () => {
    expect(before).toContain("ECONNREFUSED");
    await kube().delete(CLIENT_CA);
    await renew();
    const anonymous = (await request(namespace, NAME)).headers[SCHEMA_UID];
    // Nobody is asked for a certificate yet.
    await untilAll("all to be anonymous", await alice(), ({ status, headers }) => {
      return status === 200 && headers[SCHEMA_UID] === anonymous;
    });
  });

  it("finds the schema of the certificate's user, or group, over both versions of HTTP", async () => {
    await asking();
    const pair = await alice();
    expect((await ask(pair)).headers[SCHEMA_UID]).toBe(byUser);
    expect((await askH2(pair))[SCHEMA_UID]).toBe(byUser);
    const bob = await clients.client({ commonName: `${namespace}-bob`, organizations: ["others", GROUP] });
    expect((await ask(bob)).headers[SCHEMA_UID]).toBe(byGroup);
  });

  it("takes who shows none for anonymous, and refuses a bad one", async () => {
    await asking();
    const anonymous = await ask();
    expect(anonymous.status).toBe(200);
    expect(anonymous.headers[SCHEMA_UID]).toBe((await request(namespace, NAME)).headers[SCHEMA_UID]);
    expect([byUser, byGroup]).not.toContain(anonymous.headers[SCHEMA_UID]);
    const stranger = await alice(await makeAuthority("strangers"));
    for (const answer of await askOften(stranger))
      expect([answer.status, answer.headers["x-fairway-error"]]).toEqual([401, "CLIENT_CERTIFICATE_INVALID"]);
  });

  it("tells the app that it was https", async () => {
    await asking();
    const { headers } = JSON.parse((await ask(await alice(), "/headers")).body) as {
      headers: Record<string, string[]>;
    };
    expect(headers["X-Forwarded-Proto"]).toEqual(["https"]);
  });

  it("shows another certificate while requests go on, and loses none", async () => {
    await asking();
    const pair = await alice();
    const stop = new AbortController();
    // Connections that stay, and one that is new for each request.
    const running = load(target(pair), { concurrency: 4, perClient: 100_000, pauseMs: 20, until: stop.signal });
    const fresh: Promise<Answer>[] = [];
    const timer = setInterval(() => fresh.push(ask(pair)), 200);
    try {
      await renew();
    } finally {
      clearInterval(timer);
      stop.abort();
    }
    const report = await running;
    expect(report.errors).toEqual([]);
    expect(Object.keys(report.byStatus)).toEqual(["200"]);
    expect(fresh.length).toBeGreaterThan(0);
    for (const answer of await Promise.all(fresh)) expect(answer.headers[SCHEMA_UID]).toBe(byUser);
    const end = await new Promise(resolve => {
      const socket = connectTls({ ...tlsOf(), host: address.address, port: address.port }, () => {
        resolve(Date.parse(socket.getPeerCertificate().valid_to));
        socket.end();
      });
    });
    expect(end).toBe(Math.floor(current / 1_000) * 1_000);
  });

  it("believes the authorities of now: the old one until it is taken away", async () => {
    await asking();
    const next = await makeAuthority("next");
    const [old, other] = [await alice(), await alice(next)];
    await putClientCa(clients, next);
    await untilAll("the new authority to be believed", other, ({ headers }) => headers[SCHEMA_UID] === byUser);
    expect((await ask(old)).headers[SCHEMA_UID]).toBe(byUser);
    await putClientCa(next);
    await untilAll("the old authority not to be believed", old, ({ status }) => status === 401);
    expect((await ask(other)).headers[SCHEMA_UID]).toBe(byUser);
  });

  it("keeps the last good certificate when the Secret is spoilt", async () => {
    await asking();
    const [one, other] = [await serverUntil(current + HOUR_MS), await serverUntil(current + HOUR_MS)];
    await putServer({ certificate: one.certificate, key: other.key });
    const isSeen = (metrics: string): boolean =>
      (metricValue(metrics, "fairway_gateway_tls_file_failures_total", { file: "certificate" }) ?? 0) > 0;
    await eachGateway("the wrong pair to be seen", isSeen);
    await shown(current);
    expect((await ask(await alice())).headers[SCHEMA_UID]).toBe(byUser);
  });
});
