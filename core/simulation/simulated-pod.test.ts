import { describe, expect, it } from "vitest";
import { EventQueue } from "./event-queue.ts";
import { percentiles } from "./percentiles.ts";
import { SimulatedPod } from "./simulated-pod.ts";
import { TimeIntegral } from "./time-integral.ts";

describe("event queue", () => {
  it("runs in order of time, then of scheduling; a time that has passed is now; cancelled events do not run", () => {
    const events = new EventQueue();
    const log: string[] = [];
    const note = (name: string) => () => void log.push(`${name}@${events.nowMs}`);
    events.at(20, note("late"));
    events.at(10, note("a"));
    events.at(10, note("b"));
    events.at(10, () => events.at(5, note("past")));
    const cancelled = events.at(15, note("never"));
    events.cancel(cancelled);
    events.cancel(cancelled);
    events.run(15);
    expect(log).toEqual(["a@10", "b@10", "past@10"]);
    expect(events.nowMs).toBe(15);
    events.run(30);
    expect(log.at(-1)).toBe("late@20");
  });
});

describe("time integral", () => {
  it("weighs values by how long they lasted", () => {
    const integral = new TimeIntegral(0);
    integral.set(1, 0);
    integral.set(2, 250);
    integral.set(0, 500);
    expect(integral.takeAverage(1000)).toBe(0.75);
    integral.add(3, 1500);
    expect(integral.takeAverage(2000)).toBe(1.5);
    expect(integral.takeAverage(2000)).toBe(3);
    expect(integral.total(2000)).toBe(750 + 1500);
  });
});

describe("percentiles", () => {
  it("are by nearest rank, and 0 without values", () => {
    const hundred = Array.from({ length: 100 }, (_, i) => 100 - i);
    expect(percentiles(hundred)).toEqual({ count: 100, mean: 50.5, p50: 50, p90: 90, p95: 95, p99: 99, max: 100 });
    expect(percentiles([7])).toMatchObject({ count: 1, p50: 7, p99: 7 });
    expect(percentiles([])).toEqual({ count: 0, mean: 0, p50: 0, p90: 0, p95: 0, p99: 0, max: 0 });
  });
});

describe("simulated pod", () => {
  it("runs requests for their service time while its CPU has room", () => {
    const pod = new SimulatedPod<string>("p", 0, 10, { cpus: 1, perRequest: 0.5 });
    pod.begin("a", 100, 0);
    pod.begin("b", 100, 50);
    expect(pod.nextEndMs()).toBe(100);
    expect(pod.ended(100)).toEqual(["a"]);
    expect(pod.ended(150)).toEqual(["b"]);
    expect(pod.nextEndMs()).toBeUndefined();
    expect(pod.takeSecond(1000)).toEqual({ concurrency: 0.2, requests: 2, cpuUsage: 0.1 });
  });

  it("slows all requests down alike when the CPU is saturated, and speeds up again", () => {
    const pod = new SimulatedPod<number>("p", 0, 10, { cpus: 1, perRequest: 0.5 });
    for (let i = 0; i < 4; i++) pod.begin(i, 100, 0);
    expect(pod.nextEndMs()).toBe(200);
    // Half done at 100; a fifth request makes it slower still: 50 ms of work at speed 0.4 take 125 ms.
    pod.begin(4, 100, 100);
    expect(pod.nextEndMs()).toBeCloseTo(225, 9);
    expect(pod.ended(225)).toEqual([0, 1, 2, 3]);
    // The fifth did 50 ms of work meanwhile, and now runs at full speed.
    expect(pod.nextEndMs()).toBeCloseTo(275, 9);
    expect(pod.takeSecond(225).cpuUsage).toBe(1);
  });

  it("never uses more than its CPUs, and needs no CPU model", () => {
    const pod = new SimulatedPod<number>("p", 0, Number.POSITIVE_INFINITY, undefined);
    for (let i = 0; i < 100; i++) pod.begin(i, 10, 0);
    expect(pod.nextEndMs()).toBe(10);
    expect(pod.ended(10)).toHaveLength(100);
    expect(pod.takeSecond(10).cpuUsage).toBeUndefined();
  });
});
