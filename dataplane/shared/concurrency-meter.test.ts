import { describe, expect, it } from "vitest";
import { ConcurrencyMeter } from "./concurrency-meter.ts";

describe("ConcurrencyMeter", () => {
  it("weighs concurrency by time", () => {
    const meter = new ConcurrencyMeter(0);
    meter.enter(0);
    meter.enter(250);
    meter.leave(500);
    meter.leave(500);
    expect(meter.take(1000)).toEqual({ averageConcurrentRequests: 0.75, requestCount: 2 });
  });

  it("carries requests that are still inside into the next period, without counting them again", () => {
    const meter = new ConcurrencyMeter(0);
    meter.enter(500);
    expect(meter.take(1000)).toEqual({ averageConcurrentRequests: 0.5, requestCount: 1 });
    expect(meter.take(2000)).toEqual({ averageConcurrentRequests: 1, requestCount: 0 });
    meter.leave(2500);
    expect(meter.take(3000)).toEqual({ averageConcurrentRequests: 0.5, requestCount: 0 });
  });

  it("divides by the real length of a late period", () => {
    const meter = new ConcurrencyMeter(0);
    meter.enter(0);
    meter.leave(1000);
    expect(meter.take(2000).averageConcurrentRequests).toBe(0.5);
  });

  it("reads the present concurrency over a period of no length", () => {
    const meter = new ConcurrencyMeter(5);
    meter.enter(5);
    expect(meter.take(5)).toEqual({ averageConcurrentRequests: 1, requestCount: 1 });
  });

  it("takes a time that goes back as the last one", () => {
    const meter = new ConcurrencyMeter(100);
    meter.enter(100);
    meter.enter(50);
    meter.leave(200);
    expect(meter.take(200)).toEqual({ averageConcurrentRequests: 2, requestCount: 2 });
  });

  it("refuses to leave more often than it was entered", () => {
    expect(() => new ConcurrencyMeter(0).leave(1)).toThrow("leave without enter");
  });
});
