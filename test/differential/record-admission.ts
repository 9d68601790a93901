/**
 * Records what Knative's own admission (hack/oracles/admission, built with Go) says of generated Serving objects, for the
 * test beside this file:
 *
 *     node test/differential/record-admission.ts [--compare COUNT]
 *
 * With `--compare` nothing is written: COUNT further cases are judged by both sides and the differences shown.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { admissionCases, type AdmissionCase } from "./admission-cases.ts";
import { compareAdmission, type AdmissionVerdict } from "./admission-verdict.ts";

const SEED = 20260303;
const COUNT = 600;

const root = join(import.meta.dirname, "../..");
const { compare } = parseArgs({ options: { compare: { type: "string" } } }).values;

function judgeAll(cases: readonly AdmissionCase[]): AdmissionVerdict[] {
  const binary = join(root, "node_modules/.cache/oracles/admission");
  mkdirSync(join(binary, ".."), { recursive: true });
  execFileSync("nice", ["-n", "5", "go", "build", "-p", "2", "-o", binary, "."], {
    cwd: join(root, "hack/oracles/admission"),
    stdio: "inherit",
  });
  const input = cases.map(c => JSON.stringify(c)).join("\n");
  const output = execFileSync(binary, { input, maxBuffer: 1 << 30, encoding: "utf8" });
  return output
    .trimEnd()
    .split("\n")
    .map(line => JSON.parse(line) as AdmissionVerdict);
}

if (compare === undefined) {
  const cases = admissionCases(SEED, COUNT);
  const verdicts = judgeAll(cases);
  const lines = cases.map((c, i) => JSON.stringify({ ...c, verdict: verdicts[i] }));
  await writeFile(join(import.meta.dirname, "testdata/admission-verdicts.jsonl"), `${lines.join("\n")}\n`);
  console.log(`recorded ${lines.length} verdicts, ${verdicts.filter(v => v.error === "").length} accepted`);
} else {
  const cases = admissionCases(SEED + 1, Number(compare));
  const verdicts = judgeAll(cases);
  const differences = cases.flatMap((c, i) =>
    compareAdmission(c, verdicts[i]!).map(difference => ({ case: c, difference })),
  );
  for (const { case: c, difference } of differences.slice(0, 10)) console.log(`${difference}\n${JSON.stringify(c)}\n`);
  console.log(`${cases.length} objects compared, ${differences.length} differences`);
  if (differences.length > 0) process.exitCode = 1;
}
