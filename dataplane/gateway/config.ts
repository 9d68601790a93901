import { BlockList, isIP } from "node:net";
import { hostname } from "node:os";
import { z } from "zod";
import { OidcIssuerSchema, type OidcIssuer } from "./identity/oidc.ts";
import { TOKEN_REVIEW_MODES, type TokenReviewMode } from "./identity/token-review.ts";
import type { TlsFiles } from "./tls/tls-files.ts";
import { LOG_LEVELS, type LogLevel } from "../shared/logger.ts";

const port = (fallback: number) => z.coerce.number().int().min(0).max(65_535).default(fallback);
const milliseconds = (fallback: number) => z.coerce.number().int().min(0).default(fallback);
const flag = (fallback: "true" | "false") =>
  z
    .enum(["true", "false"])
    .default(fallback)
    .transform(text => text === "true");

const json = <S extends z.ZodType>(content: S) =>
  z
    .string()
    .transform((text, context): unknown => {
      try {
        return JSON.parse(text);
      } catch {
        context.addIssue({ code: "custom", message: "not JSON" });
        return z.NEVER;
      }
    })
    .pipe(content);

/** The gateway's whole configuration: environment variables, parsed once at start. `npm run generate` makes a table of it. */
export const VARIABLES = z.object({
  SYSTEM_NAMESPACE: z.string().min(1).default("fairway-system").describe("Namespace of Fairway itself."),
  POD_NAME: z.string().min(1).optional().describe("This replica's name in its reports; the pod's name in a cluster."),
  CLUSTER_DOMAIN: z.string().min(1).default("cluster.local").describe("DNS domain of the cluster."),
  LISTEN_HOST: z.string().min(1).optional().describe("Address to listen on; without it: all."),
  EXTERNAL_PORT: port(8080).describe("Port for requests from outside the cluster, in the clear."),
  INTERNAL_PORT: port(8081).describe("Port for requests from inside the cluster, and from other gateways."),
  ADMIN_PORT: port(9090).describe("Port of `/metrics`, `/healthz`, `/readyz` and `/debug/`."),
  LOG_LEVEL: z.enum(LOG_LEVELS).default("info").describe("Least important lines that are logged."),
  ACCESS_LOG: flag("false").describe("One line for each request."),
  TRUSTED_PROXIES: z
    .string()
    .default("")
    .describe(
      "Addresses and CIDR ranges, comma-separated, whose X-Forwarded-* and Forwarded fields are believed and extended.",
    ),
  IDENTITY_PROXIES: z
    .string()
    .default("")
    .describe(
      "The same for proxies that authenticate their clients and say who they are in X-Remote-User, X-Remote-Group.",
    ),
  OIDC_ISSUERS: json(z.array(OidcIssuerSchema))
    .prefault("[]")
    .describe(
      "JSON list of issuers whose tokens are believed: issuer, audience, jwksUrl?, usernameClaim?, usernamePrefix?, ...",
    ),
  TOKEN_REVIEW: z
    .enum(TOKEN_REVIEW_MODES)
    .default("cluster")
    .describe("Which bearer tokens the API server is asked about: those that say the cluster made them, all, none."),
  TLS_PORT: port(8443).describe(
    "Port for requests from outside the cluster, with TLS: open as soon as `TLS_CERT_FILE` and `TLS_KEY_FILE` are there.",
  ),
  TLS_CERT_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      "PEM file of the certificate and its issuers; with `TLS_KEY_FILE` or not at all. It may come and change while the gateway runs.",
    ),
  TLS_KEY_FILE: z
    .string()
    .min(1)
    .optional()
    .describe("PEM file of the certificate's key; with `TLS_CERT_FILE` or not at all."),
  TLS_CLIENT_CA_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      "PEM file of the roots whose client certificates say who sends a request; while it is not there clients are not asked.",
    ),
  TLS_CLIENT_SYSTEM_NAMES: flag("false").describe(
    "Whether client certificates may give names that begin with `system:`; for a cluster's own CA.",
  ),
  TLS_HANDSHAKE_TIMEOUT_MS: z.coerce
    .number()
    .int()
    .min(100)
    .default(10_000)
    .describe("From a connection to the end of its TLS handshake."),
  TLS_RELOAD_PERIOD_MS: z.coerce
    .number()
    .int()
    .min(100)
    .default(10_000)
    .describe("How often the three files are looked at."),
  FAIRWAY_AUTOSCALER_URL: z
    .url()
    .optional()
    .describe("Where reports go instead of the leader's published endpoint: for a gateway outside the cluster."),
  REPORT_TOKEN_FILE: z
    .string()
    .default("/var/run/secrets/fairway-autoscaler/token")
    .describe(
      "File with the token that reports carry, for the audience `fairway-autoscaler`; read again when it changes.",
    ),
  FLOW_CONTROL: flag("true").describe(
    "Whether requests take a seat at their priority level, and places go by level and flow.",
  ),
  MAX_REQUESTS_INFLIGHT: z.coerce
    .number()
    .int()
    .min(0)
    .default(400)
    .describe("Seats of this gateway, for all requests together: the sum of the two, as of an API server."),
  MAX_MUTATING_REQUESTS_INFLIGHT: z.coerce.number().int().min(0).default(200).describe("See `MAX_REQUESTS_INFLIGHT`."),
  FLOW_CONTROL_DEBUG: flag("false").describe("Answers name their flow schema and priority level, beside the UIDs."),
  QUEUE_LENGTH: z.coerce
    .number()
    .int()
    .min(0)
    .max(100_000)
    .default(1_000)
    .describe("Requests that may wait for a place at one revision, unless its annotation says otherwise."),
  FAILED_REVISION_WAIT_MS: milliseconds(5_000).describe(
    "Longest wait for a place at a revision that is known to have failed: it may recover.",
  ),
  MAX_HEADER_BYTES: z.coerce
    .number()
    .int()
    .min(8_192)
    .max(1_048_576)
    .default(65_536)
    .describe("Bytes of all header fields of a request or an answer."),
  HEADERS_TIMEOUT_MS: z.coerce
    .number()
    .int()
    .min(100)
    .default(15_000)
    .describe("From the first byte of a request to the end of its header fields."),
  CLIENT_KEEP_ALIVE_MS: z.coerce
    .number()
    .int()
    .min(0)
    .default(75_000)
    .describe("How long a connection without a request stays open."),
  CONNECT_TIMEOUT_MS: z.coerce
    .number()
    .int()
    .min(50)
    .default(1_500)
    .describe("Longest that a connection to a pod may take."),
  SHUTDOWN_DELAY_MS: milliseconds(5_000).describe(
    "At shutdown: how long new connections are still accepted while the endpoint is withdrawn.",
  ),
  DRAIN_TIMEOUT_MS: milliseconds(300_000).describe("At shutdown: how long running requests may take to end."),
});

