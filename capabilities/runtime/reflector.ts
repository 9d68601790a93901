import { z } from "zod";
import { ApiError, isGone } from "./api-error.ts";
import { backoffMs, pause, type Clock } from "./clock.ts";
import type { KubeApi, Query } from "./kube-api.ts";
import type { ComponentLogger } from "./logging.ts";
import type { ObjectCache } from "./object-cache.ts";
import type { ResourceKind } from "./resource.ts";
import type { KubeObject } from "./types.ts";

export interface ReflectorOptions {
  readonly api: KubeApi;
  readonly kind: ResourceKind;
  readonly path: string;
  readonly query: Query;
  readonly cache: ObjectCache;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: ComponentLogger;
  /** Called after the first complete list is in the cache. */
  readonly onSynced: () => void;
  readonly onRelist: () => void;
  readonly onFailure: () => void;
}

const PAGE_SIZE = 500;
const RETRY = { baseMs: 200, maxMs: 15_000 } as const;
/** The server ends a watch after this long and up to twice as long; then it goes on from the last version seen. */
const WATCH_SECONDS = 300;

const listSchema = z.object({
  metadata: z
    .object({ resourceVersion: z.string().default(""), continue: z.string().optional() })
    .default({ resourceVersion: "" }),
  items: z.array(z.record(z.string(), z.unknown())).nullish(),
});
const versionSchema = z.object({ metadata: z.object({ resourceVersion: z.string() }) });

/**
 * Keeps a cache equal to a collection of the API server until the signal aborts: lists it page by page, then watches from that
 * version. A broken watch goes on from the last version seen (bookmarks keep it recent); one that is too old lists again,
 * and the cache reports what was deleted meanwhile. While the server is away the cache stays as it is. Never rejects.
 */
export async function runReflector(options: ReflectorOptions, signal: AbortSignal): Promise<void> {
  const { api, cache, clock, random, log, path, query, kind } = options;
  let version: string | undefined;
  let failures = 0;
  let synced = false;
  while (!signal.aborted) {
    const startedMs = clock.elapsedMs();
    try {
      if (version === undefined) {
        version = await list(options, signal);
        if (synced) options.onRelist();
        else options.onSynced();
        synced = true;
      }
      const timeoutSeconds = Math.round(WATCH_SECONDS * (1 + random()));
      for await (const event of api.watch(path, { ...query, resourceVersion: version, timeoutSeconds }, signal)) {
        failures = 0;
        if (event.type === "ERROR") throw errorOf(event.object, path);
        version = versionSchema.parse(event.object).metadata.resourceVersion;
        if (event.type === "BOOKMARK") continue;
        const object = trim(event.object, kind);
        if (event.type === "DELETED") cache.remove(object);
        else cache.upsert(object);
      }
      failures = 0;
      // A server that ends each watch at once must not be asked in a tight loop.
      if (clock.elapsedMs() - startedMs < RETRY.baseMs) await pause(clock, RETRY.baseMs, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (isGone(error)) {
        log.info({ kind: kind.kind, path }, "watch is too old: listing again");
        version = undefined;
        continue;
      }
      failures += 1;
      options.onFailure();
      const wish = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
      const delayMs = Math.max(wish, backoffMs(failures, RETRY, random));
      log.warn({ kind: kind.kind, path, failures, delayMs: Math.round(delayMs), error }, "watch failed: trying again");
      await pause(clock, delayMs, signal);
    }
  }
}

async function list(options: ReflectorOptions, signal: AbortSignal): Promise<string> {
  const objects: KubeObject[] = [];
  let token: string | undefined;
  do {
    const page = listSchema.parse(
      await options.api.call("GET", options.path, {
        query: { ...options.query, limit: PAGE_SIZE, continue: token },
        signal,
        timeoutMs: 60_000,
      }),
    );
    for (const item of page.items ?? []) objects.push(trim(item, options.kind));
    token = page.metadata.continue === "" ? undefined : page.metadata.continue;
    if (token === undefined) {
      options.cache.replace(objects);
      return page.metadata.resourceVersion;
    }
  } while (!signal.aborted);
  throw new ApiError(`list of ${options.path} aborted`, 0, "Aborted");
}

/** Gives the object its kind, which lists leave out, and drops what is large and read by nobody here. */
function trim(raw: Record<string, unknown>, kind: ResourceKind): KubeObject {
  const { managedFields: _managed, annotations, ...metadata } = (raw["metadata"] ?? {}) as Record<string, unknown>;
  const { "kubectl.kubernetes.io/last-applied-configuration": _applied, ...kept } = (annotations ?? {}) as Record<
    string,
    string
  >;
  return {
    ...raw,
    apiVersion: kind.apiVersion,
    kind: kind.kind,
    metadata: annotations === undefined ? metadata : { ...metadata, annotations: kept },
  } as KubeObject;
}

function errorOf(status: Record<string, unknown>, path: string): ApiError {
  const { code = 0, reason = "Unknown", message = "" } = status as { code?: number; reason?: string; message?: string };
  return new ApiError(`WATCH ${path}: ${code} ${reason}: ${message}`, code, reason);
}
