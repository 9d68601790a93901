import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { AdmissionCase } from "./admission-cases.ts";
import { compareAdmission, type AdmissionVerdict } from "./admission-verdict.ts";

/** Recorded from knative.dev/serving v0.51.0 by record-admission.ts. */
const recorded = readFileSync(join(import.meta.dirname, "testdata/admission-verdicts.jsonl"), "utf8")
  .trimEnd()
  .split("\n")
  .map(line => JSON.parse(line) as AdmissionCase & { verdict: AdmissionVerdict });

test("there are good and bad objects to compare", () => {
  const accepted = recorded.filter(c => c.verdict.error === "").length;
  expect(accepted).toBeGreaterThan(100);
  expect(accepted).toBeLessThan(recorded.length - 100);
});

test.each(["Service", "Configuration", "Revision", "Route"])(
  "a %s is refused with Knative's words, or accepted with Knative's defaults",
  kind => {
    const cases = recorded.filter(c => c.kind === kind);
    expect(cases.length).toBeGreaterThan(20);
    expect(cases.flatMap(c => compareAdmission(c, c.verdict))).toEqual([]);
  },
);
