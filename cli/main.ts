#!/usr/bin/env node
import { readFile, writeFile } from "node:fs/promises";
import process from "node:process";
import { setTimeout as after } from "node:timers/promises";
import { text } from "node:stream/consumers";
import { CliError, reasonOf } from "./cli-error.ts";
import { connectCluster } from "./cluster/cluster-api.ts";
import type { CommandContext } from "./command-context.ts";
import { runCommandLine } from "./program.ts";
import { createTerminal } from "./terminal.ts";

// A library below the Kubernetes client uses a module of Node that is on its way out; users can do nothing about it.
process.noDeprecation = true;

const interrupted = new AbortController();
process.once("SIGINT", () => interrupted.abort());
process.once("SIGTERM", () => interrupted.abort());
// `fairway ... | head` is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
});

const context: CommandContext = {
  terminal: createTerminal(process.stdout, process.stderr, process.env),
  env: process.env,
  connect: connectCluster,
  signal: interrupted.signal,
  nowMs: Date.now,
  async pause(ms) {
    await after(ms, undefined, { signal: interrupted.signal }).catch((error: unknown) => {
      if (!interrupted.signal.aborted) throw error;
    });
  },
  async readFile(path) {
    try {
      return path === "-" ? await text(process.stdin) : await readFile(path, "utf8");
    } catch (error) {
      throw new CliError("usage", `cannot read ${path}: ${reasonOf(error)}`, { cause: error });
    }
  },
  async writeFile(path, content) {
    try {
      await writeFile(path, content);
    } catch (error) {
      throw new CliError("failed", `cannot write ${path}: ${reasonOf(error)}`, { cause: error });
    }
  },
};

process.exitCode = await runCommandLine(process.argv.slice(2), context);
