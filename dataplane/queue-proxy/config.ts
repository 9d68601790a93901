import * as z from "zod/mini";
import en from "zod/v4/locales/en.js";

z.config(en());

/**
 * The environment of a queue-proxy container, as the operator writes it into each pod. Names are Knative's where they
 * mean the same. An empty value counts as absent. zod/mini and not zod: this process starts in every pod, and the
 * smaller library loads tens of milliseconds sooner.
 */

/** Ports a pod's queue-proxy listens on unless the environment says otherwise. */
export const DEFAULT_PORTS = {
  /** HTTP/1.1 requests, and the probes of the kubelet and of the gateways. */
  http: 8012,
  /** The same over HTTP/2 without TLS (prior knowledge). */
  h2c: 8013,
  /** `/drain` for the user container's preStop hook, `/ready`. Reached from the pod's own node only. */
  admin: 8022,
  /** `/stats` and `/metrics`. */
  metrics: 9091,
} as const;

const port = z.coerce.number().check(z.int(), z.gte(1), z.lte(65_535));
const seconds = z.coerce.number().check(z.int(), z.gte(0));
const flag = z.pipe(
  z.enum(["true", "false"]),
  z.transform(value => value === "true"),
);

/** A number, or a number in quotes; absent, zero and empty mean the user port (Go clients send 0). */
const probePort = z._default(
  z.pipe(
    z.union([z.number(), z.string()]),
    z.transform(value => Number(value)),
  ),
  0,
);

const ProbeSchema = z.object({
  httpGet: z.optional(
    z.object({
      path: z._default(z.string(), "/"),
      port: probePort,
      host: z.optional(z.string()),
      scheme: z._default(z.enum(["HTTP", "HTTPS"]), "HTTP"),
      httpHeaders: z._default(z.array(z.object({ name: z.string(), value: z._default(z.string(), "") })), []),
    }),
  ),
  tcpSocket: z.optional(z.object({ port: probePort, host: z.optional(z.string()) })),
  grpc: z.optional(z.object({ port: probePort, service: z._default(z.string(), "") })),
  exec: z.optional(z.looseObject({})),
  initialDelaySeconds: z._default(z.number(), 0),
  periodSeconds: z._default(z.number(), 0),
  timeoutSeconds: z._default(z.number(), 0),
  successThreshold: z._default(z.number(), 1),
  failureThreshold: z._default(z.number(), 3),
});
type ProbeJson = z.infer<typeof ProbeSchema>;

const probes = z.pipe(
  z.string(),
  z.transform((text, context): ProbeJson[] => {
    const refuse = (reason: string): never => {
      context.issues.push({ code: "custom", input: text, message: `not a probe or a list of probes: ${reason}` });
      return z.NEVER;
    };
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch (error) {
      return refuse(String(error));
    }
    const result = z.array(ProbeSchema).safeParse(Array.isArray(json) ? json : [json]);
    return result.success ? result.data : refuse(z.prettifyError(result.error));
  }),
);

