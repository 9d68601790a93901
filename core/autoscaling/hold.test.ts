import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DEFAULT_AUTOSCALER_CONFIG, resolveKpaSpec } from "./config.ts";
import type { HoldLimits, HoldState } from "./hold.ts";
import { NO_HOLD, holdUnreadyScaleUp } from "./hold.ts";
import type { KpaSpec } from "./kpa.ts";
import { TICK_MS, decide, initialKpaState } from "./kpa.ts";

const SPEC: KpaSpec = { ...resolveKpaSpec(DEFAULT_AUTOSCALER_CONFIG, { windowMs: 6000 }, 10, true), targetValue: 7 };
const LIMITS: HoldLimits = { reachable: true, maxPods: 0, startTimeoutMs: 40_000 };

type Row = readonly [stable: number, panic: number, ready: number];

function play(rows: readonly Row[], limits: HoldLimits = LIMITS, spec = SPEC, ready = 0) {
  let state = initialKpaState(ready, 0);
  let hold: HoldState = NO_HOLD;
  return rows.map(([stable, panic, readyPods], i) => {
    const nowMs = i * TICK_MS;
    const decision = decide(spec, { readyPods, load: { kind: "measured", stable, panic } }, state, nowMs);
    if (!decision.valid) throw new Error(decision.reason);
    const result = holdUnreadyScaleUp(limits, state, decision, hold, nowMs);
    state = decision.next;
    hold = result.next;
    return { original: decision.desired, pods: result.pods, held: result.held, event: decision.explanation.panicEvent };
  });
}

const times = (count: number, row: Row): Row[] => Array.from({ length: count }, () => row);

describe("panic's end", () => {
  it("does not undo a scale-up whose pods are not ready", () => {
    // Panic asks for 50; only 20 become ready; the load then seems to need 12.
    const played = play([[100, 350, 4], ...times(8, [84, 84, 20])]);
    expect(played.map(({ original, pods }) => [original, pods])).toEqual([
      [50, 50],
      [50, 50],
      [50, 50],
      [50, 50],
      ...Array.from({ length: 5 }, () => [12, 50]),
    ]);
    expect(played[4]).toMatchObject({ event: "ends", held: true });
  });

  it("is undone as soon as the last of them is ready", () => {
    const played = play([[100, 350, 4], ...times(5, [84, 84, 20]), [84, 84, 50], [84, 84, 20]]);
    expect(played.slice(5).map(one => one.pods)).toEqual([50, 25, 12]);
  });

  it("is undone when they are not ready in time", () => {
    const played = play([[100, 350, 4], ...times(30, [84, 84, 20])]);
    const released = played.findIndex(one => one.event === "none" && !one.held);
    // Panic ends at 8 s, 40 s of waiting follow.
    expect(released * TICK_MS).toBe(48_000);
  });

  it("holds only what panic started, up to the maximum scale", () => {
    expect(play([[100, 350, 4], ...times(5, [84, 84, 20])], { ...LIMITS, maxPods: 15 }).at(-1)).toMatchObject({
      pods: 12,
    });
    expect(play([[100, 350, 4], ...times(5, [84, 84, 20])], { ...LIMITS, maxPods: 30 }).at(-1)).toMatchObject({
      pods: 30,
    });
  });

  it("holds nothing of an unreachable revision, nor of a panic that only began with the process", () => {
    expect(play([[100, 350, 4], ...times(5, [84, 84, 20])], { ...LIMITS, reachable: false }).at(-1)!.held).toBe(false);
    const restarted = play([...times(4, [14, 14, 7]), [14, 14, 6], [14, 14, 6]], LIMITS, SPEC, 7);
    expect(restarted.some(one => one.held)).toBe(false);
  });

  it("does not hold what was all ready once and is not any more", () => {
    const played = play([[100, 350, 4], [84, 84, 50], ...times(5, [84, 84, 20])]);
    expect(played.at(-1)).toMatchObject({ pods: 12, held: false });
  });

  it("still waits for the larger number after a smaller panic", () => {
    const played = play([[100, 350, 4], ...times(5, [84, 84, 12]), [84, 190, 12], ...times(5, [84, 84, 20])]);
    expect(played.slice(4, 8).map(one => one.pods)).toEqual([50, 50, 28, 28]);
    expect(played.at(-1)).toMatchObject({ original: 12, pods: 50, held: true });
  });

  it("lets a new panic go above what is held", () => {
    const played = play([[100, 350, 4], ...times(5, [84, 84, 20]), [600, 700, 20]]);
    expect(played.at(-1)).toMatchObject({ pods: 100, held: false });
  });

  it("never lowers the original's number and never goes beyond what was asked for", () => {
    const row = fc.tuple(fc.nat(500), fc.nat(500), fc.nat(60));
    fc.assert(
      fc.property(fc.array(row, { maxLength: 80 }), rows => {
        let most = 0;
        for (const { original, pods, held } of play(rows)) {
          most = Math.max(most, original);
          expect(pods).toBeGreaterThanOrEqual(original);
          expect(pods).toBeLessThanOrEqual(most);
          expect(held).toBe(pods > original);
        }
      }),
      { seed: 4, numRuns: 300 },
    );
  });
});