const schema = VARIABLES.superRefine(({ TLS_CERT_FILE, TLS_KEY_FILE, TLS_CLIENT_CA_FILE }, context) => {
  const needs = (name: string, other: string): void =>
    context.addIssue({ code: "custom", path: [name], message: `needed with ${other}` });
  if (TLS_CERT_FILE !== undefined && TLS_KEY_FILE === undefined) needs("TLS_KEY_FILE", "TLS_CERT_FILE");
  if (TLS_CERT_FILE === undefined && TLS_KEY_FILE !== undefined) needs("TLS_CERT_FILE", "TLS_KEY_FILE");
  if (TLS_CERT_FILE === undefined && TLS_KEY_FILE === undefined && TLS_CLIENT_CA_FILE !== undefined)
    needs("TLS_CERT_FILE", "TLS_CLIENT_CA_FILE");
});

/** The entrance with TLS. */
export interface TlsConfig {
  readonly port: number;
  readonly files: TlsFiles;
  readonly handshakeTimeoutMs: number;
  readonly reloadPeriodMs: number;
}

export interface GatewayConfig {
  readonly systemNamespace: string;
  readonly podName: string;
  readonly clusterDomain: string;
  readonly listenHost: string | undefined;
  readonly externalPort: number;
  readonly internalPort: number;
  readonly adminPort: number;
  readonly logLevel: LogLevel;
  readonly accessLog: boolean;
  /** Absent when there are none. */
  readonly trustedProxies: BlockList | undefined;
  readonly identityProxies: BlockList | undefined;
  readonly oidcIssuers: readonly OidcIssuer[];
  readonly tokenReview: TokenReviewMode;
  /** Absent: in the clear only. */
  readonly tls: TlsConfig | undefined;
  readonly clientSystemNames: boolean;
  readonly autoscalerUrl: string | undefined;
  readonly reportTokenFile: string;
  readonly flowControl: boolean;
  readonly totalSeats: number;
  readonly flowControlDebug: boolean;
  readonly queueLength: number;
  readonly failedRevisionWaitMs: number;
  readonly maxHeaderBytes: number;
  readonly headersTimeoutMs: number;
  readonly clientKeepAliveMs: number;
  readonly connectTimeoutMs: number;
  readonly shutdownDelayMs: number;
  readonly drainTimeoutMs: number;
}

