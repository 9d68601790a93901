import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { Counter, type Registry } from "prom-client";
import { ApiError, isConflict, isNotFound } from "./api-error.ts";
import { canonicalJson, covers, jsonEqual } from "./equality.ts";
import type { KubeApi, Query } from "./kube-api.ts";
import { keyText, resourcePath } from "./resource.ts";
import type { ClusterWriter, KubeObject, ObjectKey, ObjectRef } from "./types.ts";

export interface WriterOptions {
  readonly api: KubeApi;
  /** The cached object, or `undefined` when its kind is not watched or it is not there. */
  readonly cached: (apiVersion: string, kind: string, key: ObjectKey) => KubeObject | undefined;
  readonly metrics: Registry;
}

export const FIELD_MANAGER = "fairway";
const APPLY = "application/apply-patch+yaml";
const MERGE = "application/merge-patch+json";
const JSON_PATCH = "application/json-patch+json";
/** How many objects' last applies are remembered; forgetting one costs a call that changes nothing. */
const REMEMBERED_APPLIES = 20_000;

interface Applied {
  readonly uid: string | undefined;
  readonly hash: string;
  readonly resourceVersion: string | undefined;
}

type Identified = KubeObject & { readonly apiVersion: string; readonly kind: string };

/**
 * Writes by server-side apply, and leaves out calls that would change nothing: the same was applied before, and the cached
 * object either is the one that apply returned, or still has all of it (someone may have changed other fields).
 */
