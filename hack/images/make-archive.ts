import { existsSync } from "node:fs";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { runCommand } from "../cluster/run-command.ts";
import { imageFingerprint, sha256OfDirectory } from "./fingerprint.ts";
import type { ImageDescription } from "./image.ts";

const SOURCE = join(import.meta.dirname, "assemble");
const GO_TIMEOUT_MS = 10 * 60_000;
const ASSEMBLE_TIMEOUT_MS = 2 * 60_000;

export interface Archive {
  readonly path: string;
  /** False when an equal one was there already. */
  readonly made: boolean;
}

/** Builds the assembling program once per state of its source. */
async function assembleProgram(cache: string): Promise<{ readonly path: string; readonly source: string }> {
  const source = await sha256OfDirectory(SOURCE);
  const path = join(cache, `assemble-${source.slice(0, 16)}`);
  if (!existsSync(path)) {
    await mkdir(cache, { recursive: true });
    await goBuild(SOURCE, path, {});
  }
  return { path, source };
}

/** Compiles a Go package into one static file; `output` is complete or absent. */
export async function goBuild(directory: string, output: string, env: NodeJS.ProcessEnv): Promise<void> {
  const partial = `${output}.partial-${process.pid}`;
  const args = ["build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-p=2", "-o", partial, "."];
  await runCommand("go", args, {
    cwd: directory,
    env: { ...process.env, CGO_ENABLED: "0", GOWORK: "off", ...env },
    timeoutMs: GO_TIMEOUT_MS,
  });
  await rename(partial, output);
}

/** Writes `<directory>/<name>.tar` unless the one there was made from equal inputs. */
export async function makeArchive(
  name: string,
  image: ImageDescription,
  directory: string,
  cache: string,
): Promise<Archive> {
  const program = await assembleProgram(cache);
  const path = join(directory, `${name}.tar`);
  const stamp = join(directory, `${name}.fingerprint`);
  const fingerprint = await imageFingerprint(image, program.source);
  if (existsSync(path) && existsSync(stamp) && (await readFile(stamp, "utf8")) === fingerprint) {
    return { path, made: false };
  }
  await mkdir(directory, { recursive: true });
  await runCommand(program.path, ["-o", path], {
    input: Readable.from(JSON.stringify(image)),
    timeoutMs: ASSEMBLE_TIMEOUT_MS,
  });
  await writeFile(stamp, fingerprint);
  return { path, made: true };
}