/** A variable of the environment has a value that is not allowed; the message names each variable, rule and value. */
export class ConfigError extends Error {
  readonly code = "CONFIG_INVALID";
}

/** Reads the configuration; throws `ConfigError`. */
export function parseConfig(env: Readonly<Record<string, string | undefined>>): GatewayConfig {
  const parsed = schema.safeParse(env);
  if (!parsed.success) {
    const problems = parsed.error.issues.map(issue => {
      const [name = "", ...within] = issue.path.map(String);
      const where = within.length === 0 ? name : `${name} at ${within.join(".")}`;
      return `${where}: ${issue.message} (got ${JSON.stringify(env[name])})`;
    });
    throw new ConfigError(`invalid configuration: ${problems.join("; ")}`);
  }
  const values = parsed.data;
  return {
    systemNamespace: values.SYSTEM_NAMESPACE,
    podName: values.POD_NAME ?? hostname(),
    clusterDomain: values.CLUSTER_DOMAIN,
    listenHost: values.LISTEN_HOST,
    externalPort: values.EXTERNAL_PORT,
    internalPort: values.INTERNAL_PORT,
    adminPort: values.ADMIN_PORT,
    logLevel: values.LOG_LEVEL,
    accessLog: values.ACCESS_LOG,
    trustedProxies: parseAddresses("TRUSTED_PROXIES", values.TRUSTED_PROXIES),
    identityProxies: parseAddresses("IDENTITY_PROXIES", values.IDENTITY_PROXIES),
    oidcIssuers: values.OIDC_ISSUERS,
    tokenReview: values.TOKEN_REVIEW,
    tls: tlsConfig(values),
    clientSystemNames: values.TLS_CLIENT_SYSTEM_NAMES,
    autoscalerUrl: values.FAIRWAY_AUTOSCALER_URL,
    reportTokenFile: values.REPORT_TOKEN_FILE,
    flowControl: values.FLOW_CONTROL,
    totalSeats: values.MAX_REQUESTS_INFLIGHT + values.MAX_MUTATING_REQUESTS_INFLIGHT,
    flowControlDebug: values.FLOW_CONTROL_DEBUG,
    queueLength: values.QUEUE_LENGTH,
    failedRevisionWaitMs: values.FAILED_REVISION_WAIT_MS,
    maxHeaderBytes: values.MAX_HEADER_BYTES,
    headersTimeoutMs: values.HEADERS_TIMEOUT_MS,
    clientKeepAliveMs: values.CLIENT_KEEP_ALIVE_MS,
    connectTimeoutMs: values.CONNECT_TIMEOUT_MS,
    shutdownDelayMs: values.SHUTDOWN_DELAY_MS,
    drainTimeoutMs: values.DRAIN_TIMEOUT_MS,
  };
}

function tlsConfig(values: z.infer<typeof schema>): TlsConfig | undefined {
  const { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile } = values;
  if (certFile === undefined || keyFile === undefined) return undefined;
  return {
    port: values.TLS_PORT,
    files: { certFile, keyFile, clientCaFile: values.TLS_CLIENT_CA_FILE },
    handshakeTimeoutMs: values.TLS_HANDSHAKE_TIMEOUT_MS,
    reloadPeriodMs: values.TLS_RELOAD_PERIOD_MS,
  };
}

function parseAddresses(name: string, text: string): BlockList | undefined {
  if (text.trim() === "") return undefined;
  const list = new BlockList();
  for (const entry of text.split(",").map(part => part.trim())) {
    if (entry === "") continue;
    const [address = "", bits, ...rest] = entry.split("/");
    const family = isIP(address);
    const prefix = bits === undefined ? (family === 6 ? 128 : 32) : Number(bits);
    const widest = family === 6 ? 128 : 32;
    if (family === 0 || rest.length > 0 || !Number.isInteger(prefix) || prefix < 0 || prefix > widest)
      throw new ConfigError(`invalid configuration: ${name}: not an address or range (got ${JSON.stringify(entry)})`);
    list.addSubnet(address, prefix, family === 6 ? "ipv6" : "ipv4");
  }
  return list;
}
