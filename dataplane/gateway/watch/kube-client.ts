import type { RequestOptions } from "node:https";
import type { KubeConfig } from "@kubernetes/client-node";
import { Agent, request, type Dispatcher } from "undici";

/** The API server refused, failed or could not be reached. `status` is 0 when there was no answer. */
export class KubeError extends Error {
  readonly code = "KUBE_FAILED";
  readonly status: number;
  constructor(message: string, status: number, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.name = "KubeError";
    this.status = status;
  }
}

export type Query = Readonly<Record<string, string>>;

/** Asks the API server; nothing in this process changes anything there. */
export interface KubeClient {
  /** One page of a collection as parsed JSON. Throws KubeError. */
  list(path: string, query: Query, signal: AbortSignal): Promise<unknown>;
  /** The events of a watch as parsed JSON, until the server ends it. Throws KubeError. */
  watch(path: string, query: Query, signal: AbortSignal): AsyncIterable<unknown>;
  /** What comes of posting an object; for reviews, which are asked by creating one. Throws KubeError. */
  create(path: string, object: object, signal: AbortSignal): Promise<unknown>;
  close(): Promise<void>;
}

const ANSWER_TIMEOUT_MS = 30_000;
/** With bookmarks a healthy watch says something every minute or so. */
const SILENCE_MS = 180_000;
/** Tokens of pods rotate. */
const CREDENTIALS_AGE_MS = 30_000;

/** A client for the current cluster of a kubeconfig; keeps its connections, one for each open watch. */
export function createKubeClient(kubeConfig: KubeConfig): KubeClient {
  const server = kubeConfig.getCurrentCluster()?.server.replace(/\/$/, "");
  if (server === undefined) throw new KubeError("no current cluster in the kubeconfig", 0);
  let access: Promise<Access> | undefined;
  let accessAtMs = -Infinity;

  const current = (): Promise<Access> => {
    if (access === undefined || performance.now() - accessAtMs > CREDENTIALS_AGE_MS) {
      accessAtMs = performance.now();
      access = readAccess(kubeConfig, access);
      access.catch(() => (accessAtMs = -Infinity));
    }
    return access;
  };

  const call = async (
    method: Method,
    path: string,
    signal: AbortSignal,
    { query = {}, object, silenceMs = ANSWER_TIMEOUT_MS }: { query?: Query; object?: object; silenceMs?: number },
  ): Promise<Body> => {
    const url = `${server}${path}?${new URLSearchParams(query).toString()}`;
    try {
      const { headers, agent } = await current();
      const response = await request(url, {
        method,
        dispatcher: agent,
        headers: object === undefined ? headers : { ...headers, "content-type": "application/json" },
        body: object === undefined ? null : JSON.stringify(object),
        signal,
        headersTimeout: ANSWER_TIMEOUT_MS,
        bodyTimeout: silenceMs,
      });
      if (response.statusCode === 200 || response.statusCode === 201) return response.body;
      const text = (await response.body.text()).slice(0, 500);
      if (response.statusCode === 401) accessAtMs = -Infinity;
      throw new KubeError(`${method} ${path}: ${response.statusCode}: ${text}`, response.statusCode);
    } catch (error) {
      throw asKubeError(error, method, path);
    }
  };
  const json = async (method: Method, path: string, body: Body): Promise<unknown> => {
    try {
      return await body.json();
    } catch (error) {
      throw asKubeError(error, method, path);
    }
  };

  return {
    async list(path, query, signal) {
      return json("GET", path, await call("GET", path, signal, { query }));
    },
    async create(path, object, signal) {
      return json("POST", path, await call("POST", path, signal, { object }));
    },
    async *watch(path, query, signal) {
      const watching = { ...query, watch: "true", allowWatchBookmarks: "true" };
      const body = await call("GET", path, signal, { query: watching, silenceMs: SILENCE_MS });
      const decoder = new TextDecoder();
      let rest = "";
      try {
        for await (const chunk of body as AsyncIterable<Uint8Array>) {
          const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
          rest = lines.pop() ?? "";
          for (const line of lines) if (line !== "") yield JSON.parse(line) as unknown;
        }
      } catch (error) {
        throw asKubeError(error, "GET", path);
      }
    },
    async close() {
      const last = await access?.catch(() => undefined);
      await last?.agent.destroy();
    },
  };
}

type Method = "GET" | "POST";
type Body = Dispatcher.ResponseData["body"];

interface Access {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: string;
  readonly agent: Agent;
}

/** Credentials as they are now, with the connections of before where their TLS side has not changed. */
async function readAccess(kubeConfig: KubeConfig, before: Promise<Access> | undefined): Promise<Access> {
  const options: RequestOptions = {};
  await kubeConfig.applyToHTTPSOptions(options);
  const { ca, cert, key, servername, rejectUnauthorized } = options;
  const connect = Object.fromEntries(
    Object.entries({ ca, cert, key, servername, rejectUnauthorized }).filter(([, value]) => value !== undefined),
  );
  const tls = JSON.stringify(connect);
  const headers: Record<string, string> = { accept: "application/json", "user-agent": "fairway-gateway" };
  for (const [name, value] of Object.entries(options.headers ?? {}))
    if (typeof value === "string") headers[name.toLowerCase()] = value;
  const previous = await before?.catch(() => undefined);
  if (previous?.tls === tls) return { headers, tls, agent: previous.agent };
  // Watches that still run over it end by themselves.
  if (previous !== undefined) void previous.agent.close();
  return {
    headers,
    tls,
    agent: new Agent({ connect: { ...connect, timeout: 10_000, keepAlive: true }, pipelining: 1 }),
  };
}

function asKubeError(error: unknown, method: Method, path: string): KubeError {
  if (error instanceof KubeError) return error;
  return new KubeError(`${method} ${path}: ${error instanceof Error ? error.message : String(error)}`, 0, error);
}
