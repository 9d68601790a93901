import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { backoffMs, type Clock } from "./clock.ts";
import { keyText } from "./resource.ts";
import type { Enqueuer, ObjectKey, ReconcileResult } from "./types.ts";

export interface WorkQueueOptions {
  readonly name: string;
  /** Called for one key at a time; a rejection is retried with backoff. The signal aborts at the end of the term or after `timeoutMs`. */
  readonly reconcile: (key: ObjectKey, signal: AbortSignal) => Promise<ReconcileResult>;
  readonly concurrency: number;
  /** Bounds one run; 2 min when absent. */
  readonly timeoutMs?: number | undefined;
  readonly clock: Clock;
  readonly random: () => number;
  readonly metrics: WorkQueueMetrics;
  readonly onFailure: (failure: WorkFailure) => void;
}

export interface WorkFailure {
  readonly key: ObjectKey;
  readonly error: unknown;
  /** Runs of this key that have failed one after the other. */
  readonly failures: number;
  readonly retryInMs: number;
}

export const RETRY_BOUNDS = { baseMs: 50, maxMs: 300_000 } as const;
const DEFAULT_TIMEOUT_MS = 120_000;

/**
 * Where a key is. It is in exactly one of these; a key that is idle is not held at all.
 * - waiting: for its time; a new enqueue makes it ready at once
 * - ready: in line, first come first served
 * - running: `again` says that it was enqueued meanwhile and runs once more right after
 */
type KeyState =
  | { readonly at: "waiting"; readonly dueMs: number; readonly cancel: () => void }
  | { readonly at: "ready"; readonly sinceMs: number }
  | { readonly at: "running"; readonly again: boolean; readonly wait: Wait | undefined };

interface Wait {
  readonly dueMs: number;
}

/**
 * Keys to work on. Equal keys coalesce, one key never runs twice at a time, at most `concurrency` keys run at once, a
 * failing key backs off without holding up others. It works in terms: between `run` calls it is empty and drops what it is given.
 */
export class WorkQueue implements Enqueuer {
  readonly #options: WorkQueueOptions;
  #term: Term | undefined;

  constructor(options: WorkQueueOptions) {
    if (options.concurrency < 1)
      throw new RangeError(`concurrency of ${options.name}: got ${options.concurrency}, want >= 1`);
    this.#options = options;
  }

  enqueue(key: ObjectKey): void {
    this.#term?.enqueue(key);
  }

  enqueueAfter(key: ObjectKey, delayMs: number): void {
    this.#term?.enqueueAfter(key, delayMs);
  }

  /**
   * Works until `stop` aborts, then takes no new key, lets running ones end for up to `drainMs()`, and aborts those that have
   * not. Resolves when nothing runs any more. Nothing is kept for the next term: its caller enqueues everything again.
   */
  async run(stop: AbortSignal, drainMs: () => number): Promise<void> {
    if (this.#term !== undefined) throw new Error(`work queue ${this.#options.name} is already running`);
    const term = new Term(this.#options);
    this.#term = term;
    try {
      if (!stop.aborted) await new Promise(resolve => stop.addEventListener("abort", resolve, { once: true }));
    } finally {
      this.#term = undefined;
      await term.end(drainMs());
    }
  }
}

class Term {
  readonly #options: WorkQueueOptions;
  readonly #keys = new Map<string, ObjectKey>();
  readonly #states = new Map<string, KeyState>();
  readonly #failures = new Map<string, number>();
  readonly #ready: string[] = [];
  readonly #abort = new AbortController();
  readonly #idle: (() => void)[] = [];
  #running = 0;
  #starting = false;
  #ended = false;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  enqueue(key: ObjectKey): void {
    const id = keyText(key);
    const state = this.#states.get(id);
    this.#options.metrics.adds.inc({ name: this.#options.name });
    switch (state?.at) {
      case "ready":
        return;
      case "running":
        this.#states.set(id, { ...state, again: true });
        return;
      case "waiting":
        state.cancel();
        break;
      case undefined:
        this.#keys.set(id, key);
    }
    this.#makeReady(id);
    this.#startRuns();
  }

  enqueueAfter(key: ObjectKey, delayMs: number): void {
    if (delayMs <= 0) {
      this.enqueue(key);
      return;
    }
    const id = keyText(key);
    const state = this.#states.get(id);
    const dueMs = this.#options.clock.elapsedMs() + delayMs;
    switch (state?.at) {
      case "ready":
        return;
      case "running":
        this.#states.set(id, { ...state, wait: { dueMs: Math.min(dueMs, state.wait?.dueMs ?? Infinity) } });
        return;
      case "waiting":
        if (state.dueMs <= dueMs) return;
        state.cancel();
        break;
      case undefined:
        this.#keys.set(id, key);
    }
    this.#wait(id, dueMs);
  }

  async end(drainMs: number): Promise<void> {
    this.#ended = true;
    for (const state of this.#states.values()) if (state.at === "waiting") state.cancel();
    this.#ready.length = 0;
    this.#options.metrics.depth.set({ name: this.#options.name }, 0);
    if (this.#running === 0) return;
    if (drainMs <= 0) this.#abort.abort();
    const cancel = this.#options.clock.after(drainMs, () => this.#abort.abort());
    await new Promise<void>(resolve => this.#idle.push(resolve));
    cancel();
  }

  #wait(id: string, dueMs: number): void {
    const delayMs = Math.max(0, dueMs - this.#options.clock.elapsedMs());
    const cancel = this.#options.clock.after(delayMs, () => {
      this.#makeReady(id);
      this.#startRuns();
    });
    this.#states.set(id, { at: "waiting", dueMs, cancel });
  }

  #makeReady(id: string): void {
    this.#states.set(id, { at: "ready", sinceMs: this.#options.clock.elapsedMs() });
    this.#ready.push(id);
    this.#options.metrics.depth.set({ name: this.#options.name }, this.#ready.length);
  }

  /** Not at once: a handler that is being told of one change of several would start on half of them. */
  #startRuns(): void {
    if (this.#starting) return;
    this.#starting = true;
    queueMicrotask(() => {
      this.#starting = false;
      this.#startReady();
    });
  }

  #startReady(): void {
    while (!this.#ended && this.#running < this.#options.concurrency) {
      const id = this.#ready.shift();
      if (id === undefined) return;
      void this.#runKey(id);
    }
  }

