import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { ClusterPaths } from "./paths.ts";
import { runCommand } from "./run-command.ts";

const END_TIMEOUT_MS = 30_000;
const COMMAND_TIMEOUT_MS = 30_000;
const POLL_INTERVAL_MS = 50;

/** A running box: the host's ids of its first process and of the launcher that waits for it. */
export interface RunningBox {
  readonly initPid: number;
  readonly launcherPid: number;
}

export class BoxStuckError extends Error {
  readonly code = "BOX_STUCK";
}

/** Starts `box launch`, detached from this process; with `parentPid` the box ends when that process does. */
export function launchBox(binaries: string, paths: ClusterPaths, parentPid: number | undefined): void {
  const log = openSync(paths.boxLog, "a");
  try {
    const args = ["launch", paths.plan, ...(parentPid === undefined ? [] : [String(parentPid)])];
    const launcher = spawn(join(binaries, "box"), args, { cwd: "/", detached: true, stdio: ["ignore", log, log] });
    launcher.unref();
  } finally {
    closeSync(log);
  }
}

/** The box of a cluster, if its first process is alive and really is that box's. */
export async function findBox(paths: ClusterPaths): Promise<RunningBox | undefined> {
  const initPid = await readPid(paths.boxPid);
  if (initPid === undefined) return undefined;
  const [commandLine, status] = await Promise.all([
    readOptional(`/proc/${initPid}/cmdline`),
    readOptional(`/proc/${initPid}/status`),
  ]);
  // A process that has ended and was not waited for yet has an empty command line.
  if (commandLine === undefined || !commandLine.split("\0").slice(1, 3).includes(paths.plan)) return undefined;
  const launcherPid = Number(/^PPid:\s+(\d+)$/m.exec(status ?? "")?.[1]);
  return Number.isInteger(launcherPid) ? { initPid, launcherPid } : undefined;
}

/**
 * Kills a box and waits until it is gone, and takes its link away: the kernel would do that too, but only once it has cleaned up
 * the network namespaces of all pods, which takes minutes on a busy machine.
 * @throws BoxStuckError
 */
export async function endBox(paths: ClusterPaths, box: RunningBox, hostLink: string): Promise<void> {
  process.kill(box.initPid, "SIGKILL");
  const deadlineMs = Date.now() + END_TIMEOUT_MS;
  while ((await findBox(paths)) !== undefined) {
    if (Date.now() > deadlineMs) {
      throw new BoxStuckError(`box process ${box.initPid} still there ${END_TIMEOUT_MS} ms after SIGKILL`);
    }
    await delay(POLL_INTERVAL_MS);
  }
  try {
    await runCommand("ip", ["link", "delete", hostLink], { timeoutMs: COMMAND_TIMEOUT_MS });
  } catch {
    // It went by itself a moment ago, or there is no such program: then the kernel is waited for.
    await awaitLinkGone(hostLink);
  }
}

/** The kernel takes a link away a moment after the last process of its network namespace. */
export async function awaitLinkGone(hostLink: string): Promise<void> {
  const deadlineMs = Date.now() + END_TIMEOUT_MS;
  while (linkExists(hostLink)) {
    if (Date.now() > deadlineMs) {
      throw new BoxStuckError(
        `link ${hostLink} exists and belongs to no known box; remove it: ip link del ${hostLink}`,
      );
    }
    await delay(POLL_INTERVAL_MS);
  }
}

export function linkExists(link: string): boolean {
  return existsSync(`/sys/class/net/${link}`);
}

async function readPid(path: string): Promise<number | undefined> {
  const pid = Number(await readOptional(path));
  return Number.isInteger(pid) && pid > 0 ? pid : undefined;
}

async function readOptional(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    // A process may end while its files are being read (ESRCH).
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ESRCH"))
      return undefined;
    throw error;
  }
}
