import type { MetricCollector } from "../../core/autoscaling/collector.ts";
import { type PodReading } from "../../core/autoscaling/collector.ts";
import { TICK_MS } from "../../core/autoscaling/kpa.ts";
import { sampleSize, scrapeOrder } from "../../core/autoscaling/sampling.ts";
import { pause, type Clock } from "../runtime/clock.ts";
import type { Enqueuer } from "../runtime/types.ts";
import type { PodTarget, ScrapePod } from "./pod-scraper.ts";
import type { RevisionScaler } from "./revision-scaler.ts";

const SCRAPE_PERIOD_MS = 1000;
/** Pods asked at a time over all revisions: bounds sockets and memory. */
const MAX_CONCURRENT_SCRAPES = 64;

export interface ScalingLoops {
  readonly scaler: RevisionScaler;
  readonly collector: MetricCollector;
  readonly queue: Enqueuer;
  readonly scrape: ScrapePod;
  /** CPUs a pod (`namespace/name`) uses by its node's count, for pods that cannot tell themselves. */
  readonly nodesCpu: (pod: string) => number | undefined;
  readonly clock: Clock;
  readonly random: () => number;
  /** Hears that a revision's pods were asked, once a second. */
  readonly onScraped: (key: string) => void;
  readonly onScrapeFailed: (pod: PodTarget, error: unknown) => void;
}

/** Puts every active revision into the queue each tick (2 s), until `signal` aborts. */
export function runTicks({ scaler, queue, clock }: ScalingLoops, signal: AbortSignal): Promise<void> {
  return periodically(clock, TICK_MS, signal, () => {
    for (const key of scaler.active()) queue.enqueue(key);
  });
}

/** Asks the pods of every active revision once a second for their numbers, until `signal` aborts. */
export function runScrapes(loops: ScalingLoops, signal: AbortSignal): Promise<void> {
  return periodically(loops.clock, SCRAPE_PERIOD_MS, signal, () => scrapeAll(loops, signal));
}

/** Runs at a fixed beat: a late run does not push the later ones back, one that takes longer than the period skips beats. */
async function periodically(
  clock: Clock,
  periodMs: number,
  signal: AbortSignal,
  run: () => void | Promise<void>,
): Promise<void> {
  let dueMs = clock.elapsedMs();
  while (!signal.aborted) {
    await run();
    const nowMs = clock.elapsedMs();
    dueMs += Math.max(1, Math.ceil((nowMs - dueMs) / periodMs)) * periodMs;
    await pause(clock, dueMs - nowMs, signal);
  }
}

/** One round over all active revisions; a revision's numbers are recorded as soon as its own pods have answered. */
export async function scrapeAll(loops: ScalingLoops, signal: AbortSignal): Promise<void> {
  const slots = new Slots(MAX_CONCURRENT_SCRAPES);
  await Promise.all(
    [...loops.scaler.scrapeTargets()].map(async ({ key, ready, windows }) => {
      const byName = new Map(ready.map(pod => [pod.name, pod]));
      const order = scrapeOrder(ready, windows.stableWindowMs, loops.clock.nowMs(), loops.random);
      // Where each instance counts by itself, none can stand for another.
      const needed = windows.perInstance === true ? ready.length : sampleSize(ready.length);
      const readings = await askInOrder(order, byName, needed, slots, loops, signal);
      if (signal.aborted) return;
      const namespace = key.slice(0, key.indexOf("/"));
      const measured = readings.map(reading =>
        reading.cpuUsage === undefined && windows.perInstance === true
          ? { ...reading, averageCpuUsage: loops.nodesCpu(`${namespace}/${reading.podName}`) }
          : reading,
      );
      loops.collector.recordScrape(key, { readyPods: ready.length, readings: measured }, loops.clock.nowMs());
      loops.onScraped(key);
    }),
  );
}

/** Asks the first `needed` pods of the order at once, then further ones in place of those that did not answer. */
async function askInOrder(
  order: readonly string[],
  pods: ReadonlyMap<string, PodTarget>,
  needed: number,
  slots: Slots,
  loops: ScalingLoops,
  signal: AbortSignal,
): Promise<readonly PodReading[]> {
  const readings: PodReading[] = [];
  let next = 0;
  while (readings.length < needed && next < order.length && !signal.aborted) {
    const batch = order.slice(next, next + needed - readings.length);
    next += batch.length;
    await Promise.all(
      batch.map(async name => {
        const pod = pods.get(name);
        if (pod === undefined) return;
        await slots.use(async () => {
          try {
            readings.push(await loops.scrape(pod, signal));
          } catch (error) {
            if (!signal.aborted) loops.onScrapeFailed(pod, error);
          }
        });
      }),
    );
  }
  return readings;
}

/** At most so many at a time; the others wait in order. */
class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async use(work: () => Promise<void>): Promise<void> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>(resolve => this.#waiting.push(resolve));
    try {
      await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
