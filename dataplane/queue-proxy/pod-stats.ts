import type { PodStat } from "../../api/wire/stats.ts";
import type { Clock, Timer } from "../shared/clock.ts";
import { ConcurrencyMeter } from "../shared/concurrency-meter.ts";

/** Reads CPU seconds per second used since it was last called; undefined where that cannot be known. */
export type CpuReader = (nowMs: number) => number | undefined;

const PERIOD_MS = 1000;

/**
 * What this pod did in the last whole second. Requests are told apart by whether a gateway has counted them already.
 * Concurrency is weighted by time, so that nothing depends on when somebody looks.
 */
export class PodStats {
  readonly #clock: Clock;
  readonly #podName: string;
  readonly #readCpu: CpuReader;
  readonly #startedMs: number;
  readonly #all: ConcurrencyMeter;
  readonly #proxied: ConcurrencyMeter;
  #timer: Timer | undefined;
  #last: PodStat;

  constructor(podName: string, clock: Clock, readCpu: CpuReader = () => undefined) {
    this.#clock = clock;
    this.#podName = podName;
    this.#readCpu = readCpu;
    this.#startedMs = clock.nowMs();
    this.#all = new ConcurrencyMeter(this.#startedMs);
    this.#proxied = new ConcurrencyMeter(this.#startedMs);
    this.#last = this.#read();
  }

  /** Begins to report each second. */
  start(): void {
    this.#timer = this.#clock.after(PERIOD_MS, () => {
      this.#last = this.#read();
      this.start();
    });
  }

  stop(): void {
    if (this.#timer !== undefined) this.#clock.cancel(this.#timer);
  }

  /** Once for each request, when it comes; `leave` with the same value follows. */
  enter(proxied: boolean): void {
    const nowMs = this.#clock.nowMs();
    this.#all.enter(nowMs);
    if (proxied) this.#proxied.enter(nowMs);
  }

  leave(proxied: boolean): void {
    const nowMs = this.#clock.nowMs();
    this.#all.leave(nowMs);
    if (proxied) this.#proxied.leave(nowMs);
  }

  /** Requests here now. */
  get current(): number {
    return this.#all.current;
  }

  /** The last whole second; before the first has passed, a second without requests. */
  get last(): PodStat {
    return this.#last;
  }

  #read(): PodStat {
    const nowMs = this.#clock.nowMs();
    const all = this.#all.take(nowMs);
    const proxied = this.#proxied.take(nowMs);
    const cpuUsage = this.#readCpu(nowMs);
    return {
      podName: this.#podName,
      timestampMs: Math.round(this.#clock.wallMs()),
      uptimeMs: nowMs - this.#startedMs,
      averageConcurrentRequests: all.averageConcurrentRequests,
      averageProxiedConcurrentRequests: proxied.averageConcurrentRequests,
      requestCount: all.requestCount,
      proxiedRequestCount: proxied.requestCount,
      ...(cpuUsage === undefined ? {} : { cpuUsage }),
    };
  }
}
