import type { RequestOptions } from "node:https";
import { Agent, request } from "undici";
import { CliError, reasonOf } from "../cli-error.ts";

/** What was answered: JSON parsed, anything else as text. */
export interface ApiAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** The API server as the user sees it, read only. Every call is bounded in time. */
export interface ClusterApi {
  /** Namespace to use when none is named: of the command line, else of the context. */
  readonly namespace: string;
  /** @throws CliError when there is no answer; a refusal is an answer. */
  get(path: string, query?: Readonly<Record<string, string>>): Promise<ApiAnswer>;
  close(): Promise<void>;
}

export interface ConnectionOptions {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  readonly namespace?: string | undefined;
}

export type Connect = (options: ConnectionOptions, signal: AbortSignal) => Promise<ClusterApi>;

const TIMEOUT_MS = 15_000;

/** Connects with the user's kubeconfig: the file named, else $KUBECONFIG, ~/.kube/config, or a pod's ServiceAccount. */
export const connectCluster: Connect = async (options, signal) => {
  // Large, and not needed by commands without a cluster.
  const { loadKubeConfig } = await import("./kube-config.ts");
  const kubeConfig = loadKubeConfig(options);
  const cluster = kubeConfig.getCurrentCluster();
  if (cluster === null)
    throw new CliError("notFound", "the kubeconfig has no current cluster; choose one with --context");
  const server = cluster.server.replace(/\/$/, "");
  const tls: RequestOptions = {};
  try {
    await kubeConfig.applyToHTTPSOptions(tls);
  } catch (error) {
    throw new CliError("forbidden", `no credentials for ${server}: ${reasonOf(error)}`, { cause: error });
  }
  const agent = new Agent({
    connect: {
      ca: tls.ca,
      cert: tls.cert,
      key: tls.key,
      timeout: TIMEOUT_MS,
      ...(tls.servername === undefined ? {} : { servername: tls.servername }),
      ...(tls.rejectUnauthorized === undefined ? {} : { rejectUnauthorized: tls.rejectUnauthorized }),
    },
  });
  const headers: Record<string, string> = { accept: "application/json, */*", "user-agent": "fairway-cli" };
  for (const [name, value] of Object.entries(tls.headers ?? {})) if (typeof value === "string") headers[name] = value;

  return {
    namespace: options.namespace ?? kubeConfig.getContextObject(kubeConfig.currentContext)?.namespace ?? "default",
    async get(path, query = {}) {
      const url = new URL(server + path);
      for (const [name, value] of Object.entries(query)) url.searchParams.append(name, value);
      try {
        const response = await request(url, {
          dispatcher: agent,
          headers,
          signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
        });
        return { status: response.statusCode, body: parseBody(await response.body.text()) };
      } catch (error) {
        throw new CliError("unavailable", `cannot reach ${server}: ${reasonOf(error)}`, { cause: error });
      }
    },
    close: () => agent.destroy(),
  };
};

function parseBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
