import type { RequestOptions } from "node:https";
import { KubeConfig } from "@kubernetes/client-node";
import { Agent, request, type Dispatcher } from "undici";
import { z } from "zod";
import { ApiError } from "./api-error.ts";
import { defineResource, type ResourceKind } from "./resource.ts";

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface CallOptions {
  readonly query?: Query | undefined;
  readonly body?: unknown;
  /** `application/json` when absent. */
  readonly contentType?: string | undefined;
  readonly signal: AbortSignal;
  /** Bounds the whole call; 15 s when absent. */
  readonly timeoutMs?: number | undefined;
}

/** The API server's REST interface. Every call is bounded in time and throws `ApiError`. */
export interface KubeApi {
  /** Sends one request and returns the parsed JSON answer. */
  call(method: Dispatcher.HttpMethod, path: string, options: CallOptions): Promise<unknown>;
  /** Opens a watch and yields its events until the server ends it; throws `ApiError` when it breaks or the signal aborts. */
  watch(path: string, query: Query, signal: AbortSignal): AsyncGenerator<WatchEvent, void, void>;
  /** Where a kind is served, by the server's own discovery; remembered. */
  discover(apiVersion: string, kind: string, signal: AbortSignal): Promise<ResourceKind>;
  close(): Promise<void>;
}

export interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: Record<string, unknown>;
}

const DEFAULT_TIMEOUT_MS = 15_000;
/** Credentials and certificates are read again this often: tokens of pods rotate. */
const CREDENTIALS_MAX_AGE_MS = 30_000;
/** With bookmarks a healthy watch says something every minute or so. */
const WATCH_SILENCE_MS = 180_000;

const statusSchema = z.object({
  message: z.string().optional(),
  reason: z.string().optional(),
  code: z.number().optional(),
});
const discoverySchema = z.object({
  resources: z.array(z.object({ name: z.string(), kind: z.string(), namespaced: z.boolean() })),
});

/**
 * Talks to the cluster of `kubeConfig` by default: KUBECONFIG, or the pod's ServiceAccount. It keeps its connections, which
 * the generated clients of @kubernetes/client-node do not (they make a TLS agent for each request).
 */
