import { describe, expect, it } from "vitest";
import { DEFAULT_AUTOSCALER_CONFIG, resolveKpaSpec } from "./config.ts";
import type { KpaSpec, KpaState } from "./kpa.ts";
import { TICK_MS, decide, initialExcessBurstCapacity, initialKpaState } from "./kpa.ts";

const SPEC: KpaSpec = { ...resolveKpaSpec(DEFAULT_AUTOSCALER_CONFIG, {}, 10, true), targetValue: 7 };

/** Plays [stable, panic, ready] rows one tick apart; gives the wanted pods of each tick. */
function play(spec: KpaSpec, rows: readonly (readonly [number, number, number])[], from = initialKpaState(0, 0)) {
  let state: KpaState = from;
  return rows.map(([stable, panic, readyPods], i) => {
    const decision = decide(spec, { readyPods, load: { kind: "measured", stable, panic } }, state, i * TICK_MS);
    if (!decision.valid) throw new Error(decision.reason);
    state = decision.next;
    return decision;
  });
}

function desired(...args: Parameters<typeof play>): number[] {
  return play(...args).map(decision => decision.desired);
}

describe("Knative's decision", () => {
  it("divides the stable value by the target and rounds up", () => {
    expect(
      desired(SPEC, [
        [30, 30, 5],
        [35, 35, 5],
        [35.000001, 35, 5],
      ]),
    ).toEqual([5, 5, 6]);
  });

  it("begins panic at the threshold and goes by the larger window", () => {
    const [tick] = play(SPEC, [[30, 90, 4]]);
    expect(tick).toMatchObject({
      desired: 13,
      explanation: { winner: "panic-window", stablePods: 5, panicPods: 13, panicRatio: 3.25, panicEvent: "begins" },
    });
  });

  it("only goes up in panic, and ends it after a whole stable window under the threshold", () => {
    const ticks = play(SPEC, [[30, 90, 4], ...Array.from({ length: 31 }, () => [7, 7, 13] as const)]);
    expect(ticks.slice(1, 31).every(tick => tick.desired === 13 && tick.explanation.winner === "panic-ratchet")).toBe(
      true,
    );
    expect(ticks[31]).toMatchObject({ desired: 6, explanation: { panicEvent: "ends", winner: "max-scale-down-rate" } });
  });

  it("goes up by at most the up rate and down by at most the down rate, to zero at once when unreachable", () => {
    const slow = { ...SPEC, maxScaleUpRate: 1.5, panicThreshold: 10 };
    expect(desired(slow, [[700, 700, 11]])).toEqual([17]);
    expect(desired(SPEC, [[0, 0, 9]])).toEqual([4]);
    expect(desired({ ...SPEC, reachable: false }, [[0, 0, 9]])).toEqual([0]);
  });

  it("starts with the activation scale, and keeps zero at zero", () => {
    const spec = { ...SPEC, activationScale: 4 };
    expect(
      desired(spec, [
        [1, 1, 0],
        [0, 0, 0],
      ]),
    ).toEqual([4, 0]);
    expect(desired(spec, [[0, 0, 0]])).toEqual([0]);
  });

  it("delays going down to the maximum of the delay window, and has no window without a delay", () => {
    const spec = { ...SPEC, scaleDownDelayMs: 6000 };
    expect(
      desired(spec, [
        [35, 35, 5],
        [21, 21, 5],
        [21, 21, 5],
        [21, 21, 5],
      ]),
    ).toEqual([5, 5, 5, 3]);
    expect(
      desired(SPEC, [
        [35, 35, 5],
        [21, 21, 5],
      ]),
    ).toEqual([5, 3]);
  });

  it("computes excess burst capacity from real ready pods and the panic value", () => {
    const ebc = (targetBurstCapacity: number, ready: number) =>
      play({ ...SPEC, targetBurstCapacity }, [[30, 25.5, ready]])[0]!.excessBurstCapacity;
    expect([ebc(0, 5), ebc(-1, 5), ebc(20, 5), ebc(20, 0)]).toEqual([0, -1, 4, -46]);
    expect(initialExcessBurstCapacity({ ...SPEC, totalValue: 10, targetBurstCapacity: 25 }, 3)).toBe(5);
  });

  it("does not decide without data, which is not the same as zero requests", () => {
    const state = initialKpaState(3, 0);
    expect(decide(SPEC, { readyPods: 3, load: { kind: "none", reason: "no-data-in-window" } }, state, 0)).toEqual({
      valid: false,
      reason: "no-data-in-window",
    });
    expect(decide(SPEC, { readyPods: undefined, load: { kind: "measured", stable: 0, panic: 0 } }, state, 0)).toEqual({
      valid: false,
      reason: "pods-unknown",
    });
  });

  it("case 17: a restart at 7 pods holds 7 until a stable window has been seen", () => {
    const rows = [
      [7, 7, 7],
      [14, 14, 7],
      [40, 40, 7],
    ] as const;
    expect(desired(SPEC, rows, initialKpaState(7, 0))).toEqual([7, 7, 7]);
  });

  it("case 15: an unreachable revision is not held by panic bounds of the down rate", () => {
    expect(
      desired({ ...SPEC, reachable: false }, [
        [0, 0, 64],
        [0, 0, 64],
      ]),
    ).toEqual([0, 0]);
  });
});
