import { describe, expect, it } from "vitest";
import { MetricCollector } from "../../core/autoscaling/collector.ts";
import type { WindowsSpec } from "../../core/autoscaling/revision-windows.ts";
import { FakeClock } from "../../core/testing/fake-clock.ts";
import type { PodStat } from "../../api/wire/stats.ts";
import type { ObjectKey } from "../runtime/types.ts";
import type { RevisionScaler } from "./revision-scaler.ts";
import { runScrapes, runTicks, scrapeAll, type ScalingLoops } from "./scaling-loops.ts";

const WINDOWS: WindowsSpec = { aggregation: "linear", stableWindowMs: 60_000, panicWindowMs: 6000, scraped: true };
const KEY = "ns/rev-00001";

function setUp(pods: number, windows: WindowsSpec, scrape: (name: string) => Promise<PodStat>) {
  const clock = new FakeClock(0);
  const collector = new MetricCollector();
  collector.register(KEY, windows, 0);
  const ready = Array.from({ length: pods }, (_, i) => ({ name: `p${i}`, ip: `10.0.0.${i}`, startedMs: 0 }));
  const enqueued: { key: ObjectKey; atMs: number }[] = [];
  const scraped: number[] = [];
  const failed: string[] = [];
  const scaler = {
    active: () => [{ namespace: "ns", name: "rev-00001" }],
    scrapeTargets: () => [{ key: KEY, ready, windows }],
  } as unknown as RevisionScaler;
  const loops: ScalingLoops = {
    scaler,
    collector,
    queue: { enqueue: key => enqueued.push({ key, atMs: clock.elapsedMs() }), enqueueAfter: () => undefined },
    scrape: pod => scrape(pod.name),
    nodesCpu: pod => (pod === "ns/p0" ? 0.5 : undefined),
    clock,
    random: () => 0.5,
    onScraped: () => scraped.push(clock.elapsedMs()),
    onScrapeFailed: pod => failed.push(pod.name),
  };
  return { clock, collector, loops, enqueued, scraped, failed };
}

const stat = (podName: string, direct = 1): PodStat => ({
  podName,
  timestampMs: 0,
  uptimeMs: 60_000,
  averageConcurrentRequests: direct,
  averageProxiedConcurrentRequests: 0,
  requestCount: 0,
  proxiedRequestCount: 0,
});

describe("the loops of the autoscaler", () => {
  it("tick every two seconds", async () => {
    const { clock, loops, enqueued } = setUp(1, WINDOWS, async name => stat(name));
    const stop = new AbortController();
    const running = runTicks(loops, stop.signal);
    await clock.advance(6500);
    stop.abort();
    await running;
    expect(enqueued.map(one => one.atMs)).toEqual([0, 2000, 4000, 6000]);
  });

  it("keep the beat of scraping when a round takes long, and skip what a very long one missed", async () => {
    let slowMs = 0;
    const { clock, loops, scraped } = setUp(1, WINDOWS, async name => {
      if (slowMs > 0) await new Promise<void>(resolve => void clock.after(slowMs, resolve));
      return stat(name);
    });
    const stop = new AbortController();
    const running = runScrapes(loops, stop.signal);
    await clock.advance(1500);
    slowMs = 700;
    await clock.advance(2000);
    slowMs = 2300;
    await clock.advance(3000);
    slowMs = 0;
    await clock.advance(2000);
    stop.abort();
    await clock.advance(3000);
    await running;
    // Begun at 0, 1000; 2000 and 3000 take 700 ms; 4000 takes 2300 ms, so that 5000 and 6000 are skipped.
    expect(scraped).toEqual([0, 1000, 2700, 3700, 6300, 7000, 8000]);
  });

  it("ask a sample of many pods, and others in place of those that do not answer", async () => {
    const { loops, failed, collector } = setUp(10, WINDOWS, async name => {
      if (name === "p3") throw new Error("gone");
      return stat(name);
    });
    await scrapeAll(loops, new AbortController().signal);
    expect(failed.length).toBeLessThanOrEqual(1);
    expect(collector.load(KEY, "concurrency", 0)).toEqual({ kind: "measured", stable: 10, panic: 10 });
  });

  it("ask every pod where each counts by itself", async () => {
    const asked: string[] = [];
    const { loops, collector } = setUp(10, { ...WINDOWS, perInstance: true }, async name => {
      asked.push(name);
      return stat(name);
    });
    await scrapeAll(loops, new AbortController().signal);
    expect(asked.length).toBe(10);
    const { instances } = collector.instancesLoad(KEY, 0);
    expect(instances.length).toBe(10);
    // Who cannot tell its CPU use is told of by its node.
    expect(instances.map(one => one.cpu1m).filter(cpu => cpu !== undefined)).toEqual([0.5]);
  });
});