export function createKubeApi(kubeConfig: KubeConfig = defaultKubeConfig()): KubeApi {
  const cluster = kubeConfig.getCurrentCluster();
  if (cluster === null) throw new ApiError("no current cluster in the kubeconfig", 0, "Unreachable");
  const server = cluster.server.replace(/\/$/, "");
  const kinds = new Map<string, ResourceKind>();
  let credentials: Credentials | undefined;

  const connect = async (): Promise<Credentials> => {
    const nowMs = performance.now();
    if (credentials !== undefined && nowMs - credentials.readAtMs < CREDENTIALS_MAX_AGE_MS) return credentials;
    const options: RequestOptions = {};
    await kubeConfig.applyToHTTPSOptions(options);
    const tls = {
      ca: options.ca,
      cert: options.cert,
      key: options.key,
      ...(options.servername === undefined ? {} : { servername: options.servername }),
      ...(options.rejectUnauthorized === undefined ? {} : { rejectUnauthorized: options.rejectUnauthorized }),
    };
    const tlsText = JSON.stringify(tls);
    const headers: Record<string, string> = { accept: "application/json", "user-agent": "fairway-operator" };
    for (const [name, value] of Object.entries(options.headers ?? {})) {
      if (typeof value === "string") headers[name.toLowerCase()] = value;
    }
    const previous = credentials;
    const agent =
      previous?.tlsText === tlsText
        ? previous.agent
        : new Agent({ connect: { ...tls, timeout: 5_000, keepAlive: true }, connections: 128, pipelining: 1 });
    // Ends when the calls that still use it have ended.
    if (previous !== undefined && previous.agent !== agent) void previous.agent.close();
    credentials = { readAtMs: nowMs, headers, tlsText, agent };
    return credentials;
  };

  const send = async (method: Dispatcher.HttpMethod, path: string, options: SendOptions) => {
    const { agent, headers } = await connect();
    const url = new URL(server + path);
    for (const [name, value] of Object.entries(options.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const response = await abortable(
      request(url, {
        method,
        dispatcher: agent,
        headers: {
          ...headers,
          ...(options.body === undefined ? {} : { "content-type": options.contentType ?? "application/json" }),
        },
        body: options.body === undefined ? null : JSON.stringify(options.body),
        signal: options.signal,
        headersTimeout: DEFAULT_TIMEOUT_MS,
        bodyTimeout: options.silenceMs,
      }),
      options.signal,
    );
    if (response.statusCode === 401) credentials = credentials && { ...credentials, readAtMs: -Infinity };
    if (response.statusCode >= 300) throw await refusal(method, path, response);
    return response;
  };

  const call: KubeApi["call"] = async (method, path, options) => {
    // Timers take whole milliseconds only.
    const timeoutMs = Math.max(1, Math.ceil(options.timeoutMs ?? DEFAULT_TIMEOUT_MS));
    const signal = AbortSignal.any([options.signal, AbortSignal.timeout(timeoutMs)]);
    try {
      const response = await send(method, path, { ...options, signal, silenceMs: timeoutMs });
      return await response.body.json();
    } catch (error) {
      throw asApiError(error, method, path, options.signal);
    }
  };

  return {
    call,
    async *watch(path, query, signal) {
      try {
        const response = await send("GET", path, {
          query: { ...query, watch: true, allowWatchBookmarks: true },
          signal,
          silenceMs: WATCH_SILENCE_MS,
        });
        for await (const line of linesOf(response.body)) yield JSON.parse(line) as WatchEvent;
      } catch (error) {
        throw asApiError(error, "WATCH", path, signal);
      }
    },
    async discover(apiVersion, kind, signal) {
      const name = `${apiVersion}/${kind}`;
      const known = kinds.get(name);
      if (known !== undefined) return known;
      const path = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
      const { resources } = discoverySchema.parse(await call("GET", path, { signal }));
      for (const resource of resources) {
        if (resource.name.includes("/")) continue;
        kinds.set(
          `${apiVersion}/${resource.kind}`,
          defineResource(apiVersion, resource.kind, resource.name, { namespaced: resource.namespaced }),
        );
      }
      const found = kinds.get(name);
      if (found === undefined) throw new ApiError(`the server has no kind ${kind} in ${apiVersion}`, 404, "NotFound");
      return found;
    },
    async close() {
      await credentials?.agent.destroy();
    },
  };
}

interface Credentials {
  readonly readAtMs: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly tlsText: string;
  readonly agent: Agent;
}

interface SendOptions {
  readonly query?: Query | undefined;
  readonly body?: unknown;
  readonly contentType?: string | undefined;
  readonly signal: AbortSignal;
  readonly silenceMs: number;
}

function defaultKubeConfig(): KubeConfig {
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromDefault();
  return kubeConfig;
}

/** Rejects as soon as the signal aborts: undici looks at it only once it has a connection, which may take long to fail. */
function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** The lines of a stream of UTF-8, without their ends. */
async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "") yield line;
  }
  if (rest !== "") yield rest;
}

async function refusal(method: string, path: string, response: Dispatcher.ResponseData): Promise<ApiError> {
  const text = await response.body.text();
  const status = statusSchema.safeParse(parseJson(text));
  const message = status.success && status.data.message !== undefined ? status.data.message : text.slice(0, 500);
  const reason = (status.success ? status.data.reason : undefined) ?? reasonOf(response.statusCode);
  const retryAfter = Number(response.headers["retry-after"]);
  return new ApiError(`${method} ${path}: ${response.statusCode} ${reason}: ${message}`, response.statusCode, reason, {
    detail: message,
    ...(Number.isFinite(retryAfter) ? { retryAfterMs: retryAfter * 1000 } : {}),
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function reasonOf(code: number): string {
  const reasons: Readonly<Record<number, string>> = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
  };
  return reasons[code] ?? "Unknown";
}

function asApiError(error: unknown, method: string, path: string, signal: AbortSignal): ApiError {
  if (error instanceof ApiError) return error;
  const cause = error instanceof Error ? error : new Error(String(error));
  if (signal.aborted) return new ApiError(`${method} ${path}: aborted`, 0, "Aborted", { cause });
  if (cause.name === "TimeoutError" || cause.name.endsWith("TimeoutError")) {
    return new ApiError(`${method} ${path}: no answer in time: ${cause.message}`, 0, "Timeout", { cause });
  }
  return new ApiError(`${method} ${path}: ${cause.message}`, 0, "Unreachable", { cause });
}
