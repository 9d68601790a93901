import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { PREPARED_CLUSTER, startTestCluster, type TestCluster } from "../../test/e2e/cluster.ts";
import { downCluster } from "../cluster/cluster.ts";
import type { TestReport } from "./reporter.ts";

/**
 * `npm test`: every check of the project, in one command. Checks count as one test each; vitest's own counts are added.
 * The last line is `N passed, N failed`. The cluster of the end-to-end tests comes up beside the static checks, and dies with
 * this process.
 */

const started = Date.now();
const scratch = await mkdtemp(join(tmpdir(), "fairway-test-"));
const total = { passed: 0, failed: 0 };
const failures: string[] = [];
const retried: string[] = [];

function say(line: string): void {
  console.log(`[${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s] ${line}`);
}

interface Finished {
  readonly code: number;
  /** Empty where it was passed on at once. */
  readonly output: string;
}

const NOT_STARTED = 127;

/** Runs a command; its output is passed on at once, or kept for the end where several run at a time. */
function run(
  command: readonly string[],
  { env = {}, keepOutput = false }: { env?: Readonly<Record<string, string>>; keepOutput?: boolean } = {},
): Promise<Finished> {
  const [file, ...args] = command;
  if (file === undefined) throw new Error("no command");
  return new Promise(resolve => {
    const output = keepOutput ? "pipe" : "inherit";
    const child = spawn(file, args, { stdio: ["ignore", output, output], env: { ...process.env, ...env } });
    const pieces: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece: Buffer) => pieces.push(piece));
    child.on("error", error => resolve({ code: NOT_STARTED, output: `${error.message}\n` }));
    child.on("close", (code, signal) =>
      resolve({ code: signal === null ? (code ?? 1) : 1, output: Buffer.concat(pieces).toString("utf8") }),
    );
  });
}

interface Check {
  readonly name: string;
  readonly command: readonly string[];
}

/** One check after the other. */
async function checkAll(checks: readonly Check[]): Promise<void> {
  for (const { name, command } of checks) {
    say(`${name}: ${command.join(" ")}`);
    const { code, output } = await run(command, { keepOutput: true });
    if (output !== "") process.stdout.write(output);
    total[code === 0 ? "passed" : "failed"] += 1;
    if (code !== 0) failures.push(name);
    say(`${name}: ${code === 0 ? "ok" : "FAILED"}`);
  }
}

async function vitest(projects: string, env: Readonly<Record<string, string>> = {}): Promise<void> {
  say(`tests: ${projects}`);
  const file = join(scratch, "report.json");
  await rm(file, { force: true });
  const reporters = ["--reporter=default", "--reporter=./hack/ci/reporter.ts"];
  const command = ["vitest", "run", "--project", projects, ...reporters];
  const { code } = await run(command, { env: { ...env, FAIRWAY_TEST_REPORT: file } });
  const nothing: TestReport = { passed: 0, failed: 0, retried: [], files: [] };
  const text = await readFile(file, "utf8").catch(() => JSON.stringify(nothing));
  const report = JSON.parse(text) as TestReport;
  total.passed += report.passed;
  // A suite that could not start, or an unhandled error, fails the run without a failed test.
  total.failed += code !== 0 && report.failed === 0 ? 1 : report.failed;
  if (code !== 0) failures.push(`tests: ${projects}`);
  retried.push(...report.retried);
  const longest = report.files.slice(0, 5).map(({ name, seconds }) => `${name} ${seconds.toFixed(0)} s`);
  say(`tests: ${projects}: ${report.passed} passed, ${report.failed} failed; longest: ${longest.join(", ")}`);
}

const kept = process.env["FAIRWAY_E2E_CLUSTER"];
const clusterName = kept ?? "fairway-e2e";

async function startCluster(): Promise<TestCluster | undefined> {
  const progress = (line: string): void => say(`cluster: ${line}`);
  try {
    return await startTestCluster({ name: clusterName, dieWithParent: kept === undefined, progress });
  } catch (error) {
    say(`cluster: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    total.failed += 1;
    failures.push("cluster of the end-to-end tests");
    return undefined;
  }
}

try {
  // None of these uses more than one core for long.
  const [cluster] = await Promise.all([
    startCluster(),
    checkAll([{ name: "lint", command: ["eslint", "."] }]),
    checkAll([
      { name: "types", command: ["tsc", "--noEmit", "-p", "."] },
      { name: "format", command: ["prettier", "--check", "--log-level=warn", "."] },
      { name: "generated files are current", command: ["node", "hack/generate/main.ts", "--check"] },
      ...["hack/images/assemble", "test/images/sample"].map(module => ({
        name: `go: ${module}`,
        command: ["go", "test", "-C", module, "-p=2", "./..."],
      })),
    ]),
  ]);
  await vitest("unit");
  if (cluster !== undefined) await vitest("e2e*", { [PREPARED_CLUSTER]: JSON.stringify(cluster) });
} finally {
  if (kept === undefined) await downCluster(clusterName).catch((error: unknown) => say(`cluster: ${String(error)}`));
  await rm(scratch, { recursive: true, force: true });
}
for (const name of failures) say(`failed: ${name}`);
for (const name of retried) say(`passed at the second try only: ${name}`);
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 ? 0 : 1;