  async #runKey(id: string): Promise<void> {
    const { clock, metrics, name, reconcile } = this.#options;
    const key = this.#keys.get(id);
    const state = this.#states.get(id);
    if (key === undefined || state?.at !== "ready")
      throw new Error(`work queue ${name}: ${id} is in line but not ready`);
    const startMs = clock.elapsedMs();
    metrics.depth.set({ name }, this.#ready.length);
    metrics.queueSeconds.observe({ name }, (startMs - state.sinceMs) / 1000);
    this.#states.set(id, { at: "running", again: false, wait: undefined });
    this.#running += 1;
    const timeout = new AbortController();
    const timeoutMs = this.#options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    const cancel = clock.after(timeoutMs, () => timeout.abort(new Error(`reconciliation took over ${timeoutMs} ms`)));
    const outcome = await settled(() => reconcile(key, AbortSignal.any([this.#abort.signal, timeout.signal])));
    cancel();
    this.#running -= 1;
    metrics.workSeconds.observe({ name }, (clock.elapsedMs() - startMs) / 1000);
    metrics.runs.inc({ name, result: outcome.ok ? "success" : "error" });
    this.#finish(id, key, outcome);
    if (this.#ended && this.#running === 0) for (const wake of this.#idle.splice(0)) wake();
    this.#startRuns();
  }

  #finish(id: string, key: ObjectKey, outcome: Outcome): void {
    const { clock, random, metrics, name, onFailure } = this.#options;
    const state = this.#states.get(id);
    const again = state?.at === "running" && state.again;
    let dueMs = state?.at === "running" ? (state.wait?.dueMs ?? Infinity) : Infinity;
    if (outcome.ok) {
      this.#failures.delete(id);
      const { requeueAfterMs } = outcome.result;
      if (requeueAfterMs !== undefined) dueMs = Math.min(dueMs, clock.elapsedMs() + requeueAfterMs);
    } else if (!this.#ended) {
      const failures = (this.#failures.get(id) ?? 0) + 1;
      this.#failures.set(id, failures);
      const retryInMs = again ? 0 : backoffMs(failures, RETRY_BOUNDS, random);
      metrics.retries.inc({ name });
      onFailure({ key, error: outcome.error, failures, retryInMs });
      dueMs = Math.min(dueMs, clock.elapsedMs() + retryInMs);
    }
    this.#states.delete(id);
    if (this.#ended) return;
    if (again) this.#makeReady(id);
    else if (dueMs < Infinity) this.#wait(id, dueMs);
    else this.#keys.delete(id);
  }
}

type Outcome =
  | { readonly ok: true; readonly result: ReconcileResult }
  | { readonly ok: false; readonly error: unknown };

async function settled(run: () => Promise<ReconcileResult>): Promise<Outcome> {
  try {
    return { ok: true, result: await run() };
  } catch (error) {
    return { ok: false, error };
  }
}

/** The metrics of all queues, named as client-go's and controller-runtime's; the label `name` is the queue. */
export interface WorkQueueMetrics {
  readonly depth: Gauge<"name">;
  readonly adds: Counter<"name">;
  readonly retries: Counter<"name">;
  readonly queueSeconds: Histogram<"name">;
  readonly workSeconds: Histogram<"name">;
  readonly runs: Counter<"name" | "result">;
}

export function createWorkQueueMetrics(registry: Registry): WorkQueueMetrics {
  const registers = [registry];
  const buckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60];
  return {
    depth: new Gauge({ name: "workqueue_depth", help: "Keys in line", labelNames: ["name"], registers }),
    adds: new Counter({
      name: "workqueue_adds_total",
      help: "Keys added, before coalescing",
      labelNames: ["name"],
      registers,
    }),
    retries: new Counter({
      name: "workqueue_retries_total",
      help: "Runs to be tried again",
      labelNames: ["name"],
      registers,
    }),
    queueSeconds: new Histogram({
      name: "workqueue_queue_duration_seconds",
      help: "How long a key was in line before its run",
      labelNames: ["name"],
      buckets,
      registers,
    }),
    workSeconds: new Histogram({
      name: "workqueue_work_duration_seconds",
      help: "How long a run took",
      labelNames: ["name"],
      buckets,
      registers,
    }),
    runs: new Counter({
      name: "fairway_reconcile_total",
      help: "Runs by result",
      labelNames: ["name", "result"],
      registers,
    }),
  };
}