export const QueueProxyEnvSchema = z.object({
  /** Most requests at the app at once; 0 is no limit. Hard: never one more. */
  CONTAINER_CONCURRENCY: z.coerce.number().check(z.int(), z.gte(0)),
  /** Most requests that wait here for a place at the app; absent: ten times CONTAINER_CONCURRENCY, as Knative. */
  QUEUE_DEPTH: z.optional(z.coerce.number().check(z.int(), z.gte(0))),
  USER_PORT: port,
  /** What the app speaks on USER_PORT; h2c is HTTP/2 without TLS, for clients of either version. */
  USER_PROTOCOL: z._default(z.enum(["http1", "h2c"]), "http1"),
  QUEUE_SERVING_PORT: z._default(port, DEFAULT_PORTS.http),
  QUEUE_SERVING_H2C_PORT: z._default(port, DEFAULT_PORTS.h2c),
  QUEUE_ADMIN_PORT: z._default(port, DEFAULT_PORTS.admin),
  QUEUE_METRICS_PORT: z._default(port, DEFAULT_PORTS.metrics),
  /** From the moment the app gets a request to the end of its answer. */
  REVISION_TIMEOUT_SECONDS: z.coerce.number().check(z.int(), z.gte(1)),
  /** From the moment the app gets a request to the first byte of its answer; 0 is no limit. */
  REVISION_RESPONSE_START_TIMEOUT_SECONDS: z._default(seconds, 0),
  /** Longest silence of the app within one request; 0 is no limit. */
  REVISION_IDLE_TIMEOUT_SECONDS: z._default(seconds, 0),
  /** JSON of a core/v1 Probe, or of a list of them (several containers); absent: a TCP connection to USER_PORT. */
  SERVING_READINESS_PROBE: z.optional(probes),
  SERVING_NAMESPACE: z.string(),
  SERVING_SERVICE: z._default(z.string(), ""),
  SERVING_CONFIGURATION: z._default(z.string(), ""),
  SERVING_REVISION: z.string(),
  /** `metadata.name` by the downward API. */
  SERVING_POD: z.string(),
  SERVING_LOGGING_LEVEL: z._default(z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]), "info"),
  /** One line of JSON on stdout for each request. */
  SERVING_ENABLE_REQUEST_LOG: z._default(flag, false),
  SERVING_ENABLE_PROBE_REQUEST_LOG: z._default(flag, false),
  /** Report the CPU of the pod's other containers; needs `shareProcessNamespace: true` on the pod. */
  MEASURE_CPU: z._default(flag, false),
  /** How long a probe waits for an app that is still starting before it is answered 503; below the kubelet's timeout. */
  PROBE_HOLD_MS: z._default(z.coerce.number().check(z.int(), z.gte(0)), 800),
  /** After a drain began: exit no sooner than this long after the last request came in. */
  DRAIN_QUIET_MS: z._default(z.coerce.number().check(z.int(), z.gte(0)), 3000),
  /** After a drain began: exit no later than this; absent: REVISION_TIMEOUT_SECONDS and the quiet time. */
  DRAIN_MAX_MS: z.optional(z.coerce.number().check(z.int(), z.gte(0))),
});

/** One readiness check, with every default filled in. */
export interface ReadinessProbe {
  readonly check:
    | {
        readonly kind: "http";
        readonly host: string;
        readonly port: number;
        readonly path: string;
        readonly tls: boolean;
        readonly headers: Readonly<Record<string, string>>;
      }
    | { readonly kind: "tcp"; readonly host: string; readonly port: number }
    | { readonly kind: "grpc"; readonly host: string; readonly port: number; readonly service: string };
  /** Nothing is checked before the container has run this long. */
  readonly initialDelayMs: number;
  /** For one attempt. */
  readonly timeoutMs: number;
  readonly successThreshold: number;
  /** Between two attempts at an app that has started; 0: as often as somebody asks. */
  readonly periodMs: number;
}

export interface QueueProxyConfig {
  readonly containerConcurrency: number;
  readonly queueDepth: number;
  readonly app: { readonly host: string; readonly port: number; readonly protocol: "http1" | "h2c" };
  readonly ports: {
    readonly http: number;
    readonly h2c: number;
    readonly admin: number;
    readonly metrics: number;
  };
  /** 0 is no limit for the last two. */
  readonly timeouts: { readonly wholeMs: number; readonly responseStartMs: number; readonly idleMs: number };
  readonly readinessProbes: readonly ReadinessProbe[];
  readonly probeHoldMs: number;
  readonly identity: {
    readonly namespace: string;
    readonly service: string;
    readonly configuration: string;
    readonly revision: string;
    readonly pod: string;
  };
  readonly logLevel: z.infer<typeof QueueProxyEnvSchema>["SERVING_LOGGING_LEVEL"];
  readonly requestLog: { readonly enabled: boolean; readonly probes: boolean };
  readonly measureCpu: boolean;
  readonly drain: { readonly quietMs: number; readonly maxMs: number };
}

/** The environment of the process does not make a configuration. */
export class ConfigError extends Error {
  readonly code = "CONFIG_INVALID";
}

const LOOPBACK = "127.0.0.1";
/** Knative's timeout for one attempt where the user left the period to the system. */
const QUICK_ATTEMPT_MS = 100;

