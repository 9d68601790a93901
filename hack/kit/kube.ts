import { get as httpsGet, type RequestOptions } from "node:https";
import { readFile } from "node:fs/promises";
import { KubeConfig } from "@kubernetes/client-node";
import { parseAllDocuments } from "yaml";
import { ApiError } from "../../capabilities/runtime/api-error.ts";
import { createKubeApi, type CallOptions, type KubeApi } from "../../capabilities/runtime/kube-api.ts";
import { resourcePath } from "../../capabilities/runtime/resource.ts";
import { waitFor } from "./wait.ts";

/** An object as the API server returns it; fields beyond metadata are read by path in tests. */
export interface AnyObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: {
    readonly name?: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly generation?: number;
    readonly resourceVersion?: string;
    readonly deletionTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
  readonly data?: Readonly<Record<string, string>>;
}

export interface Ref {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
}

export interface Condition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason?: string;
  readonly message?: string;
}

/** A refusal by the API server, with the text a `kubectl` user reads. */
export class KubeError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.name = "KubeError";
    this.code = code;
  }
}

type Method = Parameters<KubeApi["call"]>[0];

/** A cluster as its user sees it: apply, get, list, delete. Writes with field manager `kubectl`. */
export class Kube {
  readonly config: KubeConfig;
  readonly #api: KubeApi;

  constructor(kubeconfigPath: string) {
    this.config = new KubeConfig();
    this.config.loadFromFile(kubeconfigPath);
    this.#api = createKubeApi(this.config);
  }

