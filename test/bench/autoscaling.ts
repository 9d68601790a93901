/**
 * Costs of autoscaling against their targets. `npm run bench:autoscaling` (about three minutes; needs Go).
 *
 * 1. One decision, beside the original's (knative.dev/serving) in the same run: not slower.
 * 2. 10,000 revisions, 500 of them active with two pods each: the 2 s tick is held with under 25 % of a core and 400 MB.
 *
 * Rounds alternate and the best of each counts, so that other work on the machine disturbs both alike.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import Table from "cli-table3";
import { parseAllDocuments } from "yaml";
import type { DecisionCost } from "./autoscaling-decision.ts";
import { measureDecisions } from "./autoscaling-decision.ts";
import { ACTIVE, PODS_PER_REVISION, REVISIONS } from "./autoscaling-load-size.ts";
import type { LoadMode, LoadResult } from "./autoscaling-load-size.ts";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const ROUNDS = 3;
const TARGETS = { cpuShare: 0.25, rssMegabytes: 400, heldTick: 0.95 };

function buildOriginal(): string {
  const binary = join(ROOT, "node_modules/.cache/oracles/kpa");
  mkdirSync(dirname(binary), { recursive: true });
  execFileSync("nice", ["-n", "5", "go", "build", "-p", "2", "-o", binary, "."], {
    cwd: join(ROOT, "hack/oracles/kpa"),
    stdio: "inherit",
  });
  return binary;
}

function best(rounds: readonly DecisionCost[][]): DecisionCost[] {
  return rounds[0]!.map(({ name }, i) => ({
    name,
    tickNs: Math.min(...rounds.map(round => round[i]!.tickNs)),
    decisionNs: Math.min(...rounds.map(round => round[i]!.decisionNs)),
  }));
}

function compareDecisions(): boolean {
  const binary = buildOriginal();
  const ours: DecisionCost[][] = [];
  const theirs: DecisionCost[][] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    console.log(`decisions, round ${round} of ${ROUNDS} ...`);
    theirs.push(JSON.parse(execFileSync(binary, ["-bench"]).toString()) as DecisionCost[]);
    ours.push(measureDecisions());
  }
  const table = new Table({ head: ["case", "work", "Knative, ns", "Fairway, ns", "ratio"] });
  let notSlower = true;
  const original = best(theirs);
  for (const [i, mine] of best(ours).entries()) {
    const other = original[i]!;
    if (mine.name !== other.name) throw new Error(`cases differ: ${mine.name}, ${other.name}`);
    for (const work of ["decisionNs", "tickNs"] as const) {
      const ratio = mine[work] / other[work];
      notSlower &&= ratio <= 1;
      const what = work === "decisionNs" ? "decision" : "2 s of load + decision";
      table.push([mine.name, what, other[work].toFixed(0), mine[work].toFixed(0), ratio.toFixed(2)]);
    }
  }
  console.log(table.toString());
  return notSlower;
}

interface DeploymentManifest {
  readonly kind?: string;
  readonly spec?: {
    readonly template: {
      readonly spec: { readonly containers: readonly { readonly env: readonly { name: string; value?: string }[] }[] };
    };
  };
}

/** How the operator's node is started in a cluster. */
function operatorNodeOptions(): string {
  const text = readFileSync(join(ROOT, "manifests/base/operator.yaml"), "utf8");
  const documents = parseAllDocuments(text).map(document => document.toJS() as DeploymentManifest);
  const env = documents.find(one => one.kind === "Deployment")?.spec?.template.spec.containers[0]?.env;
  const options = env?.find(one => one.name === "NODE_OPTIONS")?.value;
  if (options === undefined) throw new Error("manifests/base/operator.yaml sets no NODE_OPTIONS");
  return options;
}

function runLoad(mode: LoadMode, nodeOptions: string): LoadResult {
  console.log(`${REVISIONS} revisions, ${ACTIVE} active with ${PODS_PER_REVISION} pods each: ${mode} ...`);
  const output = execFileSync(process.execPath, [join(ROOT, "test/bench/autoscaling-load.ts"), "operator", mode], {
    env: { ...process.env, NODE_OPTIONS: nodeOptions },
  });
  return JSON.parse(output.toString()) as LoadResult;
}

function compareLoad(): boolean {
  const table = new Table({
    head: ["parts", "CPU of a core", "RSS, MB", "decisions a tick", "slowest tick, ms", "scrapes/s", "failed"],
  });
  const nodeOptions = operatorNodeOptions();
  const results = [runLoad("loop", nodeOptions), runLoad("whole", nodeOptions)];
  for (const result of results) {
    table.push([
      result.mode === "loop" ? "collect and decide" : "the same with HTTP reports and scrapes",
      `${(result.cpuShare * 100).toFixed(1)} %`,
      result.rssMegabytes.toFixed(0),
      result.decisionsPerTick.toFixed(0),
      result.slowestTickMs.toFixed(0),
      result.scrapesPerSecond.toFixed(0),
      result.failedScrapes,
    ]);
  }
  console.log(table.toString());
  return results.every(
    result =>
      result.cpuShare < TARGETS.cpuShare &&
      result.rssMegabytes < TARGETS.rssMegabytes &&
      result.decisionsPerTick >= TARGETS.heldTick * ACTIVE,
  );
}

const [load = 0] = loadavg();
if (load > availableParallelism()) {
  console.log(`the machine is busy (load ${load.toFixed(1)} on ${availableParallelism()} cores): ticks may come late`);
}
const notSlower = compareDecisions();
const held = compareLoad();
console.log(`one decision not slower than the original's: ${notSlower ? "yes" : "NO"}`);
console.log(`the 2 s tick held under 25 % of a core and 400 MB: ${held ? "yes" : "NO"}`);
process.exitCode = notSlower && held ? 0 : 1;
