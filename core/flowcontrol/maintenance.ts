/**
 * The pass over mandatory and suggested objects: what to create, bring back, mark or remove. Pure; the caller lists the
 * objects, carries out the actions in order, and comes again after a minute.
 *
 * Ownership is the annotation `apf.kubernetes.io/autoupdate-spec`: `true` Fairway's, `false` the user's. Without a
 * value that is a boolean, an object of generation 1 is Fairway's and an edited one the user's. Mandatory objects are
 * Fairway's whatever it says.
 *
 * Two versions of Fairway do not fight over a spec: objects carry the revision of the defaults that wrote them, and an
 * older version leaves alone what a newer one wrote.
 */
import type { BootstrapObject } from "./bootstrap.ts";

export const AUTO_UPDATE_ANNOTATION = "apf.kubernetes.io/autoupdate-spec";
export const DEFAULTS_REVISION_ANNOTATION = "flowcontrol.fairway.dev/defaults-revision";
/** To be raised with every change of a mandatory or suggested spec. */
export const DEFAULTS_REVISION = 1;

export interface ObservedObject<Spec> {
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  /** metadata.generation: 1 until somebody edits the spec. */
  readonly generation: number;
  readonly spec: Spec;
}

export type MaintenanceAction<Spec> =
  | {
      readonly kind: "create";
      readonly name: string;
      readonly annotations: Record<string, string>;
      readonly spec: Spec;
    }
  /** `spec` is set when it must be replaced; `annotations` are those to set (others stay). */
  | {
      readonly kind: "update";
      readonly name: string;
      readonly annotations: Record<string, string>;
      readonly spec: Spec | undefined;
    }
  | { readonly kind: "remove"; readonly name: string };

/** Of one kind: all objects observed and those that should be there. */
export interface MaintenanceInput<Spec> {
  readonly observed: readonly ObservedObject<Spec>[];
  readonly mandatory: readonly BootstrapObject<Spec>[];
  readonly suggested: readonly BootstrapObject<Spec>[];
  /** Whether two specs mean the same once defaults are applied. */
  readonly sameSpec: (a: Spec, b: Spec) => boolean;
  /** Revision of `mandatory` and `suggested`; `DEFAULTS_REVISION` but in tests. */
  readonly revision?: number;
}

/** The values that Go's strconv.ParseBool reads. */
function parseBoolean(value: string | undefined): boolean | undefined {
  if (value === undefined) return undefined;
  if (["1", "t", "T", "TRUE", "true", "True"].includes(value)) return true;
  if (["0", "f", "F", "FALSE", "false", "False"].includes(value)) return false;
  return undefined;
}

const revisionOf = (object: ObservedObject<unknown>): number =>
  Number.parseInt(object.annotations[DEFAULTS_REVISION_ANNOTATION] ?? "0", 10) || 0;

/** Actions for one kind: suggested objects first, then mandatory ones, then removals. */
export function planMaintenance<Spec>(input: MaintenanceInput<Spec>): MaintenanceAction<Spec>[] {
  const { observed, mandatory, suggested, sameSpec, revision = DEFAULTS_REVISION } = input;
  const byName = new Map(observed.map(object => [object.name, object]));
  const marks = (owned: boolean): Record<string, string> => ({
    [AUTO_UPDATE_ANNOTATION]: String(owned),
    ...(owned ? { [DEFAULTS_REVISION_ANNOTATION]: String(revision) } : {}),
  });

  const ensure = (wanted: BootstrapObject<Spec>, always: boolean): MaintenanceAction<Spec>[] => {
    const { name, spec } = wanted;
    const current = byName.get(name);
    if (current === undefined) return [{ kind: "create", name, annotations: marks(true), spec }];
    const marked = parseBoolean(current.annotations[AUTO_UPDATE_ANNOTATION]);
    const owned = always || (marked ?? current.generation === 1);
    if (owned && revisionOf(current) > revision) return [];
    const wrongSpec = owned && !sameSpec(spec, current.spec);
    const wrongMark = marked !== owned || (owned && revisionOf(current) !== revision);
    if (!wrongSpec && !wrongMark) return [];
    return [{ kind: "update", name, annotations: marks(owned), spec: wrongSpec ? spec : undefined }];
  };

  const wantedNames = new Set([...mandatory, ...suggested].map(({ name }) => name));
  const outdated = observed.filter(
    object =>
      !wantedNames.has(object.name) &&
      parseBoolean(object.annotations[AUTO_UPDATE_ANNOTATION]) === true &&
      revisionOf(object) <= revision,
  );
  return [
    ...suggested.flatMap(wanted => ensure(wanted, false)),
    ...mandatory.flatMap(wanted => ensure(wanted, true)),
    ...outdated.map(({ name }): MaintenanceAction<Spec> => ({ kind: "remove", name })),
  ];
}

/** The spec that an object of this name must have, if it is a mandatory one; for admission. */
export function mandatorySpec<Spec>(mandatory: readonly BootstrapObject<Spec>[], name: string): Spec | undefined {
  return mandatory.find(object => object.name === name)?.spec;
}
