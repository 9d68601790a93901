/**
 * What Cloud Run's policy measures of a revision: concurrency over 1 and 10 minutes, CPU over 1 minute, each instance's use over
 * its last minute, and how fast places free up. Mutable, owned by one collector.
 */
import { LinearWindow } from "./bucket-window.ts";
import type { CloudRunLoad } from "./cloud-run-drivers.ts";

const MINUTE_MS = 60_000;
const TEN_MINUTES_MS = 600_000;
/** Window of the rate at which places free up. */
const FREED_WINDOW_MS = 10_000;

/** One instance's numbers; concurrency in requests, CPU in CPUs. */
export interface InstanceLoad {
  readonly name: string;
  readonly concurrency1m: number;
  readonly cpu1m: number | undefined;
  /** Over the last second. */
  readonly concurrency: number;
  readonly cpu: number | undefined;
  /** When a request was last in progress, as far as was seen: at the earliest when the instance was first heard. */
  readonly lastBusyMs: number;
}

interface InstanceMeter {
  readonly concurrency: LinearWindow;
  cpu: LinearWindow | undefined;
  lastConcurrency: number;
  lastCpu: number | undefined;
  lastBusyMs: number;
  heardMs: number;
}

export class InstanceWindows {
  readonly #concurrency1m = new LinearWindow(MINUTE_MS);
  readonly #concurrency10m = new LinearWindow(TEN_MINUTES_MS);
  readonly #cpu1m = new LinearWindow(MINUTE_MS);
  readonly #freed = new LinearWindow(FREED_WINDOW_MS);
  readonly #instances = new Map<string, InstanceMeter>();
  #cpuMeasured = false;

  /** The revision's concurrency; sources sum up per second. */
  record(nowMs: number, concurrency: number): void {
    this.#concurrency1m.record(nowMs, concurrency);
    this.#concurrency10m.record(nowMs, concurrency);
  }

  /** CPU of all instances of the revision over the second, in CPUs. */
  recordCpu(nowMs: number, cpus: number): void {
    this.#cpuMeasured = true;
    this.#cpu1m.record(nowMs, cpus);
  }

  /** Requests that ended at one gateway over the second. */
  recordFreed(nowMs: number, places: number): void {
    this.#freed.record(nowMs, places);
  }

  /** @param cpuOfSecond the same where `cpu` was measured over this second alone, else undefined */
  recordInstance(
    name: string,
    nowMs: number,
    concurrency: number,
    cpu: number | undefined,
    cpuOfSecond: number | undefined,
  ): void {
    let meter = this.#instances.get(name);
    if (meter === undefined) {
      meter = {
        concurrency: new LinearWindow(MINUTE_MS),
        cpu: undefined,
        lastConcurrency: 0,
        lastCpu: undefined,
        lastBusyMs: nowMs,
        heardMs: nowMs,
      };
      this.#instances.set(name, meter);
    }
    meter.concurrency.record(nowMs, concurrency);
    if (cpu !== undefined) {
      meter.cpu ??= new LinearWindow(MINUTE_MS);
      meter.cpu.record(nowMs, cpu);
    }
    meter.lastConcurrency = concurrency;
    meter.lastCpu = cpuOfSecond;
    meter.heardMs = nowMs;
    if (concurrency > 0) meter.lastBusyMs = nowMs;
  }

  /** Forgets instances not heard for a minute. */
  prune(nowMs: number): void {
    for (const [name, meter] of this.#instances) if (nowMs - meter.heardMs > MINUTE_MS) this.#instances.delete(name);
  }

  isEmpty(nowMs: number): boolean {
    return this.#concurrency10m.isEmpty(nowMs);
  }

  /** Undefined when nothing was recorded for a minute: no data, not zero. */
  load(nowMs: number): CloudRunLoad | undefined {
    if (this.#concurrency1m.isEmpty(nowMs)) return undefined;
    return {
      concurrency1m: this.#concurrency1m.average(nowMs),
      concurrency10m: this.#concurrency10m.average(nowMs),
      cpu1m: this.#cpuMeasured && !this.#cpu1m.isEmpty(nowMs) ? this.#cpu1m.average(nowMs) : undefined,
    };
  }

  freedPerSecond(nowMs: number): number {
    return this.#freed.average(nowMs);
  }

  instances(nowMs: number): InstanceLoad[] {
    return [...this.#instances].map(([name, meter]) => ({
      name,
      concurrency1m: meter.concurrency.average(nowMs),
      cpu1m: meter.cpu?.average(nowMs),
      concurrency: meter.lastConcurrency,
      cpu: meter.lastCpu,
      lastBusyMs: meter.lastBusyMs,
    }));
  }
}
