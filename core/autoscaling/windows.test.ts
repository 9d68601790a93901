import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LinearWindow, WeightedWindow, createWindow } from "./bucket-window.ts";
import type { MaxWindow } from "./max-window.ts";
import { EMPTY_MAX_WINDOW, currentMax, recordMax } from "./max-window.ts";
import { sampleSize, scrapeOrder } from "./sampling.ts";
import { SecondAligner } from "./second-aligner.ts";

const S = 1000;
const START = 1_700_000_000 * S;

/** Records values in consecutive seconds from START on; the average as of the last of them. */
function averageOf(window: LinearWindow, values: readonly number[]): number {
  values.forEach((value, i) => window.record(START + i * S, value));
  return window.average(START + (values.length - 1) * S);
}

describe("linear window", () => {
  it("averages a young window over its own age", () => {
    expect(averageOf(new LinearWindow(60 * S), [10, 10, 10, 10, 10, 10])).toBe(10);
    expect(averageOf(new LinearWindow(60 * S), [6, 0, 0])).toBe(2);
  });

  it("does not count seconds after the last write until a newer write makes them a gap", () => {
    const window = new LinearWindow(60 * S);
    averageOf(window, [10, 10, 10, 10, 10, 10]);
    expect(window.average(START + 9 * S)).toBe(10);
    window.record(START + 9 * S, 0);
    expect(window.average(START + 9 * S)).toBe(6);
  });

  // Measured on the original's buckets: asked at 9.99 s -> 10, at 10.2 s -> 0, at 10.9 s -> 10.
  it("of one second is 0 until the present second was told of", () => {
    const window = new LinearWindow(S);
    for (let second = 0; second < 10; second++) window.record(START + second * S + 700, 10);
    expect(window.average(START + 9990)).toBe(10);
    expect(window.average(START + 10_200)).toBe(0);
    window.record(START + 10_700, 10);
    expect(window.average(START + 10_900)).toBe(10);
  });

  it("sums what several sources record for one second", () => {
    const window = new LinearWindow(6 * S);
    window.record(START + 10, 3);
    window.record(START + 990, 4);
    expect(window.average(START + 999)).toBe(7);
  });

  it("tells no data from zero", () => {
    const window = new LinearWindow(6 * S);
    expect(window.isEmpty(START)).toBe(true);
    window.record(START, 0);
    expect([window.isEmpty(START + 6 * S), window.isEmpty(START + 7 * S)]).toEqual([false, true]);
  });

  it("begins anew after a window of silence", () => {
    const window = new LinearWindow(6 * S);
    averageOf(window, [100, 100, 100, 100, 100, 100]);
    window.record(START + 60 * S, 4);
    expect(window.average(START + 60 * S)).toBe(4);
  });

  it("takes late values into their own second and drops those a window old", () => {
    const window = new LinearWindow(6 * S);
    averageOf(window, [1, 1, 1, 1, 1, 1, 1]);
    window.record(START + 3 * S, 6);
    window.record(START, 100);
    expect(window.average(START + 6 * S)).toBe(2);
  });

  it("keeps what fits when it changes length", () => {
    const window = new LinearWindow(60 * S);
    averageOf(window, [9, 9, 9, 9, 3, 3, 3, 3, 3, 3]);
    window.resize(6 * S, START + 9 * S);
    expect(window.average(START + 9 * S)).toBe(3);
  });

  it("equals the mean of the seconds of the window, for dense data", () => {
    const values = fc.array(fc.integer({ min: 0, max: 1000 }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(values, fc.integer({ min: 1, max: 90 }), (data, seconds) => {
        const last = data.slice(-seconds);
        const mean = last.reduce((sum, value) => sum + value, 0) / last.length;
        expect(averageOf(new LinearWindow(seconds * S), data)).toBeCloseTo(mean, 5);
      }),
      { seed: 4, numRuns: 300 },
    );
  });
});

describe("weighted window", () => {
  it("weighs the newest second most", () => {
    const six = averageOf(new WeightedWindow(6 * S), [10, 10, 10, 10, 10, 10]);
    expect(six).toBeCloseTo(9.999, 3);
    const rising = averageOf(new WeightedWindow(6 * S), [0, 0, 0, 0, 0, 10]);
    const falling = averageOf(new WeightedWindow(6 * S), [10, 0, 0, 0, 0, 0]);
    expect(rising).toBeCloseTo(7.8456, 4);
    expect(falling).toBeLessThan(0.01);
  });

  it("has coefficients that leave 0.0001 of the weight outside the window", () => {
    for (let seconds = 1; seconds <= 41; seconds++) {
      const full = averageOf(
        new WeightedWindow(seconds * S),
        Array.from({ length: seconds }, () => 1),
      );
      expect(full).toBeCloseTo(0.9999, 9);
    }
    expect(averageOf(new WeightedWindow(42 * S), [0, 1])).toBe(0.2);
  });

  it("is chosen by name", () => {
    expect(createWindow("linear", S)).toBeInstanceOf(LinearWindow);
    expect(createWindow("weighted-exponential", S)).toBeInstanceOf(WeightedWindow);
  });
});

describe("maximum window", () => {
  it("equals the maximum of the slots that count", () => {
    const record = fc.tuple(fc.nat(9000), fc.nat(20));
    fc.assert(
      fc.property(
        fc.array(record, { minLength: 1, maxLength: 100 }),
        fc.integer({ min: 1, max: 30 }),
        (rows, seconds) => {
          let window: MaxWindow = EMPTY_MAX_WINDOW;
          let nowMs = START;
          const all: { slot: number; value: number }[] = [];
          for (const [stepMs, value] of rows) {
            nowMs += stepMs;
            const before = [...window];
            const next = recordMax(window, seconds * S, 2 * S, nowMs, value);
            expect(window).toEqual(before);
            window = next;
            const slot = Math.floor(nowMs / (2 * S));
            all.push({ slot, value });
            const counted = all.filter(one => slot - one.slot < Math.ceil(seconds / 2)).map(one => one.value);
            expect(currentMax(window)).toBe(Math.max(...counted));
          }
        },
      ),
      { seed: 4, numRuns: 300 },
    );
  });

  it("has no maximum before the first record", () => {
    expect(currentMax(EMPTY_MAX_WINDOW)).toBeUndefined();
  });
});

describe("sampling", () => {
  it("asks all of up to four pods, then a sample that hardly grows", () => {
    expect([0, 1, 3, 4, 10, 100, 1000].map(sampleSize)).toEqual([0, 1, 3, 4, 7, 14, 16]);
  });

  it("asks pods that have seen a whole window first, and every pod once", () => {
    const pods = Array.from({ length: 20 }, (_, i) => ({ name: `p${i}`, startedMs: i < 12 ? 0 : 95 * S }));
    const order = scrapeOrder(pods, 60 * S, 100 * S, () => 0.3);
    expect(new Set(order)).toEqual(new Set(pods.map(pod => pod.name)));
    const old = new Set(pods.slice(0, 12).map(pod => pod.name));
    expect(order.slice(0, 12).every(name => old.has(name))).toBe(true);
  });
});

describe("second aligner", () => {
  it("gives consecutive reports consecutive seconds, whatever the jitter and the sender's clock", () => {
    const jitter = fc.array(fc.nat(900), { minLength: 2, maxLength: 60 });
    fc.assert(
      fc.property(jitter, fc.integer({ min: -1e9, max: 1e9 }), (delays, skew) => {
        const fastest = Math.min(...delays);
        const aligner = new SecondAligner(START + skew, START + fastest);
        const seconds = delays.map((delay, i) =>
          Math.floor(aligner.align(START + skew + i * S, START + i * S + delay) / S),
        );
        seconds.forEach((second, i) => expect(second - seconds[0]!).toBe(i));
      }),
      { seed: 4, numRuns: 200 },
    );
  });

  it("never records into the future and follows a sender whose clock was set", () => {
    const aligner = new SecondAligner(0, START + 900);
    expect(aligner.align(1000, START + 1100)).toBe(START + 1100);
    expect(aligner.align(3_600_000, START + 2100)).toBe(START + 2100);
    expect(aligner.align(3_601_000, START + 3150)).toBe(START + 3100);
    expect(aligner.align(3_602_000, START + 9000)).toBe(START + 9000);
  });
});
