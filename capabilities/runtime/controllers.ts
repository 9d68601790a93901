import type { ChangeHandler, Controller, ControllerOptions } from "./capability.ts";
import type { Clock } from "./clock.ts";
import { isConflict, isNotFound } from "./api-error.ts";
import type { SharedInformers } from "./informers.ts";
import type { ComponentLogger } from "./logging.ts";
import { keyOf, keyText, type ResourceKind } from "./resource.ts";
import type { KubeObject } from "./types.ts";
import { WorkQueue, type WorkFailure, type WorkQueueMetrics } from "./work-queue.ts";

export interface ControllersOptions {
  readonly informers: SharedInformers;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: ComponentLogger;
  readonly metrics: WorkQueueMetrics;
}

interface Watch {
  readonly kind: ResourceKind;
  readonly handler: ChangeHandler<KubeObject>;
}

interface Task {
  readonly name: string;
  readonly run: (signal: AbortSignal) => Promise<void>;
}

const DEFAULT_CONCURRENCY = 8;
/** A key that meets a newer state more often than this in a row has another problem. */
const OUTDATED_AT_MOST = 3;

/** Everything that runs while this replica leads: the queues of all reconcilers, and tasks. */
export class Controllers {
  readonly #options: ControllersOptions;
  readonly #queues = new Map<string, WorkQueue>();
  readonly #watches: Watch[] = [];
  readonly #starts: (() => void)[] = [];
  readonly #tasks: Task[] = [];

  constructor(options: ControllersOptions) {
    this.#options = options;
  }

  register(options: ControllerOptions): Controller {
    const { name, reconciler, concurrency = DEFAULT_CONCURRENCY, watches = [], initialKeys = [] } = options;
    if (this.#queues.has(name)) throw new Error(`a controller named ${name} is registered already`);
    const { clock, random, metrics } = this.#options;
    const queue = new WorkQueue({
      name,
      concurrency,
      clock,
      random,
      metrics,
      reconcile: (key, signal) => reconciler.reconcile(key, signal),
      onFailure: failure => this.#report(name, failure),
    });
    this.#queues.set(name, queue);
    for (const { kind, keys, settleMs = 0 } of watches) {
      this.watch(kind, object => {
        for (const key of keys(object)) queue.enqueueAfter(key, settleMs);
      });
    }
    this.#starts.push(() => {
      for (const key of initialKeys) queue.enqueue(key);
    });
    return {
      name,
      enqueue: key => queue.enqueue(key),
      enqueueAfter: (key, delayMs) => queue.enqueueAfter(key, delayMs),
      hint: object => queue.enqueue(keyOf(object)),
    };
  }

  /** Feeds a handler that enqueues; at the begin of each term it hears of everything that is there. */
  watch(kind: ResourceKind, handler: ChangeHandler<KubeObject>): void {
    this.#options.informers.onChange(kind, handler);
    this.#watches.push({ kind, handler });
  }

  task(name: string, run: (signal: AbortSignal) => Promise<void>): void {
    this.#tasks.push({ name, run });
  }

  /**
   * One term: starts all queues, enqueues everything, runs the tasks, until the signal aborts. Resolves when nothing runs any
   * more; reconciliations get `drainMs()` to end. Rejects when a task fails, after the others have been stopped.
   */
  async lead(signal: AbortSignal, drainMs: () => number): Promise<void> {
    const failed = new AbortController();
    const term = AbortSignal.any([signal, failed.signal]);
    const queues = [...this.#queues.values()].map(queue => queue.run(term, drainMs));
    for (const start of this.#starts) start();
    for (const { kind, handler } of this.#watches) this.#options.informers.replay(kind, handler);
    const tasks = this.#tasks.map(async ({ name, run }) => {
      try {
        await run(term);
        if (!term.aborted) throw new Error("it ended by itself");
      } catch (error) {
        if (term.aborted) return;
        failed.abort();
        throw new Error(`task ${name} failed`, { cause: error });
      }
    });
    const results = await Promise.allSettled([...queues, ...tasks]);
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  #report(name: string, { key, error, failures, retryInMs }: WorkFailure): void {
    const details = { controller: name, key: keyText(key), failures, retryInMs: Math.round(retryInMs), error };
    // Written against what the cache did not show yet: a newer version, or a deletion.
    const outdated = (isConflict(error) || isNotFound(error)) && failures <= OUTDATED_AT_MOST;
    if (outdated) this.#options.log.debug(details, "reconciliation met a newer state: trying again");
    else this.#options.log.warn(details, "reconciliation failed: trying again");
  }
}
