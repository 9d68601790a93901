import { get as httpsGet, type RequestOptions } from "node:https";
import { readFile } from "node:fs/promises";
import {
  ApiException,
  KubeConfig,
  KubernetesObjectApi,
  PatchStrategy,
  type KubernetesObject,
} from "@kubernetes/client-node";
import { parseAllDocuments } from "yaml";
import { waitFor } from "./wait.ts";

/** An object as the API server returns it; fields beyond metadata are read by path in tests. */
export interface AnyObject extends KubernetesObject {
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

/** A cluster as its user sees it: apply, get, list, delete. Writes with field manager `kubectl`. */
export class Kube {
  readonly config: KubeConfig;
  readonly #objects: KubernetesObjectApi;

  constructor(kubeconfigPath: string) {
    this.config = new KubeConfig();
    this.config.loadFromFile(kubeconfigPath);
    this.#objects = KubernetesObjectApi.makeApiClient(this.config);
  }

  /** Server-side applies every document, in order. */
  async apply(
    yamlOrObjects: string | readonly KubernetesObject[],
    options: { dryRun?: boolean } = {},
  ): Promise<AnyObject[]> {
    const objects = typeof yamlOrObjects === "string" ? parseDocuments(yamlOrObjects) : yamlOrObjects;
    const results: AnyObject[] = [];
    for (const object of objects) {
      results.push(
        await explain(() =>
          this.#objects.patch<AnyObject>(
            object as AnyObject,
            undefined,
            options.dryRun === true ? "All" : undefined,
            "kubectl",
            true,
            PatchStrategy.ServerSideApply,
          ),
        ),
      );
    }
    return results;
  }

  async applyFile(path: string): Promise<AnyObject[]> {
    return this.apply(await readFile(path, "utf8"));
  }

  async create(object: KubernetesObject): Promise<AnyObject> {
    return explain(() => this.#objects.create<AnyObject>(object as AnyObject));
  }

  async mergePatch(ref: Ref, patch: object): Promise<AnyObject> {
    const body = { ...patch, ...header(ref), metadata: { ...(patch as AnyObject).metadata, ...header(ref).metadata } };
    return explain(() =>
      this.#objects.patch<AnyObject>(body, undefined, undefined, undefined, undefined, PatchStrategy.MergePatch),
    );
  }

  /** The object, or undefined when there is none. */
  async get(ref: Ref): Promise<AnyObject | undefined> {
    try {
      return await explain(() => this.#objects.read<AnyObject>(header(ref)));
    } catch (error) {
      if (error instanceof KubeError && error.code === 404) return undefined;
      throw error;
    }
  }

  async list(apiVersion: string, kind: string, namespace?: string, labelSelector?: string): Promise<AnyObject[]> {
    const list = await explain(() =>
      this.#objects.list<AnyObject>(
        apiVersion,
        kind,
        namespace,
        undefined,
        undefined,
        undefined,
        undefined,
        labelSelector,
      ),
    );
    return list.items;
  }

  /** Deletes in the background; an object that is not there is fine. */
  async delete(ref: Ref, gracePeriodSeconds?: number): Promise<void> {
    try {
      await explain(() =>
        this.#objects.delete(header(ref), undefined, undefined, gracePeriodSeconds, undefined, "Background"),
      );
    } catch (error) {
      if (!(error instanceof KubeError && error.code === 404)) throw error;
    }
  }

  /** GET of a port of a pod, through the API server's proxy. */
  async podGet(namespace: string, pod: string, port: number, path: string): Promise<string> {
    const cluster = this.config.getCurrentCluster();
    if (cluster === null) throw new KubeError(0, "no current cluster in the kubeconfig");
    const options: RequestOptions = {};
    await this.config.applyToHTTPSOptions(options);
    const url = `${cluster.server}/api/v1/namespaces/${namespace}/pods/${pod}:${port}/proxy${path}`;
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
      request.on("timeout", () => request.destroy(new Error(`GET ${path} of pod ${pod}: no answer in 10 s`)));
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

export function parseDocuments(yaml: string): KubernetesObject[] {
  return parseAllDocuments(yaml)
    .map(document => {
      if (document.errors[0] !== undefined) throw document.errors[0];
      return document.toJS() as KubernetesObject | null;
    })
    .filter(object => object !== null);
}

function header(ref: Ref): AnyObject & { metadata: { name: string; namespace: string } } {
  return {
    apiVersion: ref.apiVersion,
    kind: ref.kind,
    metadata: { name: ref.name, ...(ref.namespace === undefined ? {} : { namespace: ref.namespace }) } as {
      name: string;
      namespace: string;
    },
  };
}

async function explain<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof ApiException)) throw error;
    const body: unknown = error.body;
    const text = typeof body === "string" ? body : JSON.stringify(body);
    let message = text;
    try {
      message = (JSON.parse(text) as { message?: string }).message ?? text;
    } catch {
      // Not a Status object: the text itself is the message.
    }
    throw new KubeError(error.code, message);
  }
}
