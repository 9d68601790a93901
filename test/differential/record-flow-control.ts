/**
 * Records what a Kubernetes API server says of generated flow-control specs of its own group, for the test beside this file:
 *
 *     KUBECONFIG=... node test/differential/record-flow-control.ts
 *
 * Only dry runs: nothing is stored. The present vectors were made by Kubernetes 1.37.2.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { flowControlCases } from "./flow-control-specs.ts";
import { KUBERNETES_GROUP, KubeVerdicts } from "./kube-verdict.ts";

const SEED = 20260101;
const COUNT = 400;

const kubeconfig = process.env["KUBECONFIG"];
if (kubeconfig === undefined) throw new Error("KUBECONFIG is not set");
const kubernetes = KubeVerdicts.fromFile(kubeconfig, KUBERNETES_GROUP);
const lines: string[] = [];
let accepted = 0;
for (const specCase of flowControlCases(SEED, COUNT)) {
  const verdict = await kubernetes.verdict(specCase);
  if (verdict.accepted) accepted++;
  lines.push(JSON.stringify({ ...specCase, verdict }));
}
await writeFile(join(import.meta.dirname, "testdata/flow-control-verdicts.jsonl"), `${lines.join("\n")}\n`);
console.log(`recorded ${lines.length} verdicts, ${accepted} accepted`);
