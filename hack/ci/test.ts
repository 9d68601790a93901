import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";

/**
 * `npm test`: every check of the project, in one command. Checks count as one test each; vitest's own counts are added.
 * The last line is `N passed, N failed`. The e2e stage brings up its own cluster, which dies with this process.
 */

interface Tally {
  passed: number;
  failed: number;
}

const started = Date.now();
const scratch = await mkdtemp(join(tmpdir(), "fairway-test-"));
const total: Tally = { passed: 0, failed: 0 };
const failures: string[] = [];

function say(line: string): void {
  console.log(`[${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s] ${line}`);
}

/** Runs a command with its output passed on; resolves with the exit code. */
function run(command: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<number> {
  const [file, ...args] = command;
  if (file === undefined) throw new Error("no command");
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: ["ignore", "inherit", "inherit"], env: { ...process.env, ...env } });
    child.on("error", reject);
    child.on("exit", (code, signal) => resolve(signal === null ? (code ?? 1) : 1));
  });
}

async function check(name: string, command: readonly string[]): Promise<void> {
  say(`${name}: ${command.join(" ")}`);
  const ok = (await run(command)) === 0;
  total[ok ? "passed" : "failed"] += 1;
  if (!ok) failures.push(name);
  say(`${name}: ${ok ? "ok" : "FAILED"}`);
}

async function vitest(project: string): Promise<void> {
  say(`tests: ${project}`);
  const output = join(scratch, `${project}.json`);
  const code = await run([
    "vitest",
    "run",
    "--project",
    project,
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${output}`,
  ]);
  const report = JSON.parse(await readFile(output, "utf8").catch(() => "{}")) as {
    numPassedTests?: number;
    numFailedTests?: number;
  };
  total.passed += report.numPassedTests ?? 0;
  const failed = report.numFailedTests ?? 0;
  // A suite that could not start, or an unhandled error, fails the run without a failed test.
  total.failed += code !== 0 && failed === 0 ? 1 : failed;
  if (code !== 0) failures.push(`tests: ${project}`);
  say(`tests: ${project}: ${report.numPassedTests ?? 0} passed, ${failed} failed`);
}

try {
  await check("types", ["tsc", "--noEmit", "-p", "."]);
  await check("lint", ["eslint", "."]);
  await check("format", ["prettier", "--check", "--log-level=warn", "."]);
  await check("generated files are current", ["node", "hack/generate/main.ts", "--check"]);
  for (const module of ["hack/images/assemble", "test/images/sample"])
    await check(`go: ${module}`, ["go", "test", "-C", module, "-p=2", "./..."]);
  await vitest("unit");
  await vitest("e2e");
} finally {
  await rm(scratch, { recursive: true, force: true });
}
for (const name of failures) say(`failed: ${name}`);
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 ? 0 : 1;
