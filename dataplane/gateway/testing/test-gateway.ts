import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { text } from "node:stream/consumers";
import { pino } from "pino";
import { Registry } from "prom-client";
import type { GatewayReply, GatewayReport } from "../../../api/wire/stats.ts";
import { systemClock, type Clock } from "../../shared/clock.ts";
import { parseConfig } from "../config.ts";
import { startGateway, type Gateway } from "../gateway.ts";
import type { ReadinessProbe } from "../revisions/early-readiness.ts";
import { FakeApi } from "./fake-api.ts";

const ROUTES = "/apis/serving.knative.dev/v1/routes";
const REVISIONS = "/apis/serving.knative.dev/v1/revisions";
const SLICES = "/apis/discovery.k8s.io/v1/endpointslices";
const SYSTEM_SLICES = "/apis/discovery.k8s.io/v1/namespaces/fairway-system/endpointslices";
const FLOW_CONTROL = "/apis/flowcontrol.fairway.dev/v1";

/** A pod: a server on a loopback port of its own. */
export interface TestPod {
  readonly name: string;
  readonly port: number;
  /** Requests that arrived, as they came. */
  readonly requests: IncomingMessage[];
  close(): Promise<void>;
}

/** A gateway on loopback with an API server in memory, and an autoscaler that takes its reports. */
export interface TestBed {
  readonly api: FakeApi;
  readonly gateway: Gateway;
  readonly reports: GatewayReport[];
  /** What the autoscaler answers; undefined: it fails. */
  reply: GatewayReply | undefined;
  readonly registry: Registry;
  readonly logs: string[];
  revision(name: string, spec?: object, more?: { annotations?: Record<string, string>; conditions?: object[] }): void;
  route(name: string, traffic: readonly object[], more?: { labels?: Record<string, string>; url?: string }): void;
  /** Tells of a pod; readiness as given. */
  endpoint(revision: string, pod: TestPod, conditions?: { ready?: boolean; terminating?: boolean }): void;
  noEndpoint(revision: string, pod: TestPod): void;
  pod(app?: (req: IncomingMessage, res: ServerResponse) => void): Promise<TestPod>;
  /** The URL prefix of a listener. */
  readonly external: string;
  readonly internal: string;
  close(): Promise<void>;
}

export interface TestBedOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  readonly probe?: ReadinessProbe;
  /** For several gateways of one cluster. */
  readonly api?: FakeApi;
  /** Called before the gateway starts. */
  readonly before?: (api: FakeApi) => void;
}

