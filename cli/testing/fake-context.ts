import type { CommandContext } from "../command-context.ts";
import { CliError } from "../cli-error.ts";
import type { ApiAnswer, ClusterApi, ConnectionOptions } from "../cluster/cluster-api.ts";
import { runCommandLine } from "../program.ts";
import { createTerminal } from "../terminal.ts";

export interface RunResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Paths that were asked of the cluster, with their queries. */
  readonly asked: readonly string[];
  readonly written: ReadonlyMap<string, string | Uint8Array>;
}

export interface FakeInput {
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** What the API server answers by path (and query, where that matters): an object is a 200, anything else a 404. */
  readonly cluster?: Readonly<Record<string, object>>;
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
  const asked: string[] = [];
  const env = input.env ?? {};
  const context: CommandContext = {
    terminal: createTerminal(stream("stdout"), stream("stderr"), env),
    env,
    connect: async options => fakeCluster(input.cluster ?? {}, options, asked),
    signal: input.signal ?? new AbortController().signal,
    nowMs: input.nowMs ?? (() => 0),
    pause: async () => undefined,
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
  return { exitCode, ...out, written, asked };
}

/** An answer that is not a 200. */
export class Refusal {
  readonly answer: ApiAnswer;
  constructor(status: number, body: unknown) {
    this.answer = { status, body };
  }
}

/** A refusal by the API server itself. */
export const apiRefusal = (status: number, message: string): Refusal =>
  new Refusal(status, { kind: "Status", message });

function fakeCluster(
  objects: Readonly<Record<string, object>>,
  { namespace = "default" }: ConnectionOptions,
  asked: string[],
): ClusterApi {
  return {
    namespace,
    async get(path, query = {}) {
      const search = new URLSearchParams({ ...query }).toString();
      const full = search === "" ? path : `${path}?${search}`;
      asked.push(full);
      const found = objects[full] ?? objects[path];
      if (found === undefined) return apiRefusal(404, `${path} not found`).answer;
      return found instanceof Refusal ? found.answer : { status: 200, body: structuredClone(found) };
    },
    close: async () => undefined,
  };
}
