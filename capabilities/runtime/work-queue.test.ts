import { Registry } from "prom-client";
import { afterEach, describe, expect, it } from "vitest";
import { FakeClock, settle } from "../../core/testing/fake-clock.ts";
import type { ObjectKey, ReconcileResult } from "./types.ts";
import { createWorkQueueMetrics, WorkQueue, type WorkFailure } from "./work-queue.ts";

interface Run {
  readonly key: string;
  readonly atMs: number;
  readonly signal: AbortSignal;
  end(result?: ReconcileResult): Promise<void>;
  fail(message?: string): Promise<void>;
}

/** A queue whose runs the test ends by hand. */
function harness(concurrency = 1) {
  const clock = new FakeClock(0);
  const registry = new Registry();
  const runs: Run[] = [];
  const failures: WorkFailure[] = [];
  const stop = new AbortController();
  const queue = new WorkQueue({
    name: "test",
    concurrency,
    clock,
    random: () => 0,
    metrics: createWorkQueueMetrics(registry),
    onFailure: failure => failures.push(failure),
    reconcile: (key, signal) =>
      new Promise((resolve, reject) => {
        runs.push({
          key: key.name,
          atMs: clock.nowMs(),
          signal,
          end: (result = {}) => (resolve(result), settle()),
          fail: (message = "no") => (reject(new Error(message)), settle()),
        });
      }),
  });
  const ended = queue.run(stop.signal, () => 1000);
  const run = (index: number): Run => {
    const found = runs[index];
    if (found === undefined) throw new Error(`run ${index} has not started; ${runs.length} have`);
    return found;
  };
  return { clock, registry, queue, runs, run, failures, stop, ended };
}

const key = (name: string): ObjectKey => ({ namespace: "ns", name });

