import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createCpuReader } from "./cpu-usage.ts";

describe("createCpuReader", () => {
  let proc: string;
  beforeEach(async () => {
    proc = await mkdtemp(join(tmpdir(), "proc-"));
  });
  afterEach(async () => {
    await rm(proc, { recursive: true });
  });

  /** The fields of proc(5): number, name, state, 10 more, user and system ticks, 6 more, start time. */
  async function put(pid: number, user: number, system: number, startTime = 5): Promise<void> {
    await mkdir(join(proc, String(pid)), { recursive: true });
    const before = "0 ".repeat(10);
    const between = "0 ".repeat(6);
    const stat = `${pid} (a ) S (b) S ${before}${user} ${system} ${between}${startTime} 0\n`;
    await writeFile(join(proc, String(pid), "stat"), stat);
  }

  it("adds up the ticks of the user's processes alone", async () => {
    await put(1, 1000, 0);
    await put(7, 500, 500);
    await put(20, 100, 50);
    const read = createCpuReader(0, proc, 7);
    await put(1, 9000, 0);
    await put(7, 9000, 0);
    await put(20, 150, 60);
    await put(21, 30, 10);
    expect(read(1000)).toBeCloseTo(1);
    await put(20, 200, 60);
    expect(read(1500)).toBeCloseTo(1);
  });

  it("takes a number that is used again for a new process", async () => {
    await put(20, 800, 0, 5);
    const read = createCpuReader(0, proc, 7);
    await put(20, 25, 0, 900);
    expect(read(1000)).toBeCloseTo(0.25);
  });

  it("measures this machine's processes", () => {
    const read = createCpuReader(0);
    expect(read(1000)).toBeGreaterThanOrEqual(0);
    expect(read(1000)).toBeUndefined();
  });
});
