import type { KubeObject } from "../runtime/types.ts";

/** Whose object it is that has the name a child is to have. */
export type Ownership =
  | "ours"
  /** Of an object of the same kind and name that was deleted; Kubernetes is about to remove it. */
  | "predecessor"
  | "foreign";

/** `ownerKind` is the kind of `owner`, which objects of a cache do not always say. */
export function ownershipOf(object: KubeObject, owner: KubeObject, ownerKind: string): Ownership {
  const controller = object.metadata?.ownerReferences?.find(reference => reference.controller === true);
  if (controller?.uid !== undefined && controller.uid === owner.metadata?.uid) return "ours";
  return controller?.kind === ownerKind && controller.name === owner.metadata?.name ? "predecessor" : "foreign";
}

/** The name of a child is taken. Thrown after the status says so; retried, since the other may go. */
export class NotOwnedError extends Error {
  readonly code = "NOT_OWNED";
  readonly kind: string;
  readonly objectName: string;

  constructor(kind: string, objectName: string) {
    super(`${kind} "${objectName}" exists already and belongs to something else.`);
    this.name = "NotOwnedError";
    this.kind = kind;
    this.objectName = objectName;
  }
}

/** The object that stands in the way is being removed: try again. */
export class PredecessorError extends Error {
  readonly code = "PREDECESSOR";
  constructor(kind: string, objectName: string) {
    super(`${kind} "${objectName}" of a deleted owner is not gone yet`);
    this.name = "PredecessorError";
  }
}
