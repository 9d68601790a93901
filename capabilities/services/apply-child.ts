import type { KubeObject, ObjectRef } from "../runtime/types.ts";
import type { ServicesContext } from "./context.ts";
import { NotOwnedError, ownershipOf, PredecessorError } from "./ownership.ts";

/**
 * Brings a child to what it should be. `cached` is what the caches have under its name.
 * @throws NotOwnedError when the name is taken, PredecessorError when that is about to end.
 */
export async function applyChild<T extends KubeObject>(
  context: Pick<ServicesContext, "writer" | "find">,
  child: { readonly desired: T; readonly cached: KubeObject | undefined },
  owner: { readonly object: KubeObject; readonly kind: string },
  signal: AbortSignal,
): Promise<T> {
  const { desired, cached } = child;
  const ref = refOf(desired);
  const existing = cached ?? (await context.find(ref, signal));
  switch (existing === undefined ? "ours" : ownershipOf(existing, owner.object, owner.kind)) {
    case "ours":
      return context.writer.apply(desired, signal);
    case "predecessor":
      throw new PredecessorError(ref.kind, ref.name);
    case "foreign":
      throw new NotOwnedError(ref.kind, ref.name);
  }
}

export function refOf(object: KubeObject): ObjectRef {
  return {
    apiVersion: object.apiVersion ?? "",
    kind: object.kind ?? "",
    namespace: object.metadata?.namespace,
    name: object.metadata?.name ?? "",
  };
}
