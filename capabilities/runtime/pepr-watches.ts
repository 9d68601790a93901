import type { Capability } from "pepr";
import type { ChangeHandler, ChangePhase } from "./capability.ts";
import type { ComponentLogger } from "./logging.ts";
import type { ResourceKind } from "./resource.ts";
import type { KubeObject } from "./types.ts";

type Binding = Capability["bindings"][number];

/** One `When(...).Watch(...)` chain: its kind and a handler that applies the chain's filters. */
export interface WatchBinding {
  readonly kind: ResourceKind;
  readonly handler: ChangeHandler<KubeObject>;
}

/** A chain asks for something that our informers do not do. */
export class UnsupportedWatch extends Error {
  readonly code = "UNSUPPORTED_WATCH";
}

/**
 * Takes the watch chains out of a capability, for our informers to feed: Pepr would start a watch with a cache of its own for
 * each, drop a failed callback until the next relist, and end the process when the API server is away for half a minute.
 * What is left are its admission chains.
 */
export function takeWatchBindings(capability: Capability, log: ComponentLogger): readonly WatchBinding[] {
  const watches = capability.bindings.filter(binding => binding.isWatch === true);
  const others = capability.bindings.filter(binding => binding.isWatch !== true);
  capability.bindings.splice(0, capability.bindings.length, ...others);
  return watches.map(binding => toWatch(capability, binding, log));
}

function toWatch(capability: Capability, binding: Binding, log: ComponentLogger): WatchBinding {
  const { event, filters, kind, watchCallback } = binding;
  const where = `${capability.name}: watch of ${kind.kind}`;
  if (!isResourceKind(kind))
    throw new UnsupportedWatch(`${where}: pass a kind of defineResource to When(kind.model, kind)`);
  if (binding.isFinalize === true || watchCallback === undefined) throw new UnsupportedWatch(`${where}: Finalize`);
  if (filters.regexName !== "" || filters.regexNamespaces.length > 0)
    throw new UnsupportedWatch(`${where}: regex filter`);
  if (filters.deletionTimestamp) throw new UnsupportedWatch(`${where}: WithDeletionTimestamp`);
  if (Object.keys(filters.annotations).length > 0) throw new UnsupportedWatch(`${where}: WithAnnotation`);
  const namespaces = [...filters.namespaces, ...(capability.namespaces.length > 0 ? capability.namespaces : [])];
  const labels = Object.entries(filters.labels);
  const phases = phasesOf(event);
  return {
    kind,
    handler(object, phase) {
      const { name, namespace, labels: carried = {} } = object.metadata ?? {};
      if (!phases.has(phase)) return;
      if (filters.name !== "" && filters.name !== name) return;
      if (namespaces.length > 0 && (namespace === undefined || !namespaces.includes(namespace))) return;
      if (!labels.every(([key, value]) => (value === "" ? key in carried : carried[key] === value))) return;
      const called = watchCallback(object, PEPR_PHASE[phase]);
      if (called instanceof Promise) called.catch((error: unknown) => log.error({ error }, `${where} failed`));
    },
  };
}

function isResourceKind(kind: object): kind is ResourceKind {
  return "plural" in kind && "scope" in kind && "model" in kind;
}

type PeprPhase = Parameters<NonNullable<Binding["watchCallback"]>>[1];
/** Pepr's enum of phases, which its library does not export. */
const PEPR_PHASE: Readonly<Record<ChangePhase, PeprPhase>> = {
  added: "ADDED" as PeprPhase,
  modified: "MODIFIED" as PeprPhase,
  deleted: "DELETED" as PeprPhase,
};

function phasesOf(event: Binding["event"]): ReadonlySet<ChangePhase> {
  switch (String(event)) {
    case "CREATE":
      return new Set(["added"]);
    case "UPDATE":
      return new Set(["modified"]);
    case "CREATEORUPDATE":
      return new Set(["added", "modified"]);
    case "DELETE":
      return new Set(["deleted"]);
    default:
      return new Set(["added", "modified", "deleted"]);
  }
}
