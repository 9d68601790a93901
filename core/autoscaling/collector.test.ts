import { describe, expect, it } from "vitest";
import type { GatewayLoadReport, PodReading } from "./collector.ts";
import { MetricCollector, revisionKey } from "./collector.ts";
import type { WindowsSpec } from "./revision-windows.ts";

const SPEC: WindowsSpec = { aggregation: "linear", stableWindowMs: 60_000, panicWindowMs: 6000, scraped: true };
const KEY = revisionKey("shop", "cart-00001");
const START = 1_000_000_000_000;

function report(sequence: number, concurrency: number, more: Partial<GatewayLoadReport> = {}): GatewayLoadReport {
  return {
    gateway: "gw-a",
    instance: "boot-1",
    sequence,
    timestampMs: START + sequence * 1000,
    poke: false,
    revisions: [
      {
        namespace: "shop",
        revision: "cart-00001",
        averageConcurrentRequests: concurrency,
        requestCount: concurrency * 10,
        waiting: 0,
        inFlight: 0,
      },
    ],
    ...more,
  };
}

function pod(podName: string, direct: number, proxied = 0): PodReading {
  return {
    podName,
    averageConcurrentRequests: direct + proxied,
    averageProxiedConcurrentRequests: proxied,
    requestCount: (direct + proxied) * 10,
    proxiedRequestCount: proxied * 10,
  };
}

function collector(): MetricCollector {
  const made = new MetricCollector();
  made.register(KEY, SPEC, START);
  return made;
}

function stable(from: MetricCollector, atMs: number, metric: "concurrency" | "rps" = "concurrency"): number | string {
  const load = from.load(KEY, metric, atMs);
  return load.kind === "measured" ? load.stable : load.reason;
}