export async function startTestBed(options: TestBedOptions = {}): Promise<TestBed> {
  const api = options.api ?? new FakeApi();
  options.before?.(api);
  const reports: GatewayReport[] = [];
  const pods: TestPod[] = [];
  const logs: string[] = [];
  const registry = new Registry();
  const bed = { reply: { needFull: false, hints: {} } as GatewayReply | undefined };
  const autoscaler = createServer((req, res) => {
    void text(req).then(body => {
      if (bed.reply === undefined) {
        res.writeHead(503).end();
        return;
      }
      reports.push(JSON.parse(body) as GatewayReport);
      res.end(JSON.stringify(bed.reply));
    });
  });
  const autoscalerPort = await listen(autoscaler);
  const gateway = await startGateway({
    config: parseConfig({
      POD_NAME: "gw-1",
      LISTEN_HOST: "127.0.0.1",
      EXTERNAL_PORT: "0",
      INTERNAL_PORT: "0",
      ADMIN_PORT: "0",
      SHUTDOWN_DELAY_MS: "0",
      DRAIN_TIMEOUT_MS: "2000",
      CONNECT_TIMEOUT_MS: "300",
      FAIRWAY_AUTOSCALER_URL: `http://127.0.0.1:${autoscalerPort}`,
      REPORT_TOKEN_FILE: "/nowhere",
      ...options.env,
    }),
    kube: api,
    clock: options.clock ?? systemClock,
    random: Math.random,
    logger: pino({ level: "info" }, { write: (line: string) => void logs.push(line) }),
    registry,
    probe: options.probe ?? (() => Promise.resolve(false)),
    http1Port: pod => Number(pod.address.slice(pod.address.lastIndexOf(":") + 1)),
  });

  const slice = (revision: string, pod: TestPod, conditions: object) => ({
    metadata: {
      name: `${revision}-private-${pod.name}`,
      namespace: "default",
      labels: {
        "serving.knative.dev/revision": revision,
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
      },
    },
    addressType: "IPv4",
    ports: [
      { name: "http-usermetric", port: 9091 },
      { name: "http", port: pod.port },
    ],
    endpoints: [
      {
        addresses: ["127.0.0.1"],
        conditions,
        targetRef: { kind: "Pod", name: pod.name, uid: `uid-${pod.name}` },
      },
    ],
  });

  return Object.assign(bed, {
    api,
    gateway,
    reports,
    registry,
    logs,
    external: `http://127.0.0.1:${gateway.externalPort}`,
    internal: `http://127.0.0.1:${gateway.internalPort}`,
    revision(name, spec = {}, more = {}) {
      api.apply(REVISIONS, {
        metadata: {
          name,
          namespace: "default",
          labels: { "serving.knative.dev/service": name.replace(/-\d+$/, "") },
          ...{ annotations: more.annotations ?? {} },
        },
        ...{
          spec: { containers: [{ image: "app" }], timeoutSeconds: 30, ...spec },
          status: { conditions: more.conditions ?? [] },
        },
      });
    },
    route(name, traffic, more = {}) {
      api.apply(ROUTES, {
        metadata: { name, namespace: "default", labels: more.labels ?? {}, ...{ uid: `uid-${name}` } },
        ...{ status: { url: more.url ?? `http://${name}.default.example.com`, traffic } },
      });
    },
    endpoint(revision, pod, conditions = { ready: true }) {
      api.apply(SLICES, slice(revision, pod, conditions));
    },
    noEndpoint(revision, pod) {
      api.delete(SLICES, "default", `${revision}-private-${pod.name}`);
    },
    async pod(app = (_req, res) => void res.end("ok")) {
      const requests: IncomingMessage[] = [];
      const sockets = new Set<Socket>();
      const server = createServer({ keepAliveTimeout: 60_000 }, (req, res) => {
        requests.push(req);
        app(req, res);
      });
      server.on("connection", socket => sockets.add(socket));
      const port = await listen(server);
      const pod: TestPod = {
        name: `pod-${port}`,
        port,
        requests,
        close: () =>
          new Promise(resolve => {
            for (const socket of sockets) socket.destroy();
            server.close(() => resolve());
          }),
      };
      pods.push(pod);
      return pod;
    },
    async close() {
      await gateway.stop();
      await Promise.all(pods.map(pod => pod.close()));
      autoscaler.closeAllConnections();
      await new Promise(resolve => autoscaler.close(resolve));
    },
  } satisfies Omit<TestBed, "reply">);
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** Tells of the gateways of a cluster: their listeners for requests from inside it, all on loopback. */
export function tellGateways(
  api: FakeApi,
  gateways: readonly {
    readonly name: string;
    readonly port: number;
    readonly address?: string;
    readonly ready?: boolean;
  }[],
): void {
  gateways.forEach(({ name, port, address = "127.0.0.1", ready = true }) => {
    api.apply(SYSTEM_SLICES, {
      metadata: {
        name: `fairway-gateway-internal-${name}`,
        namespace: "fairway-system",
        labels: { "kubernetes.io/service-name": "fairway-gateway-internal" },
      },
      ...{
        addressType: "IPv4",
        ports: [{ name: "http", port }],
        endpoints: [{ addresses: [address], conditions: { ready }, targetRef: { name, uid: `uid-${name}` } }],
      },
    });
  });
}

export function applyLevel(api: FakeApi, name: string, spec: object): void {
  api.apply(`${FLOW_CONTROL}/prioritylevelconfigurations`, {
    metadata: { name, namespace: "", ...{ uid: `uid-${name}` } },
    ...{ spec },
  });
}

export function applySchema(api: FakeApi, name: string, spec: object): void {
  api.apply(`${FLOW_CONTROL}/flowschemas`, {
    metadata: { name, namespace: "", ...{ uid: `uid-${name}` } },
    ...{ spec },
  });
}

/**
 * A gateway before a service `hello` whose pod answers with the fields it got; requests of the subject
 * are of the level and schema `known`.
 */
export async function startSubjectTestBed(subject: object, options: TestBedOptions = {}): Promise<TestBed> {
  const bed = await startTestBed({
    ...options,
    before: api => {
      const queuing = { type: "Queue", queuing: { queues: 1, handSize: 1, queueLengthLimit: 50 } };
      applyLevel(api, "known", { type: "Limited", limited: { nominalConcurrencyShares: 30, limitResponse: queuing } });
      applySchema(api, "known", {
        priorityLevelConfiguration: { name: "known" },
        matchingPrecedence: 100,
        rules: [
          {
            subjects: [subject],
            resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["services"], namespaces: ["default"] }],
          },
        ],
      });
    },
  });
  bed.revision("hello-00001");
  bed.route("hello", [{ revisionName: "hello-00001", percent: 100 }]);
  bed.endpoint("hello-00001", await bed.pod((req, res) => res.end(JSON.stringify(req.headers))));
  return bed;
}