  /** Server-side applies every document, in order. */
  async apply(yamlOrObjects: string | readonly object[], options: { dryRun?: boolean } = {}): Promise<AnyObject[]> {
    const objects = typeof yamlOrObjects === "string" ? parseDocuments(yamlOrObjects) : yamlOrObjects;
    const results: AnyObject[] = [];
    for (const object of objects) {
      const dryRun = options.dryRun === true ? { dryRun: "All" } : {};
      results.push(
        await this.#call("PATCH", await this.#path(refOf(object)), {
          query: { fieldManager: "kubectl", force: true, ...dryRun },
          body: object,
          contentType: "application/apply-patch+yaml",
        }),
      );
    }
    return results;
  }

  async applyFile(path: string): Promise<AnyObject[]> {
    return this.apply(await readFile(path, "utf8"));
  }

  async create(object: AnyObject): Promise<AnyObject> {
    const { apiVersion = "", kind = "", metadata } = object;
    const type = await this.#api.discover(apiVersion, kind, NEVER);
    return this.#call("POST", resourcePath(type, metadata?.namespace), {
      query: { fieldManager: "kubectl", fieldValidation: "Strict" },
      body: object,
    });
  }

  async mergePatch(ref: Ref, patch: object): Promise<AnyObject> {
    return this.#call("PATCH", await this.#path(ref), { body: patch, contentType: "application/merge-patch+json" });
  }

  /** The object, or undefined when there is none. */
  async get(ref: Ref): Promise<AnyObject | undefined> {
    return this.#call("GET", await this.#path(ref), {}).catch(unlessNotFound);
  }

  async list(apiVersion: string, kind: string, namespace?: string, labelSelector?: string): Promise<AnyObject[]> {
    const type = await this.#api.discover(apiVersion, kind, NEVER);
    const list = await this.#call("GET", resourcePath(type, namespace), { query: { labelSelector } });
    return (list as { readonly items: AnyObject[] }).items;
  }

  /** The resource version that the list of a kind has now: where a `watch` may begin. */
  async version(apiVersion: string, kind: string, namespace: string): Promise<string> {
    const type = await this.#api.discover(apiVersion, kind, NEVER);
    const list = await this.#call("GET", resourcePath(type, namespace), { query: { limit: 1 } });
    return list.metadata?.resourceVersion ?? "";
  }

  /**
   * Events after the resource version `since`; without it from now on, after one ADDED for each object that is there. Ends when the
   * server ends it or `signal` aborts. Bookmarks are among the events.
   */
  async *watch(
    apiVersion: string,
    kind: string,
    namespace: string,
    signal: AbortSignal,
    since?: string,
  ): AsyncGenerator<{ readonly type: string; readonly object: AnyObject }, void, void> {
    const type = await this.#api.discover(apiVersion, kind, NEVER);
    try {
      yield* this.#api.watch(resourcePath(type, namespace), { resourceVersion: since }, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** The last lines that a container wrote. */
  async logs(namespace: string, pod: string, container: string): Promise<string> {
    const cluster = this.config.getCurrentCluster();
    return this.#text(
      `${cluster?.server}/api/v1/namespaces/${namespace}/pods/${pod}/log?container=${container}&tailLines=1000`,
    );
  }

  /** Deletes in the background; an object that is not there is fine. */
  async delete(ref: Ref, gracePeriodSeconds?: number): Promise<void> {
    const body = { propagationPolicy: "Background", gracePeriodSeconds };
    await this.#call("DELETE", await this.#path(ref), { body }).catch(unlessNotFound);
  }

  async #path(ref: Ref): Promise<string> {
    return resourcePath(await this.#api.discover(ref.apiVersion, ref.kind, NEVER), ref.namespace, ref.name);
  }

  async #call(method: Method, path: string, options: Omit<CallOptions, "signal">): Promise<AnyObject> {
    try {
      return (await this.#api.call(method, path, { ...options, signal: NEVER })) as AnyObject;
    } catch (error) {
      throw error instanceof ApiError ? new KubeError(error.code, error.detail) : error;
    }
  }

  /** A bearer token of a ServiceAccount, as its pods have one. */
  async createToken(namespace: string, serviceAccount: string, lifetimeS = 3_600): Promise<string> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${serviceAccount}/token`;
    const body = {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { expirationSeconds: lifetimeS },
    };
    const { status } = await this.#call("POST", path, { body });
    const token = status?.["token"];
    if (typeof token !== "string") throw new KubeError(0, `no token in the answer to POST ${path}`);
    return token;
  }

  /** GET of a port of a pod, through the API server's proxy. */
  async podGet(namespace: string, pod: string, port: number, path: string): Promise<string> {
    const cluster = this.config.getCurrentCluster();
    return this.#text(`${cluster?.server}/api/v1/namespaces/${namespace}/pods/${pod}:${port}/proxy${path}`);
  }

  async #text(url: string): Promise<string> {
    const options: RequestOptions = {};
    await this.config.applyToHTTPSOptions(options);
    return new Promise((resolve, reject) => {
      const request = httpsGet(url, { ...options, timeout: 10_000 }, response => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString("utf8");
          if (response.statusCode === 200) resolve(text);
          else reject(new KubeError(response.statusCode ?? 0, text));
        });
      });
      request.on("timeout", () => request.destroy(new Error(`GET ${url}: no answer in 10 s`)));
      request.on("error", reject);
    });
  }

  /** Waits until the condition is `status` for the object's present generation; the error shows all conditions. */
  async waitForCondition(ref: Ref, type: string, status: Condition["status"], timeoutMs = 60_000): Promise<AnyObject> {
    return waitFor(
      `${ref.kind} ${ref.name} ${type}=${status}`,
      async () => {
        const object = await this.get(ref);
        if (object === undefined) throw new Error("not found");
        const generation = object.status?.["observedGeneration"];
        const found = conditions(object).find(c => c.type === type);
        if (generation === object.metadata?.generation && found?.status === status) return object;
        throw new Error(JSON.stringify({ observedGeneration: generation, conditions: conditions(object) }));
      },
      { timeoutMs },
    );
  }
}

export function conditions(object: AnyObject | undefined): readonly Condition[] {
  return (object?.status?.["conditions"] ?? []) as readonly Condition[];
}

export function parseDocuments(yaml: string): AnyObject[] {
  return parseAllDocuments(yaml)
    .map(document => {
      if (document.errors[0] !== undefined) throw document.errors[0];
      return document.toJS() as AnyObject | null;
    })
    .filter(object => object !== null);
}

/** Calls are bounded in time by the client. */
const NEVER = new AbortController().signal;

function refOf({ apiVersion, kind, metadata }: AnyObject): Ref {
  if (apiVersion === undefined || kind === undefined || metadata?.name === undefined) {
    throw new TypeError(`apiVersion, kind and name are needed: ${JSON.stringify({ apiVersion, kind, metadata })}`);
  }
  return {
    apiVersion,
    kind,
    name: metadata.name,
    ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
  };
}

function unlessNotFound(error: unknown): undefined {
  if (error instanceof KubeError && error.code === 404) return undefined;
  throw error;
}
