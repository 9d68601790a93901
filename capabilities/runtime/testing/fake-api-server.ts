import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { KubeConfig } from "@kubernetes/client-node";

export interface StoredObject {
  apiVersion?: string | undefined;
  kind?: string | undefined;
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    resourceVersion?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    [field: string]: unknown;
  };
  [field: string]: unknown;
}

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly contentType: string | undefined;
  readonly body: unknown;
}

/** What to do with a request instead of the usual; `undefined` lets it pass. */
export type Fault = (request: SeenRequest) => { readonly code: number; readonly reason: string } | "hang" | undefined;

interface Change {
  readonly type: string;
  readonly collection: string;
  readonly version: number;
  readonly object: StoredObject;
}

/**
 * Enough of an API server for tests, on a loopback socket: collections at any path, list with pages, watch with bookmarks and 410,
 * optimistic locking, apply and merge patches (both as deep merges), delete with preconditions, discovery of what it is told.
 */
export class FakeApiServer {
  readonly requests: SeenRequest[] = [];
  fault: Fault = () => undefined;
  readonly #objects = new Map<string, StoredObject>();
  readonly #kinds = new Map<string, { name: string; kind: string; namespaced: boolean }[]>();
  readonly #watches = new Set<{ readonly collection: string; readonly response: ServerResponse }>();
  #changes: Change[] = [];
  #version = 100;
  #oldest = 0;
  #uid = 0;
  readonly #server = createServer((request, response) => {
    this.#serve(request, response).catch((error: unknown) => response.destroy(error as Error));
  });

  async start(): Promise<KubeConfig> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return this.kubeConfig();
  }

  kubeConfig(): KubeConfig {
    const { port } = this.#server.address() as AddressInfo;
    const config = new KubeConfig();
    config.loadFromClusterAndUser(
      { name: "fake", server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
      { name: "fake" },
    );
    return config;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  /** Makes discovery answer for a kind. */
  serveKind(apiVersion: string, kind: string, name: string, namespaced = true): void {
    const path = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    this.#kinds.set(path, [...(this.#kinds.get(path) ?? []), { name, kind, namespaced }]);
  }

  /** Writes an object as some other client would. `collection` is the path of its collection, with its namespace. */
  put(collection: string, object: StoredObject): StoredObject {
    return this.#store(`${collection}/${object.metadata.name}`, object);
  }

  get(path: string): StoredObject | undefined {
    return this.#objects.get(path);
  }

  remove(path: string): void {
    const object = this.#objects.get(path);
    if (object === undefined) return;
    this.#objects.delete(path);
    this.#tell("DELETED", path, {
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(++this.#version) },
    });
  }

  /** Sends a bookmark with the newest version to all watches of a collection. */
  bookmark(collection: string): void {
    const object = { metadata: { resourceVersion: String(this.#version) } };
    for (const watch of this.#watches) {
      if (watch.collection === collection) watch.response.write(`${JSON.stringify({ type: "BOOKMARK", object })}\n`);
    }
  }

  /** Forgets history: watches from an older version get 410. */
  compact(): void {
    this.#changes = [];
    this.#oldest = this.#version;
  }

  /** Breaks all open watches, as a restart would. */
  breakWatches(): void {
    for (const { response } of this.#watches) response.destroy();
  }

  get openWatches(): number {
    return this.#watches.size;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://fake");
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString("utf8");
    const seen: SeenRequest = {
      method: request.method ?? "GET",
      path: url.pathname,
      query: url.searchParams,
      contentType: request.headers["content-type"],
      body: text === "" ? undefined : JSON.parse(text),
    };
    this.requests.push(seen);
    const fault = this.fault(seen);
    if (fault === "hang") return;
    if (fault !== undefined) return refuse(response, fault.code, fault.reason);
    const kinds = this.#kinds.get(seen.path);
    if (seen.method === "GET" && kinds !== undefined) return answer(response, 200, { resources: kinds });
    switch (seen.method) {
      case "GET":
        return seen.query.get("watch") === "true" ? this.#watch(seen, response) : this.#read(seen, response);
      case "POST":
        return this.#create(seen, response);
      case "PUT":
      case "PATCH":
        return this.#change(seen, response);
      case "DELETE":
        return this.#delete(seen, response);
      default:
        return refuse(response, 405, "MethodNotAllowed");
    }
  }

  #read(seen: SeenRequest, response: ServerResponse): void {
    const object = this.#objects.get(seen.path);
    if (object !== undefined) return answer(response, 200, object);
    const isCollection = /\/[a-z]+s$/.test(seen.path);
    const items = [...this.#objects].filter(([path]) => within(path, seen.path)).map(([, item]) => item);
    if (!isCollection) return refuse(response, 404, "NotFound");
    const from = Number(seen.query.get("continue") ?? 0);
    const limit = Number(seen.query.get("limit") ?? 500);
    const more = from + limit < items.length ? { continue: String(from + limit) } : {};
    const page = items.slice(from, from + limit).map(({ kind: _kind, apiVersion: _apiVersion, ...item }) => item);
    answer(response, 200, { metadata: { resourceVersion: String(this.#version), ...more }, items: page });
  }

  #watch(seen: SeenRequest, response: ServerResponse): void {
    const from = Number(seen.query.get("resourceVersion") ?? 0);
    if (from < this.#oldest) return refuse(response, 410, "Expired");
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    const watch = { collection: seen.path, response };
    this.#watches.add(watch);
    response.on("close", () => this.#watches.delete(watch));
    for (const change of this.#changes) {
      if (change.version > from && within(change.collection, seen.path)) send(response, change);
    }
  }

  #create(seen: SeenRequest, response: ServerResponse): void {
    const object = seen.body as StoredObject;
    const path = `${seen.path}/${object.metadata.name}`;
    if (this.#objects.has(path)) return refuse(response, 409, "AlreadyExists");
    answer(response, 201, this.#store(path, object));
  }

  #change(seen: SeenRequest, response: ServerResponse): void {
    const isStatus = seen.path.endsWith("/status");
    const path = isStatus ? seen.path.slice(0, -"/status".length) : seen.path;
    const current = this.#objects.get(path);
    const body = seen.body as StoredObject;
    // Pepr's own housekeeping of its store; nothing here depends on it.
    if (seen.contentType === "application/json-patch+json" && current !== undefined)
      return answer(response, 200, current);
    const isApply = seen.contentType === "application/apply-patch+yaml";
    if (current === undefined && (isStatus || !isApply)) return refuse(response, 404, "NotFound");
    const { resourceVersion, uid } = body.metadata;
    if (resourceVersion !== undefined && resourceVersion !== current?.metadata.resourceVersion) {
      return refuse(response, 409, "Conflict");
    }
    if (uid !== undefined && current !== undefined && uid !== current.metadata.uid)
      return refuse(response, 409, "Conflict");
    const next = seen.method === "PUT" || current === undefined ? body : (merge(current, body) as StoredObject);
    answer(response, 200, this.#store(path, next));
  }

  #delete(seen: SeenRequest, response: ServerResponse): void {
    const current = this.#objects.get(seen.path);
    if (current === undefined) return refuse(response, 404, "NotFound");
    const wanted = (seen.body as { preconditions?: { uid?: string } } | undefined)?.preconditions?.uid;
    if (wanted !== undefined && wanted !== current.metadata.uid) return refuse(response, 409, "Conflict");
    this.remove(seen.path);
    answer(response, 200, { kind: "Status", status: "Success" });
  }

  #store(path: string, object: StoredObject): StoredObject {
    const previous = this.#objects.get(path);
    const uid = previous?.metadata.uid ?? `uid-${++this.#uid}`;
    if (previous !== undefined) {
      const unchanged = {
        ...object,
        metadata: { ...object.metadata, uid, resourceVersion: previous.metadata.resourceVersion },
      };
      if (JSON.stringify(unchanged) === JSON.stringify(previous)) return previous;
    }
    const stored = { ...object, metadata: { ...object.metadata, uid, resourceVersion: String(++this.#version) } };
    this.#objects.set(path, stored);
    this.#tell(previous === undefined ? "ADDED" : "MODIFIED", path, stored);
    return stored;
  }

  #tell(type: string, path: string, object: StoredObject): void {
    const change = { type, collection: path, version: this.#version, object };
    this.#changes.push(change);
    for (const watch of this.#watches) if (within(path, watch.collection)) send(watch.response, change);
  }
}

/** Whether an object's path is in a collection, which may be that of all namespaces. */
function within(path: string, collection: string): boolean {
  if (path.startsWith(`${collection}/`) && !path.slice(collection.length + 1).includes("/")) return true;
  const [, root, plural] = /^(.*)\/([a-z]+)$/.exec(collection) ?? [];
  return root !== undefined && new RegExp(`^${root}/namespaces/[^/]+/${plural}/[^/]+$`).test(path);
}

function send(response: ServerResponse, change: Change): void {
  response.write(`${JSON.stringify({ type: change.type, object: change.object })}\n`);
}

function answer(response: ServerResponse, code: number, body: unknown): void {
  response.writeHead(code, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function refuse(response: ServerResponse, code: number, reason: string): void {
  answer(response, code, { kind: "Status", status: "Failure", code, reason, message: reason.toLowerCase() });
}

/** JSON merge patch: null removes. */
function merge(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> =
    typeof target === "object" && target !== null && !Array.isArray(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merge(result[key], value);
  }
  return result;
}