/**
 * Reads the environment of a queue-proxy.
 * @throws ConfigError naming each key, its bound and what was found.
 */
export function parseConfig(env: Readonly<Record<string, string | undefined>>): QueueProxyConfig {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ""));
  const result = QueueProxyEnvSchema.safeParse(given);
  if (!result.success) {
    const lines = result.error.issues.map(issue => {
      const key = issue.path.map(String).join(".");
      return `${key}: ${issue.message} (value: ${given[key] ?? "absent"})`;
    });
    throw new ConfigError(`queue-proxy configuration: ${lines.join("; ")}`);
  }
  const e = result.data;
  const wholeMs = e.REVISION_TIMEOUT_SECONDS * 1000;
  return {
    containerConcurrency: e.CONTAINER_CONCURRENCY,
    queueDepth: e.QUEUE_DEPTH ?? 10 * e.CONTAINER_CONCURRENCY,
    app: { host: LOOPBACK, port: e.USER_PORT, protocol: e.USER_PROTOCOL },
    ports: {
      http: e.QUEUE_SERVING_PORT,
      h2c: e.QUEUE_SERVING_H2C_PORT,
      admin: e.QUEUE_ADMIN_PORT,
      metrics: e.QUEUE_METRICS_PORT,
    },
    timeouts: {
      wholeMs,
      responseStartMs: e.REVISION_RESPONSE_START_TIMEOUT_SECONDS * 1000,
      idleMs: e.REVISION_IDLE_TIMEOUT_SECONDS * 1000,
    },
    readinessProbes: (e.SERVING_READINESS_PROBE ?? [ProbeSchema.parse({})]).map(probe =>
      readinessProbe(probe, e.USER_PORT),
    ),
    probeHoldMs: e.PROBE_HOLD_MS,
    identity: {
      namespace: e.SERVING_NAMESPACE,
      service: e.SERVING_SERVICE,
      configuration: e.SERVING_CONFIGURATION,
      revision: e.SERVING_REVISION,
      pod: e.SERVING_POD,
    },
    logLevel: e.SERVING_LOGGING_LEVEL,
    requestLog: { enabled: e.SERVING_ENABLE_REQUEST_LOG, probes: e.SERVING_ENABLE_PROBE_REQUEST_LOG },
    measureCpu: e.MEASURE_CPU,
    drain: { quietMs: e.DRAIN_QUIET_MS, maxMs: e.DRAIN_MAX_MS ?? wholeMs + e.DRAIN_QUIET_MS },
  };
}

function readinessProbe(probe: ProbeJson, userPort: number): ReadinessProbe {
  const timeoutMs = probe.periodSeconds > 0 ? Math.max(1, probe.timeoutSeconds) * 1000 : QUICK_ATTEMPT_MS;
  return {
    check: checkOf(probe, userPort),
    initialDelayMs: probe.initialDelaySeconds * 1000,
    timeoutMs,
    successThreshold: Math.max(1, probe.successThreshold),
    periodMs: probe.periodSeconds * 1000,
  };
}

/** A command cannot be run from here: the kubelet runs it on the user container, and this side looks for the port. */
function checkOf(probe: ProbeJson, userPort: number): ReadinessProbe["check"] {
  if (probe.httpGet !== undefined) {
    const { httpGet } = probe;
    return {
      kind: "http",
      host: httpGet.host ?? LOOPBACK,
      port: httpGet.port || userPort,
      path: httpGet.path.startsWith("/") ? httpGet.path : `/${httpGet.path}`,
      tls: httpGet.scheme === "HTTPS",
      headers: Object.fromEntries(httpGet.httpHeaders.map(header => [header.name, header.value])),
    };
  }
  if (probe.grpc !== undefined) {
    return { kind: "grpc", host: LOOPBACK, port: probe.grpc.port || userPort, service: probe.grpc.service };
  }
  return {
    kind: "tcp",
    host: probe.tcpSocket?.host ?? LOOPBACK,
    port: (probe.tcpSocket?.port ?? 0) || userPort,
  };
}
