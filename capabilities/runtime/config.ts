import { hostname } from "node:os";
import { z } from "zod";

const port = (fallback: number) => z.coerce.number().int().min(1).max(65535).default(fallback);
const durationMs = (fallback: number, lowest: number) => z.coerce.number().int().min(lowest).default(fallback);

/** The operator's whole configuration: environment variables, parsed once at start. Durations are in milliseconds. */
const schema = z
  .object({
    SYSTEM_NAMESPACE: z.string().min(1).default("fairway-system"),
    /** This replica's name in the Lease; the pod's name in a cluster. */
    POD_NAME: z.string().min(1).optional(),
    /** Where gateways reach this replica's stats intake; absent outside a cluster: then no endpoint is published. */
    POD_IP: z.union([z.ipv4(), z.ipv6()]).optional(),
    CLUSTER_DOMAIN: z.string().min(1).default("cluster.local"),
    /** What user pods run beside the user's container. */
    QUEUE_PROXY_IMAGE: z.string().min(1).default("fairway.dev/fairway:0.1.0"),
    LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
    WEBHOOK_PORT: port(8443),
    METRICS_PORT: port(9090),
    STATS_PORT: port(8086),
    /** The Service that the webhook configurations name; its DNS names are in the certificate. */
    WEBHOOK_SERVICE: z.string().min(1).default("fairway-operator"),
    /** More names or addresses for the certificate: for an operator that runs outside the cluster. */
    WEBHOOK_EXTRA_HOSTS: z
      .string()
      .default("")
      .transform(text => text.split(",").filter(host => host !== "")),
    LEASE_DURATION_MS: durationMs(15_000, 1_000),
    LEASE_RENEW_DEADLINE_MS: durationMs(10_000, 500),
    LEASE_RETRY_PERIOD_MS: durationMs(2_000, 100),
    /** How long a stopping replica goes on answering admission requests while its endpoint is withdrawn. */
    SHUTDOWN_DELAY_MS: durationMs(3_000, 0),
    /** How long running reconciliations may take to end at shutdown. */
    DRAIN_TIMEOUT_MS: durationMs(10_000, 0),
  })
  .refine(env => env.LEASE_RENEW_DEADLINE_MS < env.LEASE_DURATION_MS, {
    path: ["LEASE_RENEW_DEADLINE_MS"],
    error: "must be below LEASE_DURATION_MS",
  })
  .refine(env => env.LEASE_RETRY_PERIOD_MS < env.LEASE_RENEW_DEADLINE_MS, {
    path: ["LEASE_RETRY_PERIOD_MS"],
    error: "must be below LEASE_RENEW_DEADLINE_MS",
  })
  .refine(env => env.DRAIN_TIMEOUT_MS + env.LEASE_RETRY_PERIOD_MS < env.LEASE_DURATION_MS, {
    path: ["DRAIN_TIMEOUT_MS"],
    error: "must end before the lease does: below LEASE_DURATION_MS - LEASE_RETRY_PERIOD_MS",
  });

export interface OperatorConfig {
  readonly systemNamespace: string;
  readonly identity: string;
  readonly podIp: string | undefined;
  readonly clusterDomain: string;
  readonly queueProxyImage: string;
  readonly logLevel: string;
  readonly webhookPort: number;
  readonly metricsPort: number;
  readonly statsPort: number;
  readonly webhookService: string;
  readonly webhookExtraHosts: readonly string[];
  readonly leaseDurationMs: number;
  readonly leaseRenewDeadlineMs: number;
  readonly leaseRetryPeriodMs: number;
  readonly shutdownDelayMs: number;
  readonly drainTimeoutMs: number;
}

/** A variable of the environment has a value that is not allowed; the message names each variable, rule and value. */
export class ConfigError extends Error {
  readonly code = "CONFIG_INVALID";
}

/** Reads the configuration; throws `ConfigError`. */
export function parseConfig(env: Readonly<Record<string, string | undefined>>): OperatorConfig {
  const parsed = schema.safeParse(env);
  if (!parsed.success) {
    const problems = parsed.error.issues.map(issue => {
      const name = issue.path.join(".");
      return `${name}: ${issue.message} (got ${JSON.stringify(env[name])})`;
    });
    throw new ConfigError(`invalid configuration: ${problems.join("; ")}`);
  }
  const values = parsed.data;
  return {
    systemNamespace: values.SYSTEM_NAMESPACE,
    identity: values.POD_NAME ?? `${hostname()}-${process.pid}`,
    podIp: values.POD_IP,
    clusterDomain: values.CLUSTER_DOMAIN,
    queueProxyImage: values.QUEUE_PROXY_IMAGE,
    logLevel: values.LOG_LEVEL,
    webhookPort: values.WEBHOOK_PORT,
    metricsPort: values.METRICS_PORT,
    statsPort: values.STATS_PORT,
    webhookService: values.WEBHOOK_SERVICE,
    webhookExtraHosts: values.WEBHOOK_EXTRA_HOSTS,
    leaseDurationMs: values.LEASE_DURATION_MS,
    leaseRenewDeadlineMs: values.LEASE_RENEW_DEADLINE_MS,
    leaseRetryPeriodMs: values.LEASE_RETRY_PERIOD_MS,
    shutdownDelayMs: values.SHUTDOWN_DELAY_MS,
    drainTimeoutMs: values.DRAIN_TIMEOUT_MS,
  };
}
