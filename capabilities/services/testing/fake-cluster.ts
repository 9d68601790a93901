import { jsonEqual } from "../../runtime/equality.ts";
import { ApiError } from "../../runtime/api-error.ts";
import { keyText } from "../../runtime/resource.ts";
import type { ClusterWriter, KubeObject, Lister, ObjectKey, ObjectRef } from "../../runtime/types.ts";

type Tree = { readonly [key: string]: unknown };
interface Stored {
  readonly uid: string;
  /** What each field manager applied last, in the order of their first apply; plain writes are the manager "". */
  readonly managers: ReadonlyMap<string, Tree>;
  readonly status: unknown;
  readonly live: Tree & KubeObject;
}

/**
 * Enough of an API server to converge against: objects by kind, server-side apply with field managers (a field that its last
 * manager leaves out goes), generations, ownership by uid with deletion of children, and a log of changes.
 */
export class FakeCluster {
  readonly writer: Omit<ClusterWriter, "replaceSpec">;
  /** `verb kind name` of every write that changed something. */
  readonly changes: string[] = [];
  readonly events: string[] = [];
  /** Throws what the API server would answer to a write; the default takes everything. */
  refuse: (verb: string, object: KubeObject) => void = () => undefined;
  readonly #objects = new Map<string, Map<string, Stored>>();
  #uid = 0;
  #version = 0;
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.writer = {
      apply: async desired => this.#apply("apply", desired, "fairway"),
      applyPart: async (desired, manager) => this.#apply("applyPart", desired, manager),
      applyStatus: async desired => {
        this.refuse("applyStatus", desired);
        const stored = this.#stored(refOf(desired));
        if (stored === undefined) throw new ApiError("not found", 404, "NotFound");
        return this.#store("applyStatus", { ...stored, status: (desired as { status?: unknown }).status }) as never;
      },
      create: async desired => {
        this.refuse("create", desired);
        const ref = refOf(desired);
        if (this.#stored(ref) !== undefined) {
          throw new ApiError(`${ref.kind} "${ref.name}" already exists`, 409, "AlreadyExists");
        }
        return this.#store("create", { ...this.#fresh(), managers: new Map([["", tree(desired)]]) }) as never;
      },
      patchMetadata: async (ref, patch) => {
        const stored = this.#stored(ref);
        if (stored === undefined) throw new ApiError("not found", 404, "NotFound");
        const managers = new Map([...stored.managers].map(([name, applied]) => [name, patchTree(applied, patch)]));
        const first = [...managers.keys()][0] ?? "";
        const base = (managers.get(first) ?? {}) as { metadata?: Tree };
        const add = (field: "labels" | "annotations") =>
          Object.fromEntries(Object.entries(patch[field] ?? {}).filter(([, value]) => value !== null));
        const metadata = base.metadata ?? {};
        managers.set(first, {
          ...base,
          metadata: {
            ...metadata,
            labels: { ...(metadata["labels"] as Tree), ...add("labels") },
            annotations: { ...(metadata["annotations"] as Tree), ...add("annotations") },
          },
        });
        this.#store("patchMetadata", { ...stored, managers });
      },
      delete: async ref => this.remove(ref),
    };
  }

  lister<T extends KubeObject>(apiVersion: string, kind: string): Lister<T> {
    const all = (): T[] =>
      [...(this.#objects.get(`${apiVersion}/${kind}`)?.values() ?? [])].map(stored => stored.live as unknown as T);
    return {
      get: key => this.#objects.get(`${apiVersion}/${kind}`)?.get(keyText(key))?.live as unknown as T | undefined,
      list: ({ namespace, labels = {} } = {}) =>
        all().filter(
          object =>
            (namespace === undefined || object.metadata?.namespace === namespace) &&
            Object.entries(labels).every(([name, value]) => object.metadata?.labels?.[name] === value),
        ),
      ownedBy: uid =>
        all().filter(object => object.metadata?.ownerReferences?.some(owner => owner.uid === uid) ?? false),
    };
  }

  /** Writes as a user would; keeps what others manage. */
  put<T extends KubeObject>(object: T): T {
    return this.#apply("put", object, "user");
  }

  /** Changes the status as another controller would. */
  setStatus(ref: ObjectRef, status: object): void {
    const stored = this.#stored(ref);
    if (stored === undefined) throw new Error(`no ${ref.kind} ${ref.name}`);
    this.#store("status", { ...stored, status });
  }

  find(ref: ObjectRef): KubeObject | undefined {
    return this.#stored(ref)?.live;
  }

  /** Deletes an object and, as the garbage collector would, all that belongs to it. */
  remove(ref: ObjectRef): void {
    const stored = this.#stored(ref);
    if (stored === undefined) return;
    this.#objects.get(`${ref.apiVersion}/${ref.kind}`)?.delete(keyText(ref));
    this.changes.push(`delete ${ref.kind} ${ref.name}`);
    for (const kind of this.#objects.values()) {
      for (const { live } of [...kind.values()]) {
        if (live.metadata?.ownerReferences?.some(owner => owner.uid === stored.uid) ?? false) this.remove(refOf(live));
      }
    }
  }

  keys(apiVersion: string, kind: string): ObjectKey[] {
    return [...(this.#objects.get(`${apiVersion}/${kind}`)?.values() ?? [])].map(({ live }) => ({
      namespace: live.metadata?.namespace,
      name: live.metadata?.name ?? "",
    }));
  }

  #apply<T extends KubeObject>(verb: string, desired: T, manager: string): T {
    this.refuse(verb, desired);
    const stored = this.#stored(refOf(desired)) ?? this.#fresh();
    const managers = new Map(stored.managers);
    // A conflict is forced: the value is this manager's from now on.
    managers.delete(manager);
    managers.set(manager, tree(desired));
    return this.#store(verb, { ...stored, managers }) as unknown as T;
  }

  #fresh(): Stored {
    return { uid: `uid-${++this.#uid}`, managers: new Map(), status: undefined, live: {} };
  }

  #stored(ref: ObjectRef): Stored | undefined {
    return this.#objects.get(`${ref.apiVersion}/${ref.kind}`)?.get(keyText(ref));
  }

  #store(verb: string, next: Stored): KubeObject {
    const merged = [...next.managers.values()].reduce<Tree>((all, applied) => merge(all, applied) as Tree, {});
    const before = next.live;
    const specChanged = !jsonEqual(merged["spec"], before["spec"]);
    const generation = (before.metadata?.generation ?? 0) + (specChanged ? 1 : 0);
    const metadata = {
      ...(merged["metadata"] as Tree),
      uid: next.uid,
      creationTimestamp: before.metadata?.creationTimestamp ?? new Date(this.#nowMs()).toISOString(),
      generation: Math.max(1, generation),
    };
    const content = { ...merged, metadata, ...(next.status === undefined ? {} : { status: next.status }) };
    const { resourceVersion: _version, ...metadataBefore } = before.metadata ?? {};
    const changed = !jsonEqual(content, { ...before, metadata: metadataBefore });
    const resourceVersion = changed ? String(++this.#version) : before.metadata?.resourceVersion;
    const live = { ...content, metadata: { ...metadata, resourceVersion } } as unknown as Stored["live"];
    const ref = refOf(live);
    const kindKey = `${ref.apiVersion}/${ref.kind}`;
    if (!this.#objects.has(kindKey)) this.#objects.set(kindKey, new Map());
    this.#objects.get(kindKey)?.set(keyText(ref), { ...next, live });
    if (changed) this.changes.push(`${verb} ${ref.kind} ${ref.name}`);
    return live;
  }
}

function refOf(object: KubeObject): ObjectRef {
  const { apiVersion = "", kind = "", metadata } = object;
  return { apiVersion, kind, namespace: metadata?.namespace, name: metadata?.name ?? "" };
}

/** As it would travel: no undefined members, no status, no fields of the server. */
function tree(object: KubeObject): Tree {
  const { status: _status, ...rest } = JSON.parse(JSON.stringify(object)) as Tree & { status?: unknown };
  const {
    uid: _uid,
    resourceVersion: _version,
    generation: _generation,
    creationTimestamp: _created,
    ...metadata
  } = (rest as { metadata?: Tree }).metadata ?? {};
  return { ...rest, metadata };
}

function merge(a: unknown, b: unknown): unknown {
  if (
    typeof a !== "object" ||
    typeof b !== "object" ||
    a === null ||
    b === null ||
    Array.isArray(a) ||
    Array.isArray(b)
  ) {
    return b;
  }
  const merged: Record<string, unknown> = { ...a };
  for (const [key, value] of Object.entries(b)) merged[key] = key in merged ? merge(merged[key], value) : value;
  return merged;
}

function patchTree(
  applied: Tree,
  patch: Readonly<Partial<Record<"labels" | "annotations", Readonly<Record<string, string | null>> | undefined>>>,
): Tree {
  const metadata = { ...((applied["metadata"] as Tree | undefined) ?? {}) } as Record<string, unknown>;
  for (const field of ["labels", "annotations"] as const) {
    const entries = { ...(metadata[field] as Record<string, string> | undefined) };
    for (const [key, value] of Object.entries(patch[field] ?? {})) {
      if (!(key in entries)) continue;
      if (value === null) delete entries[key];
      else entries[key] = value;
    }
    if (metadata[field] !== undefined) metadata[field] = entries;
  }
  return { ...applied, metadata };
}
