/**
 * Compares our code with an original, scenario by scenario, or rewrites the committed vectors.
 *
 *     node hack/oracles/run.ts NAME [--scenarios N] [--seed N] [--from N] [--jobs N] [--update]
 *
 * NAME is a directory here with an oracle.ts. The Go program is built (a minute or two when nothing is cached), each job
 * streams a slice of the scenarios from it and replays them. Ends with `N scenarios equal, M differ`, and 1 when M > 0.
 */
import { execFileSync, fork, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { brotliCompressSync, constants } from "node:zlib";
import type { Difference, Oracle } from "./oracle.ts";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = resolve(HERE, "../..");
/** Differences shown in full. */
const SHOWN = 10;

interface Slice {
  readonly from: number;
  readonly count: number;
}

interface Progress {
  readonly equal: number;
  readonly differences: readonly Difference[];
}

async function load(name: string): Promise<Oracle> {
  if (!/^[a-z]+$/.test(name)) throw new Error(`no oracle is called ${JSON.stringify(name)}`);
  return ((await import(`./${name}/oracle.ts`)) as { oracle: Oracle }).oracle;
}

function build(oracle: Oracle): string {
  const binary = join(ROOT, "node_modules/.cache/oracles", oracle.name);
  mkdirSync(dirname(binary), { recursive: true });
  console.log(`building hack/oracles/${oracle.module} ...`);
  execFileSync("nice", ["-n", "5", "go", "build", "-p", "2", "-o", binary, "."], {
    cwd: join(HERE, oracle.module),
    stdio: "inherit",
  });
  return binary;
}

/** Streams the lines of one slice from the original's program. */
async function* lines(binary: string, seed: number, slice: Slice): AsyncGenerator<string> {
  const program = spawn(binary, [`-seed=${seed}`, `-from=${slice.from}`, `-count=${slice.count}`], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let complaint = "";
  program.stderr.on("data", (chunk: Buffer) => (complaint += chunk.toString()));
  const closed = new Promise<number | null>((done, failed) => program.once("error", failed).once("close", done));
  for await (const line of createInterface({ input: program.stdout, crlfDelay: Infinity })) yield line;
  const code = await closed;
  if (code !== 0) throw new Error(`${binary} ended with ${code}: ${complaint.trim()}`);
}

async function update(oracle: Oracle, binary: string, seed: number): Promise<void> {
  const all: string[] = [];
  for await (const line of lines(binary, seed, { from: 0, count: oracle.vectors.scenarios })) all.push(line);
  const text = Buffer.from(`${all.join("\n")}\n`);
  const packed = brotliCompressSync(text, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
      [constants.BROTLI_PARAM_SIZE_HINT]: text.length,
    },
  });
  const file = join(ROOT, oracle.vectors.file);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, packed);
  console.log(`${all.length} scenarios, ${text.length} bytes, packed ${packed.length}: ${oracle.vectors.file}`);
}

/** One job, in its own process: replays its slice and reports now and then. */
async function job(name: string, binary: string, seed: number, slice: Slice): Promise<void> {
  const oracle = await load(name);
  let equal = 0;
  let differences: Difference[] = [];
  const report = (): void => {
    process.send!({ equal, differences } satisfies Progress);
    equal = 0;
    differences = [];
  };
  for await (const line of lines(binary, seed, slice)) {
    const difference = oracle.replay(line);
    if (difference === undefined) equal++;
    else differences.push(difference);
    if (equal + differences.length >= 250) report();
  }
  report();
  process.disconnect();
}

async function compare(oracle: Oracle, binary: string, seed: number, whole: Slice, jobs: number): Promise<boolean> {
  const begun = performance.now();
  let equal = 0;
  let shownAt = 0;
  const differences: Difference[] = [];
  const size = Math.ceil(whole.count / jobs);
  const running = Array.from({ length: jobs }, (_, i) => ({
    from: whole.from + i * size,
    count: Math.max(0, Math.min(size, whole.count - i * size)),
  })).map(
    slice =>
      new Promise<void>((done, failed) => {
        const child = fork(fileURLToPath(import.meta.url), [
          oracle.name,
          ...["--job", binary, "--seed", String(seed)],
          ...["--from", String(slice.from), "--scenarios", String(slice.count)],
        ]);
        child.on("message", (progress: Progress) => {
          equal += progress.equal;
          for (const one of progress.differences) {
            differences.push(one);
            if (differences.length <= SHOWN) {
              console.log(`scenario ${one.scenario} (${one.label}), ${one.where}: ${one.detail}`);
            }
          }
          const seconds = (performance.now() - begun) / 1000;
          if (seconds - shownAt >= 5) {
            shownAt = seconds;
            console.log(`${equal + differences.length} of ${whole.count} compared after ${seconds.toFixed(0)} s`);
          }
        });
        child.once("error", failed);
        child.once("exit", code => (code === 0 ? done() : failed(new Error(`a job ended with ${code}`))));
      }),
  );
  await Promise.all(running);
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  console.log(`${oracle.name}: ${equal} scenarios equal, ${differences.length} differ (seed ${seed}, ${seconds} s)`);
  return differences.length === 0 && equal === whole.count;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    scenarios: { type: "string" },
    seed: { type: "string", default: "1" },
    from: { type: "string", default: "0" },
    jobs: { type: "string", default: "2" },
    update: { type: "boolean", default: false },
    job: { type: "string" },
  },
});
const oracle = await load(positionals[0] ?? "");
const seed = Number(values.seed);
const slice = { from: Number(values.from), count: Number(values.scenarios ?? oracle.scenarios) };
if (values.job !== undefined) {
  await job(oracle.name, values.job, seed, slice);
} else if (values.update) {
  await update(oracle, build(oracle), seed);
} else {
  process.exitCode = (await compare(oracle, build(oracle), seed, slice, Number(values.jobs))) ? 0 : 1;
}