describe("work queue", () => {
  const open: AbortController[] = [];
  const start = (concurrency?: number) => {
    const made = harness(concurrency);
    open.push(made.stop);
    return made;
  };
  afterEach(() => {
    for (const stop of open.splice(0)) stop.abort();
  });

  it("coalesces keys that are in line and keeps their order", async () => {
    const { queue, runs, run } = start();
    for (const name of ["a", "b", "c", "b", "a"]) queue.enqueue(key(name));
    await settle();
    await run(0).end();
    await run(1).end();
    await run(2).end();
    expect(runs.map(({ key }) => key)).toEqual(["a", "b", "c"]);
  });

  it("runs a key again, once, when it is enqueued while it runs, and never twice at a time", async () => {
    const { queue, runs, run } = start(4);
    queue.enqueue(key("a"));
    await settle();
    queue.enqueue(key("a"));
    queue.enqueue(key("a"));
    expect(runs).toHaveLength(1);
    await run(0).end();
    expect(runs).toHaveLength(2);
    await run(1).end();
    expect(runs).toHaveLength(2);
  });

  it("runs at most `concurrency` keys at once", async () => {
    const { queue, runs, run } = start(2);
    for (const name of ["a", "b", "c"]) queue.enqueue(key(name));
    await settle();
    expect(runs.map(({ key }) => key)).toEqual(["a", "b"]);
    await run(1).end();
    expect(runs.map(({ key }) => key)).toEqual(["a", "b", "c"]);
  });

  it("keeps namespaces apart", async () => {
    const { queue, runs } = start(2);
    queue.enqueue({ namespace: "x", name: "a" });
    queue.enqueue({ namespace: "y", name: "a" });
    await settle();
    expect(runs).toHaveLength(2);
  });

  it("backs off: half of 50 ms doubling, up to half of 5 min, and starts over after a success", async () => {
    const { queue, clock, runs, run, failures } = start();
    queue.enqueue(key("a"));
    await settle();
    for (const waitMs of [25, 50, 100, 200]) {
      await run(runs.length - 1).fail();
      const before = runs.length;
      await clock.advance(waitMs - 1);
      expect(runs).toHaveLength(before);
      await clock.advance(1);
      expect(runs).toHaveLength(before + 1);
    }
    expect(failures.map(({ failures, retryInMs }) => [failures, retryInMs])).toEqual([
      [1, 25],
      [2, 50],
      [3, 100],
      [4, 200],
    ]);
    for (let count = 0; count < 20; count++) {
      await run(runs.length - 1).fail();
      await clock.advance(300_000);
    }
    expect(failures.at(-1)?.retryInMs).toBe(150_000);
    await run(runs.length - 1).end();
    queue.enqueue(key("a"));
    await settle();
    await run(runs.length - 1).fail();
    expect(failures.at(-1)?.failures).toBe(1);
  });

  it("a key that backs off does not hold up others, and runs at once on a new event", async () => {
    const { queue, clock, runs, run } = start();
    queue.enqueue(key("bad"));
    await settle();
    await run(0).fail();
    queue.enqueue(key("good"));
    await settle();
    expect(run(1).key).toBe("good");
    await run(1).end();
    queue.enqueue(key("bad"));
    await settle();
    expect(run(2)).toMatchObject({ key: "bad", atMs: 0 });
    await run(2).end();
    await clock.advance(60_000);
    expect(runs).toHaveLength(3);
  });

  it("requeues after the time a run asked for", async () => {
    const { queue, clock, runs, run } = start();
    queue.enqueue(key("a"));
    await settle();
    await run(0).end({ requeueAfterMs: 1000 });
    await clock.advance(999);
    expect(runs).toHaveLength(1);
    await clock.advance(1);
    expect(run(1).atMs).toBe(1000);
  });

  it("keeps one pending time per key, the earliest; a run replaces it", async () => {
    const { queue, clock, runs, run } = start();
    queue.enqueueAfter(key("a"), 500);
    queue.enqueueAfter(key("a"), 200);
    queue.enqueueAfter(key("a"), 900);
    await clock.advance(200);
    expect(runs).toHaveLength(1);
    await run(0).end();
    await clock.advance(5000);
    expect(runs).toHaveLength(1);
  });

  it("honours enqueueAfter of a key that is running", async () => {
    const { queue, clock, runs, run } = start();
    queue.enqueue(key("a"));
    await settle();
    queue.enqueueAfter(key("a"), 300);
    await settle();
    await run(0).end({ requeueAfterMs: 1000 });
    await clock.advance(300);
    expect(runs).toHaveLength(2);
  });

  it("aborts a run that takes too long", async () => {
    const { queue, clock, run } = start();
    queue.enqueue(key("a"));
    await settle();
    expect(run(0).signal.aborted).toBe(false);
    await clock.advance(120_000);
    expect(run(0).signal.aborted).toBe(true);
  });

  it("at the end of a term lets runs end, takes no new keys, and forgets those in line", async () => {
    const { queue, runs, run, stop, ended, clock } = start();
    queue.enqueue(key("a"));
    queue.enqueue(key("b"));
    await settle();
    queue.enqueueAfter(key("c"), 10);
    stop.abort();
    await settle();
    queue.enqueue(key("d"));
    expect(run(0).signal.aborted).toBe(false);
    await settle();
    await run(0).end({ requeueAfterMs: 5 });
    await ended;
    await clock.advance(10_000);
    expect(runs).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });

  it("aborts runs that outlast the drain", async () => {
    const { queue, run, stop, ended, clock } = start();
    queue.enqueue(key("a"));
    await settle();
    stop.abort();
    await clock.advance(1000);
    expect(run(0).signal.aborted).toBe(true);
    await run(0).fail("aborted");
    await ended;
  });

  it("can run another term, from nothing", async () => {
    const { queue, runs, stop, ended } = start();
    stop.abort();
    await ended;
    queue.enqueue(key("lost"));
    const second = new AbortController();
    open.push(second);
    void queue.run(second.signal, () => 0);
    queue.enqueue(key("a"));
    await settle();
    expect(runs.map(({ key }) => key)).toEqual(["a"]);
  });

  it("measures depth, time in line, work time, retries and results", async () => {
    const { queue, clock, run, registry } = start();
    queue.enqueue(key("a"));
    queue.enqueue(key("b"));
    await clock.advance(2000);
    await settle();
    await run(0).fail();
    await run(1).end();
    const text = await registry.metrics();
    expect(text).toContain('workqueue_depth{name="test"} 0');
    expect(text).toContain('workqueue_adds_total{name="test"} 2');
    expect(text).toContain('workqueue_retries_total{name="test"} 1');
    expect(text).toContain('workqueue_queue_duration_seconds_sum{name="test"} 2');
    expect(text).toContain('workqueue_work_duration_seconds_sum{name="test"} 2');
    expect(text).toContain('fairway_reconcile_total{name="test",result="error"} 1');
    expect(text).toContain('fairway_reconcile_total{name="test",result="success"} 1');
  });
});
