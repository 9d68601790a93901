import { describe, expect, it } from "vitest";
import type { BootstrapObject } from "./bootstrap.ts";
import { MANDATORY_PRIORITY_LEVELS, SUGGESTED_PRIORITY_LEVELS } from "./bootstrap.ts";
import type { MaintenanceAction, ObservedObject } from "./maintenance.ts";
import { AUTO_UPDATE_ANNOTATION, DEFAULTS_REVISION_ANNOTATION, mandatorySpec, planMaintenance } from "./maintenance.ts";

const mandatory: BootstrapObject<string>[] = [{ name: "must", spec: "must-spec" }];
const suggested: BootstrapObject<string>[] = [{ name: "may", spec: "may-spec" }];

const marks = (owned: string | undefined, revision?: string): Record<string, string> => ({
  other: "kept by whoever set it",
  ...(owned === undefined ? {} : { [AUTO_UPDATE_ANNOTATION]: owned }),
  ...(revision === undefined ? {} : { [DEFAULTS_REVISION_ANNOTATION]: revision }),
});
const object = (
  name: string,
  spec: string,
  annotations: Record<string, string>,
  generation = 1,
): ObservedObject<string> => ({ name, spec, annotations, generation });
const must = object("must", "must-spec", marks("true", "3"));

function plan(...observed: ObservedObject<string>[]): MaintenanceAction<string>[] {
  return planMaintenance({ observed, mandatory, suggested, sameSpec: (a, b) => a === b, revision: 3 });
}

const owned = { [AUTO_UPDATE_ANNOTATION]: "true", [DEFAULTS_REVISION_ANNOTATION]: "3" };
const users = { [AUTO_UPDATE_ANNOTATION]: "false" };
const update = (annotations: Record<string, string>, spec?: string): MaintenanceAction<string>[] => [
  { kind: "update", name: "may", annotations, spec },
];

describe("planMaintenance", () => {
  it("creates what is absent, suggested objects first", () => {
    expect(plan()).toEqual([
      { kind: "create", name: "may", annotations: owned, spec: "may-spec" },
      { kind: "create", name: "must", annotations: owned, spec: "must-spec" },
    ]);
  });

  it.each<[string, ObservedObject<string>, MaintenanceAction<string>[]]>([
    ["nothing to do", object("may", "may-spec", marks("true", "3")), []],
    ["ours, edited: brought back", object("may", "x", marks("true", "3"), 7), update(owned, "may-spec")],
    ["ours, of an older version: brought up", object("may", "x", marks("true", "2")), update(owned, "may-spec")],
    ["ours, of an older version, same spec: marked", object("may", "may-spec", marks("true", "2")), update(owned)],
    ["ours, of a newer version: left alone", object("may", "newer", marks("true", "4")), []],
    ["the user's: left alone", object("may", "x", marks("false"), 7), []],
    ["the user's, same spec: left alone", object("may", "may-spec", marks("false")), []],
    ["unmarked, never edited: ours", object("may", "x", marks(undefined)), update(owned, "may-spec")],
    ["unmarked, edited: the user's", object("may", "x", marks(undefined), 2), update(users)],
    ["unmarked, edited, same spec: the user's", object("may", "may-spec", marks(undefined), 2), update(users)],
    ["no boolean, never edited: ours", object("may", "may-spec", marks("yes", "3")), update(owned)],
    ["no boolean, edited: the user's", object("may", "x", marks(""), 2), update(users)],
    ["another spelling of true", object("may", "x", marks("T", "3"), 2), update(owned, "may-spec")],
    ["another spelling of false", object("may", "x", marks("0"), 1), []],
  ])("suggested, %s", (_, observed, expected) => {
    expect(plan(observed, must)).toEqual(expected);
  });

  it("case 42 (K8#107097): the annotation's value decides, not its presence", () => {
    const edited = (value: string): MaintenanceAction<string>[] => plan(object("may", "x", marks(value, "3"), 5), must);
    expect(edited("false")).toEqual([]);
    expect(edited("true")).toEqual(update(owned, "may-spec"));
  });

  it("enforces mandatory objects whatever their annotation says", () => {
    const may = object("may", "may-spec", marks("true", "3"));
    expect(plan(may, object("must", "x", marks("false"), 9))).toEqual([
      { kind: "update", name: "must", annotations: owned, spec: "must-spec" },
    ]);
    expect(plan(may, object("must", "must-spec", marks("false")))).toEqual([
      { kind: "update", name: "must", annotations: owned, spec: undefined },
    ]);
    expect(plan(may, object("must", "newer", marks("true", "4")))).toEqual([]);
  });

  it("removes what an older version suggested and still owns, and nothing else", () => {
    const rest = [must, object("may", "may-spec", marks("true", "3"))];
    expect(plan(...rest, object("old", "x", marks("true", "2")))).toEqual([{ kind: "remove", name: "old" }]);
    for (const kept of [marks("false", "2"), marks(undefined), marks("maybe"), marks("true", "4")]) {
      expect(plan(...rest, object("old", "x", kept))).toEqual([]);
    }
  });

  it("comes to rest after one pass", () => {
    let observed: ObservedObject<string>[] = [object("may", "x", marks(undefined)), object("old", "x", marks("true"))];
    for (const action of plan(...observed)) {
      const before = observed.find(({ name }) => name === action.name);
      observed = observed.filter(({ name }) => name !== action.name);
      if (action.kind === "remove") continue;
      const annotations = { ...before?.annotations, ...action.annotations };
      observed.push(object(action.name, action.spec ?? before!.spec, annotations, (before?.generation ?? 0) + 1));
    }
    expect(plan(...observed)).toEqual([]);
  });

  it("knows the specs that admission holds mandatory objects to", () => {
    expect(mandatorySpec(MANDATORY_PRIORITY_LEVELS, "exempt")?.type).toBe("Exempt");
    expect(mandatorySpec(MANDATORY_PRIORITY_LEVELS, SUGGESTED_PRIORITY_LEVELS[0]!.name)).toBeUndefined();
  });
});
