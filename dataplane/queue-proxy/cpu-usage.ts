import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { CpuReader } from "./pod-stats.ts";

/** Linux counts CPU time for /proc in hundredths of a second on every architecture. */
const TICKS_PER_SECOND = 100;
/** The pod's pause container. */
const PAUSE_PID = 1;

/**
 * Measures the CPU time of the pod's other processes: those of the user's containers. They are visible only when the pod
 * shares one process namespace; what a process uses between the last look and its end is not seen.
 */
export function createCpuReader(nowMs: number, proc = "/proc", ownPid = process.pid): CpuReader {
  let last = readTicks(proc, ownPid);
  let lastMs = nowMs;
  return atMs => {
    const ticks = readTicks(proc, ownPid);
    const elapsedSeconds = (atMs - lastMs) / 1000;
    let used = 0;
    for (const [process, count] of ticks) used += Math.max(0, count - (last.get(process) ?? 0));
    last = ticks;
    lastMs = atMs;
    return elapsedSeconds > 0 ? used / TICKS_PER_SECOND / elapsedSeconds : undefined;
  };
}

/** By process (its number and start time, as numbers are used again): ticks in user and system mode. */
function readTicks(proc: string, ownPid: number): Map<string, number> {
  const ticks = new Map<string, number>();
  for (const name of readdirSync(proc)) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === PAUSE_PID || pid === ownPid) continue;
    const stat = readStat(join(proc, name, "stat"));
    if (stat === undefined) continue;
    // The program's name is in brackets and may contain anything; the fields are counted from behind it.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [userTicks, systemTicks, startTime] = [fields[11], fields[12], fields[19]];
    ticks.set(`${pid}@${startTime ?? ""}`, Number(userTicks) + Number(systemTicks));
  }
  return ticks;
}

function readStat(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    // It ended since the directory was read.
    return undefined;
  }
}
