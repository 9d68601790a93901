/**
 * One pod: requests share its CPU. While the CPU has room each runs for its service time; when it is saturated, all slow down
 * alike (processor sharing). Kept as a virtual time that advances at the present speed, so a change of speed costs O(1) and
 * the next end is the smallest virtual end.
 *
 * Worked numbers: 1 CPU, requests that keep 0.5 CPU busy for 100 ms: two at once end after 100 ms; four at once run at speed
 * 1 / (4 x 0.5) = 0.5 and end after 200 ms.
 */
import type { HeapItem } from "../flowcontrol/indexed-heap.ts";
import { IndexedHeap } from "../flowcontrol/indexed-heap.ts";
import { TimeIntegral } from "./time-integral.ts";

/** `starting` -> `ready` -> `draining` -> `gone`; a pod that is stopped while it starts is gone at once. */
export type SimulatedPodState = "starting" | "ready" | "draining" | "gone";

/** What requests do to the CPU of a pod. */
export interface CpuModel {
  /** CPU limit of a pod. */
  readonly cpus: number;
  /** CPUs that one running request keeps busy while the pod is not saturated, 0..1 for a single-threaded handler. */
  readonly perRequest: number;
}

class Running<R> implements HeapItem {
  heapIndex = -1;
  readonly request: R;
  readonly endsVirtualMs: number;
  readonly order: number;

  constructor(request: R, endsVirtualMs: number, order: number) {
    this.request = request;
    this.endsVirtualMs = endsVirtualMs;
    this.order = order;
  }
}

/** Less than this apart, two virtual times are the same. */
const EPSILON_MS = 1e-6;

/** What a pod's queue-proxy tells about its last second. */
export interface PodSecond {
  readonly concurrency: number;
  readonly requests: number;
  /** CPUs used; undefined without a CPU model. */
  readonly cpuUsage: number | undefined;
}

export class SimulatedPod<R> {
  readonly name: string;
  readonly createdMs: number;
  readonly #cpu: CpuModel | undefined;
  readonly #running = new IndexedHeap<Running<R>>(
    (a, b) => a.endsVirtualMs < b.endsVirtualMs || (a.endsVirtualMs === b.endsVirtualMs && a.order < b.order),
  );
  readonly #concurrency: TimeIntegral;
  readonly #cpuUse: TimeIntegral;
  #virtualMs = 0;
  #settledMs: number;
  #requests = 0;
  #begun = 0;
  state: SimulatedPodState = "starting";
  readyMs = Number.NaN;
  /** When it began to drain. */
  stoppedMs = Number.NaN;
  /** Most requests at a time. */
  limit: number;
  /** Gets requests only when all others are busy. */
  demoted = false;
  /** When it last had a request. */
  lastBusyMs: number;

  constructor(name: string, createdMs: number, limit: number, cpu: CpuModel | undefined) {
    this.name = name;
    this.createdMs = createdMs;
    this.lastBusyMs = createdMs;
    this.limit = limit;
    this.#cpu = cpu;
    this.#settledMs = createdMs;
    this.#concurrency = new TimeIntegral(createdMs);
    this.#cpuUse = new TimeIntegral(createdMs);
  }

  get inFlight(): number {
    return this.#running.size;
  }

  hasRoom(): boolean {
    return this.inFlight < this.limit;
  }

  begin(request: R, serviceMs: number, nowMs: number): void {
    this.#settle(nowMs);
    this.#requests++;
    this.#running.push(new Running(request, this.#virtualMs + serviceMs, this.#begun++));
    this.#note(nowMs);
  }

  /** When the next request ends, if none comes before; undefined while it is idle. */
  nextEndMs(): number | undefined {
    const next = this.#running.peek();
    if (next === undefined) return undefined;
    return this.#settledMs + Math.max(0, next.endsVirtualMs - this.#virtualMs) / this.#speed();
  }

  /** Takes out the requests that have ended by now, in order of their end. */
  ended(nowMs: number): R[] {
    this.#settle(nowMs);
    const ended: R[] = [];
    for (let next = this.#running.peek(); next !== undefined; next = this.#running.peek()) {
      if (next.endsVirtualMs > this.#virtualMs + EPSILON_MS) break;
      this.#running.remove(next);
      ended.push(next.request);
    }
    this.#note(nowMs);
    return ended;
  }

  /** Its numbers since the last call. */
  takeSecond(nowMs: number): PodSecond {
    const requests = this.#requests;
    this.#requests = 0;
    const cpuUsage = this.#cpuUse.takeAverage(nowMs);
    return {
      concurrency: this.#concurrency.takeAverage(nowMs),
      requests,
      cpuUsage: this.#cpu === undefined ? undefined : cpuUsage,
    };
  }

  /** Virtual milliseconds per millisecond. */
  #speed(): number {
    if (this.#cpu === undefined) return 1;
    const wanted = this.inFlight * this.#cpu.perRequest;
    return wanted > this.#cpu.cpus ? this.#cpu.cpus / wanted : 1;
  }

  #settle(nowMs: number): void {
    this.#virtualMs += (nowMs - this.#settledMs) * this.#speed();
    this.#settledMs = nowMs;
    if (this.inFlight > 0) this.lastBusyMs = nowMs;
  }

  #note(nowMs: number): void {
    this.#concurrency.set(this.inFlight, nowMs);
    if (this.#cpu !== undefined) {
      this.#cpuUse.set(Math.min(this.#cpu.cpus, this.inFlight * this.#cpu.perRequest), nowMs);
    }
  }
}
