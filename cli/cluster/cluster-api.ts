import type { RequestOptions } from "node:https";
import type { KubeConfig } from "@kubernetes/client-node";
import { Agent, request } from "undici";
import { CliError } from "../cli-error.ts";

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
  const kubeConfig = await loadKubeConfig(options);
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

/** The context that the client makes up when it finds no configuration at all. */
const MADE_UP_CONTEXT = "loaded-context";

async function loadKubeConfig({ kubeconfig, context }: ConnectionOptions): Promise<KubeConfig> {
  // Large, and not needed by commands without a cluster.
  const { KubeConfig } = await import("@kubernetes/client-node");
  const loaded = new KubeConfig();
  try {
    if (kubeconfig === undefined) loaded.loadFromDefault();
    else loaded.loadFromFile(kubeconfig);
  } catch (error) {
    throw new CliError("usage", `kubeconfig${kubeconfig === undefined ? "" : ` ${kubeconfig}`}: ${reasonOf(error)}`, {
      cause: error,
    });
  }
  if (loaded.currentContext === MADE_UP_CONTEXT && kubeconfig === undefined) {
    throw new CliError("usage", "no kubeconfig: name one with --kubeconfig or $KUBECONFIG");
  }
  if (context === undefined) return loaded;
  if (loaded.getContextObject(context) === null) {
    const names = loaded.getContexts().map(({ name }) => name);
    throw new CliError(
      "notFound",
      `no context "${context}" in the kubeconfig; there are: ${names.join(", ") || "none"}`,
    );
  }
  loaded.setCurrentContext(context);
  return loaded;
}

/** Connection errors of Node carry several; the first is enough. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  return error instanceof Error ? error.message || error.name : String(error);
}

function parseBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