describe("collector", () => {
  it("decides on nothing at its begin until every gateway was heard, or is silent", () => {
    const c = collector();
    c.retainGateways(new Set(["gw-a", "gw-b"]));
    c.acceptReport(report(1, 1.3), START);
    expect(stable(c, START + 500)).toBe("no-data-in-window");
    c.acceptReport(report(1, 1.4, { gateway: "gw-b", instance: "boot-2" }), START + 600);
    expect(stable(c, START + 600)).toBeCloseTo(2.7);
    // One that comes later is none to wait for.
    c.retainGateways(new Set(["gw-a", "gw-b", "gw-c"]));
    expect(stable(c, START + 3_100)).toBeGreaterThan(0);

    const alone = collector();
    alone.retainGateways(new Set(["gw-a", "gw-dead"]));
    alone.acceptReport(report(1, 1.3), START);
    expect(stable(alone, START + 3_000)).toBe("no-data-in-window");
    expect(stable(alone, START + 3_001)).toBeGreaterThan(0);
  });

  it("has no data, which is not zero, before the first report and after a window of silence", () => {
    const c = collector();
    expect(stable(c, START)).toBe("no-data-in-window");
    expect(c.load("shop/other", "concurrency", START)).toEqual({ kind: "none", reason: "not-collecting" });
    c.acceptReport(report(1, 4), START);
    expect(stable(c, START)).toBe(4);
    expect(stable(c, START + 60_000)).toBe(0);
    expect(stable(c, START + 61_000)).toBe("no-data-in-window");
  });

  it("sums gateways, and adds what pods saw past the gateways, once", () => {
    const c = collector();
    c.acceptReport(report(1, 4), START);
    c.acceptReport(report(1, 3, { gateway: "gw-b" }), START + 300);
    c.recordScrape(KEY, { readyPods: 2, readings: [pod("p1", 1, 3.5), pod("p2", 2, 3.5)] }, START + 500);
    expect(stable(c, START + 600)).toBe(10);
    expect(stable(c, START + 600, "rps")).toBe(100);
  });

  it("believes gateways that are heard, whatever pods say of proxied requests", () => {
    const c = collector();
    c.acceptReport(report(1, 4), START);
    c.recordScrape(KEY, { readyPods: 1, readings: [pod("p1", 1, 9)] }, START + 500);
    expect(stable(c, START + 600)).toBe(5);
  });

  it("counts one round of scraping a second", () => {
    const c = collector();
    c.recordScrape(KEY, { readyPods: 1, readings: [pod("p1", 3)] }, START + 100);
    c.recordScrape(KEY, { readyPods: 1, readings: [pod("p1", 3)] }, START + 300);
    expect(stable(c, START + 600)).toBe(3);
  });

  it("takes the asked pods for all of them", () => {
    const c = collector();
    const readings = Array.from({ length: 7 }, (_, i) => pod(`p${i}`, i < 3 ? 2 : 0.25));
    c.recordScrape(KEY, { readyPods: 10, readings }, START);
    expect(stable(c, START)).toBe(10);
  });

  it("counts a report that comes twice once, one that was overtaken too, and a restarted gateway anew", () => {
    const c = collector();
    c.acceptReport(report(50, 4), START);
    expect(c.acceptReport(report(50, 4), START + 10)).toEqual([]);
    expect(stable(c, START + 100)).toBe(4);
    c.acceptReport(report(52, 4), START + 2000);
    c.acceptReport(report(51, 4), START + 2010);
    expect(c.acceptReport(report(51, 4), START + 2020)).toEqual([]);
    expect(c.acceptReport(report(18, 9), START + 2030)).toEqual([]);
    expect(stable(c, START + 2100)).toBe(4);
    expect(c.acceptReport(report(1, 8, { instance: "boot-2" }), START + 3000)).toEqual([KEY]);
    expect(stable(c, START + 3000)).toBe(5);
  });

  it("counts each second once when arrival jitters and the gateway's clock is an hour ahead", () => {
    const c = collector();
    const arrivals = [START + 100, START + 1999, START + 2001, START + 3500, START + 4003, START + 5999];
    arrivals.forEach((at, i) => {
      c.acceptReport(report(i + 1, 6, { timestampMs: 3_600_000 + START + i * 1000 + (i % 2) * 40 }), at);
    });
    expect(stable(c, START + 5999)).toBe(6);
  });

  it("records a poke at once and does not count its requests again in the second's report", () => {
    const c = collector();
    const waiting = {
      namespace: "shop",
      revision: "cart-00001",
      averageConcurrentRequests: 0.01,
      requestCount: 1,
      waiting: 1,
      inFlight: 0,
    };
    expect(c.acceptReport(report(1, 0, { poke: true, revisions: [waiting] }), START + 200)).toEqual([KEY]);
    expect(stable(c, START + 200)).toBe(1);
    c.acceptReport(
      report(2, 0.8, { revisions: [{ ...waiting, averageConcurrentRequests: 0.8, requestCount: 3 }] }),
      START + 900,
    );
    expect(stable(c, START + 950)).toBe(1);
    expect(stable(c, START + 950, "rps")).toBe(3);
  });

  it("tells who was heard when", () => {
    const c = collector();
    expect(c.sources("shop/other")).toBeUndefined();
    expect(c.sources(KEY)).toEqual({ gateways: [], scraped: true, answeredMs: undefined });
    c.retainGateways(new Set(["gw-b", "gw-a"]));
    c.acceptReport(report(1, 1), START + 300);
    c.recordScrape(KEY, { readyPods: 1, readings: [pod("p1", 1)] }, START + 400);
    c.recordScrape(KEY, { readyPods: 1, readings: [] }, START + 1400);
    expect(c.sources(KEY)).toEqual({
      gateways: [
        { name: "gw-a", heardMs: START + 300 },
        { name: "gw-b", heardMs: undefined },
      ],
      scraped: true,
      answeredMs: START + 400,
    });
  });

  it("takes of a poke only who waits where the policy goes by that", () => {
    const c = new MetricCollector();
    c.register(KEY, { ...SPEC, perInstance: true }, START);
    c.retainGateways(new Set(["gw-a"]));
    const told = (averageConcurrentRequests: number, requestCount: number, waiting: number, inFlight: number) => ({
      revisions: [
        { namespace: "shop", revision: "cart-00001", averageConcurrentRequests, requestCount, waiting, inFlight },
      ],
    });
    c.acceptReport(report(1, 0, told(1, 1, 0, 1)), START);
    // For a moment four were under way; on average it were two, and two of the second's three have ended.
    expect(c.acceptReport(report(2, 0, { poke: true, ...told(4, 3, 3, 1) }), START + 500)).toEqual([KEY]);
    expect(c.instancesLoad(KEY, START + 500)).toMatchObject({
      waiting: 3,
      newlyWaiting: 3,
      inFlight: 1,
      load: { concurrency1m: 1 },
    });
    c.acceptReport(report(3, 0, { timestampMs: START + 2000, ...told(2, 3, 1, 1) }), START + 1000);
    expect(c.instancesLoad(KEY, START + 1000)).toMatchObject({
      waiting: 1,
      inFlight: 1,
      load: { concurrency1m: 1.5 },
      freedPerSecond: 2,
    });
    expect(c.acceptReport(report(4, 0, { poke: true, ...told(1, 0, 0, 1) }), START + 1100)).toEqual([]);
    // One waited at the end of a second already.
    c.acceptReport(report(5, 0, { poke: true, ...told(4, 3, 3, 1) }), START + 1200);
    expect(c.instancesLoad(KEY, START + 1200)).toMatchObject({ waiting: 3, newlyWaiting: 2 });
    c.acceptReport(report(6, 0, { timestampMs: START + 3000, ...told(3, 3, 2, 1) }), START + 2000);
    expect(c.instancesLoad(KEY, START + 2000)).toMatchObject({ waiting: 2, newlyWaiting: 1 });
  });

  it("does not take a poke off a second that it overtook", () => {
    const c = collector();
    const told = (more: object) => ({
      revisions: [
        {
          namespace: "shop",
          revision: "cart-00001",
          averageConcurrentRequests: 3,
          requestCount: 3,
          waiting: 3,
          inFlight: 0,
          ...more,
        },
      ],
    });
    c.acceptReport(report(1, 0, told({ averageConcurrentRequests: 0, requestCount: 0, waiting: 0 })), START);
    // Second 2 was sent before the poke of second 3 and arrives after it.
    c.acceptReport(report(3, 0, { poke: true, ...told({}) }), START + 1050);
    c.acceptReport(report(2, 0, told({})), START + 1060);
    c.acceptReport(report(4, 0, { timestampMs: START + 3000, ...told({}) }), START + 2050);
    // 0, then 3 + 3 in the second of arrival, then 3 - 3.
    expect(stable(c, START + 2050)).toBe(2);
  });

  it("lets the pods speak for a gateway that fell silent", () => {
    const c = collector();
    c.acceptReport(report(1, 5), START);
    c.acceptReport(report(1, 3, { gateway: "gw-b" }), START);
    for (let second = 1; second <= 10; second++) {
      c.acceptReport(report(1 + second, 5), START + second * 1000);
      c.recordScrape(KEY, { readyPods: 1, readings: [pod("p1", 0, 8)] }, START + second * 1000 + 100);
    }
    const load = c.load(KEY, "concurrency", START + 10_200);
    expect(load).toMatchObject({ kind: "measured", panic: 8 });
    c.retainGateways(new Set(["gw-a"]));
    c.acceptReport(report(12, 5), START + 11_000);
    c.recordScrape(KEY, { readyPods: 1, readings: [pod("p1", 0, 5)] }, START + 11_100);
    c.acceptReport(report(13, 5), START + 12_000);
    c.recordScrape(KEY, { readyPods: 1, readings: [pod("p1", 0, 5)] }, START + 12_100);
    expect(c.load(KEY, "concurrency", START + 12_100)).toMatchObject({ panic: 7 });
  });

  it("case 17: an operator that has just restarted counts proxied requests although no gateway was heard yet", () => {
    const c = collector();
    c.recordScrape(KEY, { readyPods: 2, readings: [pod("p1", 0, 30), pod("p2", 0, 40)] }, START);
    expect(stable(c, START)).toBe(70);
  });

  it("lets the last round stand in for a failed one, for a stable window at most", () => {
    const c = collector();
    c.recordScrape(KEY, { readyPods: 2, readings: [pod("p1", 3), pod("p2", 5)] }, START);
    for (let second = 1; second <= 200; second++) {
      c.recordScrape(KEY, { readyPods: 2, readings: [pod("p1", 0)] }, START + second * 1000);
      if (second === 60) expect(stable(c, START + second * 1000)).toBe(8);
    }
    expect(stable(c, START + 200_000)).toBe("no-data-in-window");
  });

  it("takes an empty window for zero only where nothing is scraped and every gateway is heard", () => {
    const c = new MetricCollector();
    c.register(KEY, { ...SPEC, scraped: false }, START);
    expect(stable(c, START)).toBe("no-data-in-window");
    c.retainGateways(new Set(["gw-a", "gw-b"]));
    c.acceptReport(report(1, 0, { revisions: [] }), START);
    expect(stable(c, START)).toBe("no-data-in-window");
    c.acceptReport(report(1, 0, { revisions: [], gateway: "gw-b" }), START);
    expect(stable(c, START)).toBe(0);
    expect(stable(c, START + 4000)).toBe("no-data-in-window");
  });

  it("keeps what Cloud Run's policy needs: each instance's numbers, CPU, who waits and how fast places free up", () => {
    const c = new MetricCollector();
    c.register(KEY, { ...SPEC, perInstance: true }, START);
    const second = (n: number, requestCount: number, waiting: number, inFlight: number): void => {
      const revisions = [
        { namespace: "shop", revision: "cart-00001", averageConcurrentRequests: 20, requestCount, waiting, inFlight },
      ];
      c.acceptReport(report(n, 0, { revisions }), START + n * 1000);
      const readings = [
        { ...pod("p1", 0, 12), cpuUsage: 0.9 },
        { ...pod("p2", 0, n < 3 ? 8 : 0), cpuUsage: 0.3 },
      ];
      c.recordScrape(KEY, { readyPods: 2, readings }, START + n * 1000 + 500);
    };
    second(1, 30, 10, 20);
    expect(c.instancesLoad(KEY, START + 1500)).toMatchObject({ waiting: 10, inFlight: 20, freedPerSecond: 0 });
    second(2, 14, 4, 20);
    second(3, 16, 0, 16);
    const seen = c.instancesLoad(KEY, START + 3500);
    // 14 + 30 - 24 = 20 ended, then 16 + 24 - 16 = 24.
    expect(seen).toMatchObject({ waiting: 0, inFlight: 16, freedPerSecond: 22 });
    expect(seen.load).toEqual({ concurrency1m: 20, concurrency10m: 20, cpu1m: 1.2 });
    expect(seen.instances).toEqual([
      { name: "p1", concurrency1m: 12, cpu1m: 0.9, concurrency: 12, cpu: 0.9, lastBusyMs: START + 3500 },
      { name: "p2", concurrency1m: 5.333333, cpu1m: 0.3, concurrency: 0, cpu: 0.3, lastBusyMs: START + 2500 },
    ]);
  });

  it("drops the windows of a revision without data", () => {
    const c = collector();
    c.acceptReport(report(1, 4), START);
    expect(c.release(KEY, START + 30_000)).toBe(false);
    expect(c.release(KEY, START + 61_000)).toBe(true);
    expect(stable(c, START + 61_000)).toBe("no-data-in-window");
  });

  it("keeps the data when windows change length", () => {
    const c = collector();
    for (let second = 0; second < 10; second++) c.acceptReport(report(second + 1, 4), START + second * 1000);
    c.register(KEY, { ...SPEC, stableWindowMs: 6000 }, START + 9000);
    expect(stable(c, START + 9000)).toBe(4);
  });
});
