import type { Capability } from "pepr";
import type { Registry } from "prom-client";
import type { Clock } from "./clock.ts";
import type { OperatorConfig } from "./config.ts";
import type { ComponentLogger, LogComponent } from "./logging.ts";
import { keyOf, type ResourceKind } from "./resource.ts";
import type {
  ClusterWriter,
  Enqueuer,
  EventRecorder,
  KubeObject,
  Lister,
  ObjectKey,
  ObjectRef,
  Reconciler,
} from "./types.ts";

/**
 * A capability of the operator: called once at start, before anything runs, with what it may use. It returns the Pepr
 * capability whose `When(...)` chains declare what is watched, defaulted and validated; see README.md beside this file.
 */
export type CapabilityModule = (runtime: OperatorRuntime) => Capability;

/** What a capability may use. Everything that can block takes a signal; nothing here is a global. */
export interface OperatorRuntime {
  readonly config: OperatorConfig;
  readonly clock: Clock;
  readonly random: () => number;
  readonly metrics: Registry;
  readonly writer: ClusterWriter;
  readonly events: EventRecorder;
  logger(component: LogComponent): ComponentLogger;

  /** The shared cache of a kind; asking for it makes it watched. Empty until the operator is ready. */
  lister<T extends KubeObject>(kind: ResourceKind<T>): Lister<T>;

  /**
   * The object straight from the API server, or `undefined` when it is not there: for what the caches do not hold. Throws
   * `ApiError`.
   */
  find(ref: ObjectRef, signal: AbortSignal): Promise<KubeObject | undefined>;

  /** Calls `handler` for every change of a kind on every replica (leader or not), first for what exists already. */
  onChange<T extends KubeObject>(kind: ResourceKind<T>, handler: ChangeHandler<T>): void;

  /** Adds a reconciler with its own queue; it runs only while this replica leads. */
  registerController(options: ControllerOptions): Controller;

  /**
   * Runs a task while this replica leads, such as the autoscaler's loop: once per term, with all caches synced. The
   * signal aborts when the term ends; the task must then return soon. A task that throws ends the process.
   */
  whileLeading(name: string, task: (signal: AbortSignal) => Promise<void>): void;

  /**
   * Serves `GET /debug/<name>` on the metrics port: the answer as JSON, 404 for `undefined`. For people and the CLI, who reach it
   * through the API server's proxy; it must not tell secrets, and must not block.
   */
  serveDebug(name: string, answer: DebugAnswer): void;

  /** True while this replica holds the lease: for reports; whoever writes uses the signal it was given. */
  isLeader(): boolean;
}

/** What a debug page says about the query; undefined: nothing is known of it. */
export type DebugAnswer = (query: URLSearchParams) => object | undefined;

export type ChangePhase = "added" | "modified" | "deleted";
export type ChangeHandler<T extends KubeObject> = (object: T, phase: ChangePhase) => void;

export interface ControllerOptions {
  /** Also the name in metrics and logs. */
  readonly name: string;
  readonly reconciler: Reconciler;
  /** How many keys are reconciled at once; 8 when absent. */
  readonly concurrency?: number | undefined;
  /** Kinds whose changes wake keys of this controller: children, or what the reconciler refers to. */
  readonly watches?: readonly WatchDeclaration[] | undefined;
  /** Keys to reconcile at the begin of each term although no object wakes them. */
  readonly initialKeys?: readonly ObjectKey[] | undefined;
}

/** A reconciler's handle: puts keys into its queue. Keys given while this replica does not lead are dropped. */
export interface Controller extends Enqueuer {
  readonly name: string;
  /** A watch callback for `When(...).Watch(...)` that enqueues the object's own key. */
  readonly hint: (object: KubeObject) => void;
}

export interface WatchDeclaration {
  readonly kind: ResourceKind;
  /** The keys to reconcile when this object was added, changed or deleted. */
  readonly keys: (object: KubeObject) => readonly ObjectKey[];
  /** How long further changes are waited for, so that a burst of them is one reconciliation; at once when absent. */
  readonly settleMs?: number | undefined;
}

/** Any mapping from a changed object to keys. */
export function watching<T extends KubeObject>(
  kind: ResourceKind<T>,
  keys: (object: T) => readonly ObjectKey[],
): WatchDeclaration {
  return { kind, keys: keys as (object: KubeObject) => readonly ObjectKey[] };
}

/** Children: a change of one wakes the object of kind `owner` that its controller reference names. */
export function ownedBy(kind: ResourceKind, owner: ResourceKind): WatchDeclaration {
  return {
    kind,
    keys: object =>
      (object.metadata?.ownerReferences ?? [])
        .filter(
          reference =>
            reference.controller === true &&
            reference.kind === owner.kind &&
            reference.apiVersion.split("/")[0] === owner.apiVersion.split("/")[0],
        )
        .map(reference => ({ namespace: object.metadata?.namespace, name: reference.name })),
  };
}

/** Objects that name what they belong to by a label, in the same namespace. */
export function labelledWith(kind: ResourceKind, label: string): WatchDeclaration {
  return {
    kind,
    keys: object => {
      const name = object.metadata?.labels?.[label];
      return name === undefined || name === "" ? [] : [{ namespace: object.metadata?.namespace, name }];
    },
  };
}

/** For kinds that change many times in a row, and where nobody waits for a single change. */
export const settling = (watch: WatchDeclaration, settleMs: number): WatchDeclaration => ({ ...watch, settleMs });

/** The object itself. */
export function itself(kind: ResourceKind): WatchDeclaration {
  return { kind, keys: object => [keyOf(object)] };
}
