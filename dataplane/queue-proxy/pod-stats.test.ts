import { describe, expect, it } from "vitest";
import { PodStatSchema } from "../../api/wire/stats.ts";
import { FakeClock } from "../shared/testing/fake-clock.ts";
import { PodStats } from "./pod-stats.ts";

describe("PodStats", () => {
  it("reports whole seconds, weighted by time, with gateways' requests apart", () => {
    const clock = new FakeClock();
    const stats = new PodStats("pod-a", clock);
    stats.start();
    stats.enter(true);
    clock.advance(500);
    stats.enter(false);
    stats.leave(true);
    clock.advance(250);
    stats.leave(false);
    // What happens in the second under way does not show yet.
    expect(stats.last).toMatchObject({ averageConcurrentRequests: 0, requestCount: 0, uptimeMs: 0 });
    clock.advance(250);
    expect(stats.last).toEqual({
      podName: "pod-a",
      timestampMs: clock.wallMs(),
      uptimeMs: 1000,
      averageConcurrentRequests: 0.75,
      averageProxiedConcurrentRequests: 0.5,
      requestCount: 2,
      proxiedRequestCount: 1,
    });
    expect(PodStatSchema.parse(stats.last)).toEqual(stats.last);
    clock.advance(1000);
    expect(stats.last).toMatchObject({ averageConcurrentRequests: 0, requestCount: 0, uptimeMs: 2000 });
    stats.stop();
    expect(clock.pending).toBe(0);
  });

  it("reports the CPU of the user's containers where it is measured", () => {
    const clock = new FakeClock();
    let usage: number | undefined;
    const stats = new PodStats("pod-a", clock, () => usage);
    stats.start();
    usage = 1.5;
    clock.advance(1000);
    expect(stats.last.cpuUsage).toBe(1.5);
    usage = undefined;
    clock.advance(1000);
    expect("cpuUsage" in stats.last).toBe(false);
  });
});
