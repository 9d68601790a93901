import type { CommandContext } from "../command-context.ts";
import { CliError } from "../cli-error.ts";
import { runCommandLine } from "../program.ts";
import { createTerminal } from "../terminal.ts";

export interface RunResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly written: ReadonlyMap<string, string | Uint8Array>;
}

export interface FakeInput {
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly nowMs?: () => number;
}

/** Runs one command line with files in memory and no terminal. Never shipped. */
export async function runFairway(argv: readonly string[], input: FakeInput = {}): Promise<RunResult> {
  const out = { stdout: "", stderr: "" };
  const stream = (name: keyof typeof out) => ({
    write(text: string | Uint8Array) {
      out[name] += String(text);
      return true;
    },
  });
  const written = new Map<string, string | Uint8Array>();
  const env = input.env ?? {};
  const context: CommandContext = {
    terminal: createTerminal(stream("stdout"), stream("stderr"), env),
    env,
    signal: input.signal ?? new AbortController().signal,
    nowMs: input.nowMs ?? (() => 0),
    async readFile(path) {
      const text = input.files?.[path];
      if (text === undefined) throw new CliError("usage", `cannot read ${path}: no such file`);
      return text;
    },
    async writeFile(path, content) {
      written.set(path, content);
    },
  };
  const exitCode = await runCommandLine(argv, context);
  return { exitCode, ...out, written };
}
