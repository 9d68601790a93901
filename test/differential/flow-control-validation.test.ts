import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { jsonEqual } from "../../api/meta/json.ts";
import type { FlowControlCase } from "./flow-control-specs.ts";
import { ourVerdict, type Verdict } from "./flow-control-verdict.ts";

/** Kubernetes' Go types leave empty lists out, and false flags. */
const emptyIsAbsent = (a: unknown, b: unknown): true | undefined =>
  [a, b].every(value => value === undefined || value === false || (Array.isArray(value) && value.length === 0))
    ? true
    : undefined;

/** Recorded from Kubernetes' API server by record-flow-control.ts; test/e2e asks a running one anew. */
const recorded = readFileSync(join(import.meta.dirname, "testdata/flow-control-verdicts.jsonl"), "utf8")
  .trimEnd()
  .split("\n")
  .map(line => JSON.parse(line) as FlowControlCase & { verdict: Verdict });

describe.each(["PriorityLevelConfiguration", "FlowSchema"])("%s, compared with Kubernetes' own", kind => {
  const cases = recorded.filter(c => c.kind === kind);

  test("there are good and bad specs to compare", () => {
    expect(cases.filter(c => c.verdict.accepted).length).toBeGreaterThan(50);
    expect(cases.filter(c => !c.verdict.accepted).length).toBeGreaterThan(50);
  });

  test("the same specs are accepted", () => {
    const differing = cases.filter(c => ourVerdict(c).accepted !== c.verdict.accepted);
    expect(differing.map(c => ({ ours: ourVerdict(c), theirs: c.verdict, spec: c.spec }))).toEqual([]);
  });

  test("accepted specs have the same defaults", () => {
    const differing = cases.filter(
      c => c.verdict.accepted && !jsonEqual(ourVerdict(c).spec, c.verdict.spec, emptyIsAbsent),
    );
    expect(differing.map(c => ({ ours: ourVerdict(c).spec, theirs: c.verdict.spec }))).toEqual([]);
  });

  test("refusals by rules, as opposed to the schema, are about the same fields", () => {
    const fields = (verdict: Verdict) => [...new Set(verdict.fields)].sort();
    const differing = cases.filter(c => {
      const ours = ourVerdict(c);
      return !c.verdict.accepted && ours.bySchema !== true && !jsonEqual(fields(ours), fields(c.verdict));
    });
    expect(
      differing.map(c => ({ ours: fields(ourVerdict(c)), theirs: fields(c.verdict), spec: JSON.stringify(c.spec) })),
    ).toEqual([]);
  });
});