export function createWriter(options: WriterOptions): ClusterWriter {
  const { api, cached } = options;
  const applied = new LRUCache<string, Applied>({ max: REMEMBERED_APPLIES });
  const writes = new Counter({
    name: "fairway_writes_total",
    help: "Writes to the API server by verb, kind and result; skipped ones would have changed nothing",
    labelNames: ["verb", "kind", "result"],
    registers: [options.metrics],
  });

  const counted = async <T>(verb: string, kind: string, write: () => Promise<T>): Promise<T> => {
    try {
      const result = await write();
      writes.inc({ verb, kind, result: "ok" });
      return result;
    } catch (error) {
      writes.inc({ verb, kind, result: error instanceof ApiError ? error.reason : "error" });
      throw error;
    }
  };

  const pathOf = async (ref: ObjectRef, signal: AbortSignal, subresource?: string): Promise<string> => {
    const kind = await api.discover(ref.apiVersion, ref.kind, signal);
    if (kind.namespaced && ref.namespace === undefined) {
      throw new TypeError(`${ref.kind} ${ref.name}: a namespace is needed`);
    }
    return resourcePath(kind, ref.namespace, ref.name, subresource);
  };

  const patch = async (
    ref: ObjectRef,
    contentType: string,
    query: Query,
    body: unknown,
    signal: AbortSignal,
    subresource?: string,
  ): Promise<KubeObject> => {
    const path = await pathOf(ref, signal, subresource);
    return (await api.call("PATCH", path, { query, body, contentType, signal })) as KubeObject;
  };

  const applyAs = async <T extends KubeObject>(desired: T, fieldManager: string, signal: AbortSignal): Promise<T> => {
    const object = identified(desired);
    const ref = refOf(object);
    const id = `${fieldManager} ${ref.apiVersion} ${ref.kind} ${keyText(ref)}`;
    const hash = createHash("sha256").update(canonicalJson(object)).digest("base64");
    const live = cached(ref.apiVersion, ref.kind, ref);
    const last = applied.get(id);
    if (
      live !== undefined &&
      last?.hash === hash &&
      last.uid === live.metadata?.uid &&
      (last.resourceVersion === live.metadata?.resourceVersion || covers(live, object))
    ) {
      writes.inc({ verb: "apply", kind: ref.kind, result: "skipped" });
      return live as T;
    }
    const result = await counted("apply", ref.kind, () =>
      patch(ref, APPLY, { fieldManager, force: true }, object, signal),
    );
    applied.set(id, { uid: result.metadata?.uid, hash, resourceVersion: result.metadata?.resourceVersion });
    return result as T;
  };

  return {
    apply: (desired, signal) => applyAs(desired, FIELD_MANAGER, signal),
    applyPart: (desired, fieldManager, signal) => applyAs(desired, fieldManager, signal),
    async applyStatus(desired, signal) {
      const object = identified(desired);
      const ref = refOf(object);
      const live = cached(ref.apiVersion, ref.kind, ref);
      if (live !== undefined && jsonEqual(statusOf(live), statusOf(object))) {
        writes.inc({ verb: "apply_status", kind: ref.kind, result: "skipped" });
        return live as typeof desired;
      }
      const uid = object.metadata?.uid;
      const body = {
        apiVersion: ref.apiVersion,
        kind: ref.kind,
        // The uid keeps the status of a deleted object off a new one of the same name.
        metadata: { name: ref.name, namespace: ref.namespace, ...(uid === undefined ? {} : { uid }) },
        status: statusOf(object),
      };
      const query = { fieldManager: FIELD_MANAGER, force: true };
      return (await counted("apply_status", ref.kind, () =>
        patch(ref, APPLY, query, body, signal, "status"),
      )) as typeof desired;
    },
    async create(desired, signal) {
      const object = identified(desired);
      const kind = await api.discover(object.apiVersion, object.kind, signal);
      const path = resourcePath(kind, object.metadata?.namespace);
      return (await counted("create", object.kind, () =>
        api.call("POST", path, { query: { fieldManager: FIELD_MANAGER }, body: object, signal }),
      )) as typeof desired;
    },
    async replaceSpec({ uid, ...ref }, spec, annotations, signal) {
      const live = cached(ref.apiVersion, ref.kind, ref);
      const body = [
        { op: "test", path: "/metadata/uid", value: uid },
        { op: "add", path: "/metadata/annotations", value: { ...live?.metadata?.annotations, ...annotations } },
        { op: "replace", path: "/spec", value: spec },
      ];
      await counted("replace_spec", ref.kind, () =>
        patch(ref, JSON_PATCH, { fieldManager: FIELD_MANAGER }, body, signal),
      );
    },
    async patchMetadata(ref, { labels, annotations }, signal) {
      const metadata = {
        ...(labels === undefined ? {} : { labels }),
        ...(annotations === undefined ? {} : { annotations }),
      };
      const live = cached(ref.apiVersion, ref.kind, ref);
      if (
        live !== undefined &&
        hasAll(live.metadata?.labels, labels) &&
        hasAll(live.metadata?.annotations, annotations)
      ) {
        writes.inc({ verb: "patch_metadata", kind: ref.kind, result: "skipped" });
        return;
      }
      await counted("patch_metadata", ref.kind, () =>
        patch(ref, MERGE, { fieldManager: FIELD_MANAGER }, { metadata }, signal),
      );
    },
    async delete(ref, signal) {
      const path = await pathOf(ref, signal);
      const body = {
        apiVersion: "v1",
        kind: "DeleteOptions",
        propagationPolicy: "Background",
        preconditions: { uid: ref.uid },
        ...(ref.gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds: ref.gracePeriodSeconds }),
      };
      await counted("delete", ref.kind, async () => {
        try {
          await api.call("DELETE", path, { body, signal });
        } catch (error) {
          // Gone, or replaced by another object of its name: what was to go has gone.
          if (!isNotFound(error) && !isConflict(error)) throw error;
        }
      });
    },
  };
}

function identified(object: KubeObject): Identified {
  const { apiVersion, kind } = object;
  if (apiVersion === undefined || kind === undefined) {
    throw new TypeError(`apiVersion and kind are needed to write ${object.metadata?.name ?? "an object"}`);
  }
  return { ...object, apiVersion, kind };
}

function refOf(object: Identified): ObjectRef {
  const name = object.metadata?.name;
  if (name === undefined) throw new TypeError(`${object.kind}: a name is needed`);
  return { apiVersion: object.apiVersion, kind: object.kind, namespace: object.metadata?.namespace, name };
}

function statusOf(object: KubeObject): unknown {
  return (object as { readonly status?: unknown }).status;
}

function hasAll(
  carried: Readonly<Record<string, string>> | undefined,
  wanted: Readonly<Record<string, string | null>> | undefined,
): boolean {
  return Object.entries(wanted ?? {}).every(([key, value]) => (carried?.[key] ?? null) === value);
}
