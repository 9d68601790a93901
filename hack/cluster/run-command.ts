import { spawn } from "node:child_process";

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: NodeJS.ReadableStream;
  readonly timeoutMs: number;
}

export class CommandFailedError extends Error {
  readonly code = "COMMAND_FAILED";
}

/**
 * Runs a program to its end and gives its standard output.
 * @throws CommandFailedError with the end of its standard error, when it fails, is missing, or outlives `timeoutMs`
 */
export async function runCommand(file: string, args: readonly string[], options: CommandOptions): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const child = spawn(file, args, {
    stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    timeout: options.timeoutMs,
    killSignal: "SIGKILL",
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.env === undefined ? {} : { env: options.env }),
  });
  const output: Buffer[] = [];
  const errors: Buffer[] = [];
  child.stdout?.on("data", (chunk: Buffer) => output.push(chunk));
  child.stderr?.on("data", (chunk: Buffer) => errors.push(chunk));
  child.on("error", error => reject(new CommandFailedError(`${file}: ${error.message}`)));
  child.on("close", (exitCode, signal) => {
    if (exitCode === 0) {
      resolve(Buffer.concat(output).toString("utf8"));
      return;
    }
    const how =
      exitCode === null ? `ended by ${signal ?? "a signal"} (limit ${options.timeoutMs} ms)` : `exit code ${exitCode}`;
    const said = Buffer.concat(errors).toString("utf8").trim().split("\n").slice(-20).join("\n");
    reject(new CommandFailedError(`${[file, ...args].join(" ")}: ${how}\n${said}`));
  });
  if (options.input !== undefined && child.stdin !== null) {
    // A program that ends early closes its input; its exit code says why.
    child.stdin.on("error", () => undefined);
    options.input.pipe(child.stdin);
  }
  return promise;
}
