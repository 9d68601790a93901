import type { KubeObject, ObjectKey, ObjectRef } from "./types.ts";

/** Which objects of a kind this process keeps in memory; absent means all of them. */
export interface WatchScope {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Watches one namespace only: `system` is the operator's own. */
  readonly namespace?: "system" | undefined;
}

/** A kind of the Kubernetes API: where it is served, and the class that Pepr's `When(...)` takes for it. */
export interface ResourceKind<T extends KubeObject = KubeObject> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly apiVersion: string;
  readonly namespaced: boolean;
  readonly scope: WatchScope;
  /** For `When(kind.model, kind)`; its type carries T. */
  readonly model: abstract new () => T;
}

/** Describes a kind; `apiVersion` is `group/version`, or `v1` for the core group. */
export function defineResource<T extends KubeObject>(
  apiVersion: string,
  kind: string,
  plural: string,
  options: { readonly namespaced?: boolean; readonly scope?: WatchScope } = {},
): ResourceKind<T> {
  const [first = "", second] = apiVersion.split("/");
  return {
    group: second === undefined ? "" : first,
    version: second ?? first,
    kind,
    plural,
    apiVersion,
    namespaced: options.namespaced ?? true,
    scope: options.scope ?? {},
    model: class {} as unknown as abstract new () => T,
  };
}

/** The path of a kind's collection or, with a name, of one object. */
export function resourcePath(kind: ResourceKind, namespace?: string, name?: string, subresource?: string): string {
  const root = kind.group === "" ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
  const parts = [root];
  if (kind.namespaced && namespace !== undefined) parts.push("namespaces", encodeURIComponent(namespace));
  parts.push(kind.plural);
  if (name !== undefined) parts.push(encodeURIComponent(name));
  if (subresource !== undefined) parts.push(subresource);
  return parts.join("/");
}

export function keyOf(object: KubeObject): ObjectKey {
  const name = object.metadata?.name ?? "";
  const namespace = object.metadata?.namespace;
  return namespace === undefined || namespace === "" ? { name } : { namespace, name };
}

/** `namespace/name`, or `/name` when cluster-scoped: one string per object of a kind. */
export function keyText(key: ObjectKey): string {
  return `${key.namespace ?? ""}/${key.name}`;
}

export function refText(ref: ObjectRef): string {
  return `${ref.kind}.${ref.apiVersion} ${keyText(ref)}`;
}
