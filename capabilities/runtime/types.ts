/** The narrow interfaces between reconcilers and the cluster. Reconcilers see nothing else of it. */

/** Any Kubernetes object as it is read or applied. */
export interface KubeObject {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
}

export interface ObjectMeta {
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
  readonly generation?: number | undefined;
  readonly resourceVersion?: string | undefined;
  readonly creationTimestamp?: string | Date | undefined;
  readonly deletionTimestamp?: string | Date | undefined;
  readonly deletionGracePeriodSeconds?: number | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly ownerReferences?: readonly OwnerReference[] | undefined;
  readonly finalizers?: readonly string[] | undefined;
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean | undefined;
  readonly blockOwnerDeletion?: boolean | undefined;
}

export interface ObjectKey {
  /** Absent for cluster-scoped objects. */
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** Reads from a shared informer's cache: never blocks, may be behind; objects are frozen by convention (never mutate). */
export interface Lister<T extends KubeObject> {
  get(key: ObjectKey): T | undefined;
  /** All objects, of one namespace when given, that carry every label of `labels`. */
  list(query?: {
    readonly namespace?: string | undefined;
    readonly labels?: Readonly<Record<string, string>> | undefined;
  }): readonly T[];
  /** Objects whose ownerReferences name this uid. */
  ownedBy(uid: string): readonly T[];
}

/** Writes to the API server. Every call takes a signal and throws an `ApiError` with `code` (HTTP status) and `reason`. */
export interface ClusterWriter {
  /** Server-side apply with field manager `fairway` (force). Skips the call when the last applied text and the cached object show nothing to change. Returns the object. */
  apply<T extends KubeObject>(desired: T, signal: AbortSignal): Promise<T>;
  /** Server-side apply of the status subresource; no write when the cached status is already equal. */
  applyStatus<T extends KubeObject>(desired: T, signal: AbortSignal): Promise<T>;
  /** POST; fails with code 409 when it exists. */
  create<T extends KubeObject>(desired: T, signal: AbortSignal): Promise<T>;
  /** Server-side apply of a part of an object by another field manager, such as `fairway-autoscaler` for replicas. */
  applyPart<T extends KubeObject>(desired: T, fieldManager: string, signal: AbortSignal): Promise<T>;
  /**
   * Puts a whole spec in the place of the object's, fields of other managers included, and sets annotations. Only while the
   * object is the one that was seen (`uid`); fails with code 409 or 422 when it is not.
   */
  replaceSpec(
    ref: ObjectRef & { readonly uid: string },
    spec: object,
    annotations: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void>;
  /** JSON merge patch of metadata labels and annotations only (null removes). */
  patchMetadata(
    ref: ObjectRef,
    patch: {
      readonly labels?: Readonly<Record<string, string | null>> | undefined;
      readonly annotations?: Readonly<Record<string, string | null>> | undefined;
    },
    signal: AbortSignal,
  ): Promise<void>;
  /** Deletes with a uid precondition, background propagation; an object already gone is a success. */
  delete(ref: ObjectRef & Deletion, signal: AbortSignal): Promise<void>;
}

export interface ObjectRef extends ObjectKey {
  readonly apiVersion: string;
  readonly kind: string;
}

export interface Deletion {
  readonly uid: string;
  /** Absent: the object's own. For a pod that is being deleted already, a shorter one takes its place. */
  readonly gracePeriodSeconds?: number;
}

/** Kubernetes events on the object a user looks at; equal events are aggregated, never more than a bounded rate. Never throws, never blocks. */
export interface EventRecorder {
  event(object: KubeObject, type: "Normal" | "Warning", reason: string, message: string): void;
}

export interface ReconcileResult {
  /** Run this key again after so long even if nothing happens. */
  readonly requeueAfterMs?: number | undefined;
}

/** Converges one object. Called for one key at a time; a thrown error is retried with backoff and shown in metrics and logs. */
export interface Reconciler {
  readonly name: string;
  reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult>;
}

/** Puts keys into a reconciler's queue; coalesces. */
export interface Enqueuer {
  enqueue(key: ObjectKey): void;
  enqueueAfter(key: ObjectKey, delayMs: number): void;
}
