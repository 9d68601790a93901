import { describe, expect, it } from "vitest";
import type { FlowSchema, PriorityLevelConfiguration } from "../../api/flowcontrol/v1/types.ts";
import { MANDATORY_FLOW_SCHEMAS, MANDATORY_PRIORITY_LEVELS } from "../../core/flowcontrol/bootstrap.ts";
import { SUGGESTED_FLOW_SCHEMAS, SUGGESTED_PRIORITY_LEVELS } from "../../core/flowcontrol/bootstrap.ts";
import type { KubeObject, Lister } from "../runtime/types.ts";
import { DefaultObjects } from "./default-objects.ts";

const AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec";
const signal = new AbortController().signal;

function listerOf<T extends KubeObject>(objects: readonly T[]): Lister<T> {
  return {
    get: key => objects.find(object => object.metadata?.name === key.name),
    list: () => objects,
    ownedBy: () => [],
  };
}

/** A cluster in which one pass is made; returns what the pass wrote, in order. */
async function pass(levels: readonly object[], schemas: readonly object[]): Promise<string[]> {
  const written: string[] = [];
  const reconciler = new DefaultObjects({
    priorityLevels: listerOf(levels as PriorityLevelConfiguration[]),
    flowSchemas: listerOf(schemas as FlowSchema[]),
    writer: {
      apply: async object => {
        // The API server refuses an object with anything else at its top.
        expect(Object.keys(object).sort()).toEqual(["apiVersion", "kind", "metadata", "spec"]);
        written.push(`apply ${object.kind} ${object.metadata?.name} ${object.metadata?.annotations?.[AUTOUPDATE]}`);
        return object;
      },
      replaceSpec: async (ref, _spec, annotations) =>
        void written.push(`replaceSpec ${ref.kind} ${ref.name} ${ref.uid} ${annotations[AUTOUPDATE]}`),
      patchMetadata: async (ref, patch) =>
        void written.push(`patchMetadata ${ref.kind} ${ref.name} ${patch.annotations?.[AUTOUPDATE]}`),
      delete: async ref => void written.push(`delete ${ref.kind} ${ref.name} ${ref.uid}`),
    },
    onAction: () => undefined,
  });
  expect(await reconciler.reconcile(DefaultObjects.key, signal)).toEqual({ requeueAfterMs: 60_000 });
  return written;
}

const marks = { [AUTOUPDATE]: "true", "flowcontrol.fairway.dev/defaults-revision": "1" };
const there = (kind: string) => (object: { readonly name: string; readonly spec: object }) => ({
  kind,
  metadata: { name: object.name, uid: `uid-${object.name}`, generation: 1, annotations: marks },
  spec: object.spec,
});
const ALL_LEVELS = [...SUGGESTED_PRIORITY_LEVELS, ...MANDATORY_PRIORITY_LEVELS].map(
  there("PriorityLevelConfiguration"),
);
const ALL_SCHEMAS = [...SUGGESTED_FLOW_SCHEMAS, ...MANDATORY_FLOW_SCHEMAS].map(there("FlowSchema"));

describe("the pass over mandatory and suggested objects", () => {
  it("makes all of them in an empty cluster, levels before schemas", async () => {
    const written = await pass([], []);
    expect(written).toHaveLength(ALL_LEVELS.length + ALL_SCHEMAS.length);
    expect(written.every(write => write.startsWith("apply ") && write.endsWith(" true"))).toBe(true);
    expect(written.findLastIndex(write => write.includes("PriorityLevel"))).toBe(ALL_LEVELS.length - 1);
  });

  it("writes nothing when all is as it should be", async () => {
    expect(await pass(ALL_LEVELS, ALL_SCHEMAS)).toEqual([]);
  });

  it("brings back a deleted one", async () => {
    const left = ALL_LEVELS.filter(level => level.metadata.name !== "workload-low");
    expect(await pass(left, ALL_SCHEMAS)).toEqual(["apply PriorityLevelConfiguration workload-low true"]);
  });

  it("replaces the whole spec of an edited mandatory one, whatever its annotation says", async () => {
    const edited = ALL_LEVELS.map(level =>
      level.metadata.name === "catch-all"
        ? {
            ...level,
            metadata: { ...level.metadata, annotations: { [AUTOUPDATE]: "false" } },
            spec: { type: "Exempt" },
          }
        : level,
    );
    expect(await pass(edited, ALL_SCHEMAS)).toEqual([
      "replaceSpec PriorityLevelConfiguration catch-all uid-catch-all true",
    ]);
  });

  it("leaves a suggested one to the user who edited it, and marks it (K8#107097)", async () => {
    const edit = (annotations: Record<string, string>) =>
      ALL_LEVELS.map(level =>
        level.metadata.name === "global-default"
          ? { ...level, metadata: { ...level.metadata, generation: 2, annotations }, spec: { type: "Exempt" } }
          : level,
      );
    expect(await pass(edit({ [AUTOUPDATE]: "false" }), ALL_SCHEMAS)).toEqual([]);
    expect(await pass(edit({}), ALL_SCHEMAS)).toEqual([
      "patchMetadata PriorityLevelConfiguration global-default false",
    ]);
  });

  it("removes what an older version suggested and the user did not take over", async () => {
    const old = there("FlowSchema")({ name: "old-one", spec: {} });
    const users = { ...old, metadata: { ...old.metadata, name: "users-one", annotations: {} } };
    expect(await pass(ALL_LEVELS, [...ALL_SCHEMAS, old, users])).toEqual(["delete FlowSchema old-one uid-old-one"]);
  });
});
