import { describe, expect, it } from "vitest";
import { applyBounds, resolveBounds } from "./bounds.ts";
import { DEFAULT_AUTOSCALER_CONFIG, resolveLifecycleSpec } from "./config.ts";
import type { AutoscalerConfig, RevisionScaling } from "./config.ts";
import type { Activity, LifecycleInput, LifecycleSpec, LifecycleState } from "./lifecycle.ts";
import { initialLifecycleState, step } from "./lifecycle.ts";

const S = 1000;

function spec(scaling: RevisionScaling = {}, config: Partial<AutoscalerConfig> = {}, reachable = true): LifecycleSpec {
  return resolveLifecycleSpec({ ...DEFAULT_AUTOSCALER_CONFIG, ...config }, scaling, reachable, 600 * S);
}

type Row = Partial<LifecycleInput> & { readonly at: number };

/** Plays rows (times in seconds) and gives what each step came to. */
function play(of: LifecycleSpec, rows: readonly Row[], from: LifecycleState = initialLifecycleState(0)) {
  let state = from;
  return rows.map(({ at, ...more }) => {
    const input = { desired: 1, excessBurstCapacity: -1, readyPods: 1, gatewaysInPathSinceMs: 0, ...more };
    const result = step(of, input, state, at * S);
    state = result.next;
    return { replicas: result.replicas, rule: result.rule, phase: state.activity.phase, mode: result.mode, result };
  });
}

const active = (sinceS: number): LifecycleState => ({
  activity: { phase: "active", sinceMs: sinceS * S },
  initialScaleReached: true,
});

describe("bounds", () => {
  it("come from annotations, then the cluster, the maximum under the limit", () => {
    const config = { ...DEFAULT_AUTOSCALER_CONFIG, minScale: 1, maxScale: 8, maxScaleLimit: 10 };
    expect(resolveBounds(config, {}, true)).toEqual({ min: 1, max: 8, initial: 1 });
    expect(resolveBounds(config, { minScale: 2, maxScale: 4, initialScale: 3 }, true)).toEqual({
      min: 2,
      max: 4,
      initial: 3,
    });
    expect(resolveBounds(config, { maxScale: 50 }, true).max).toBe(10);
    expect(resolveBounds({ ...config, maxScale: 0 }, {}, true).max).toBe(10);
    expect(resolveBounds(config, { minScale: 2 }, false).min).toBe(0);
  });

  it("case 30: a maximum below the limit stays", () => {
    expect(resolveBounds({ ...DEFAULT_AUTOSCALER_CONFIG, maxScaleLimit: 5 }, { maxScale: 3 }, true).max).toBe(3);
  });

  it("take initial scale 0 only where the cluster allows it", () => {
    expect(resolveBounds(DEFAULT_AUTOSCALER_CONFIG, { initialScale: 0 }, true).initial).toBe(1);
    expect(
      resolveBounds({ ...DEFAULT_AUTOSCALER_CONFIG, allowZeroInitialScale: true }, { initialScale: 0 }, true).initial,
    ).toBe(0);
  });

  it("hold initial scale until it was reached, then the minimum; a minimum wins over a smaller maximum", () => {
    expect(applyBounds({ min: 2, max: 0, initial: 5 }, true, 1)).toEqual({ pods: 5, rule: "initial-scale" });
    expect(applyBounds({ min: 2, max: 0, initial: 5 }, false, 1)).toEqual({ pods: 2, rule: "min-scale" });
    expect(applyBounds({ min: 5, max: 0, initial: 3 }, true, 1)).toEqual({ pods: 5, rule: "min-scale" });
    expect(applyBounds({ min: 5, max: 3, initial: 1 }, false, 1)).toEqual({ pods: 5, rule: "min-scale" });
    expect(applyBounds({ min: 0, max: 3, initial: 1 }, false, 9)).toEqual({ pods: 3, rule: "max-scale" });
    expect(applyBounds({ min: 0, max: 0, initial: 1 }, false, 9)).toEqual({ pods: 9, rule: "none" });
  });
});

describe("path to zero", () => {
  it("waits for the stable window, then the grace period of the gateways in the path", () => {
    const rows = [
      { at: 10, desired: 0 },
      { at: 59, desired: 0 },
      { at: 60, desired: 0 },
      { at: 61, desired: 0, gatewaysInPathSinceMs: undefined },
      { at: 62, desired: 0, gatewaysInPathSinceMs: 62 * S },
      { at: 89, desired: 0, gatewaysInPathSinceMs: 62 * S },
      { at: 90, desired: 0, gatewaysInPathSinceMs: 62 * S },
    ];
    expect(play(spec(), rows, active(0)).map(({ replicas, rule, phase }) => [replicas, rule, phase])).toEqual([
      [1, "active-less-than-stable-window", "active"],
      [1, "active-less-than-stable-window", "active"],
      [undefined, "deactivating", "inactive"],
      [undefined, "awaiting-gateways-in-path", "inactive"],
      [undefined, "awaiting-grace-period", "inactive"],
      [undefined, "awaiting-grace-period", "inactive"],
      [0, "scaled-to-zero", "inactive"],
    ]);
  });

  it("goes at once when the gateways were in the path for the whole grace period", () => {
    const [, second] = play(
      spec(),
      [
        { at: 60, desired: 0 },
        { at: 60, desired: 0 },
      ],
      active(0),
    );
    expect(second).toMatchObject({ replicas: 0, rule: "scaled-to-zero" });
  });

  it("counts the time the gateways were in the path before", () => {
    const rows = [60, 69.9, 70].map(at => ({ at, desired: 0, gatewaysInPathSinceMs: 40 * S }));
    expect(play(spec(), rows, active(0)).map(row => row.replicas)).toEqual([undefined, undefined, 0]);
  });

  it("says when it will look again", () => {
    const [first] = play(spec(), [{ at: 10, desired: 0 }], active(0));
    expect(first!.result.recheckAtMs).toBe(60 * S);
    const [, grace] = play(
      spec(),
      [
        { at: 60, desired: 0 },
        { at: 61, desired: 0, gatewaysInPathSinceMs: 50 * S },
      ],
      active(0),
    );
    expect(grace!.result.recheckAtMs).toBe(80 * S);
  });

  it("keeps the last pod for the retention period, not when unreachable", () => {
    const inactive: LifecycleState = {
      activity: { phase: "inactive", sinceMs: 0, reason: "no-traffic" },
      initialScaleReached: true,
    };
    const retained = { scaleToZeroPodRetentionPeriodMs: 120 * S };
    expect(
      play(
        spec(retained),
        [
          { at: 119, desired: 0 },
          { at: 120, desired: 0 },
        ],
        inactive,
      ).map(row => row.rule),
    ).toEqual(["awaiting-pod-retention", "scaled-to-zero"]);
    expect(play(spec(retained, {}, false), [{ at: 40, desired: 0 }], inactive)[0]!.replicas).toBe(0);
  });

  it("is cancelled by a request in between", () => {
    const rows = [
      { at: 60, desired: 0, gatewaysInPathSinceMs: 60 * S },
      { at: 70, desired: 1, gatewaysInPathSinceMs: 60 * S },
      { at: 72, desired: 0, gatewaysInPathSinceMs: 60 * S },
    ];
    expect(play(spec(), rows, active(0)).map(({ replicas, rule, phase }) => [replicas, rule, phase])).toEqual([
      [undefined, "deactivating", "inactive"],
      [1, "desired", "active"],
      [1, "active-less-than-stable-window", "active"],
    ]);
  });

  it("never goes under one with enable-scale-to-zero false", () => {
    expect(play(spec({}, { enableScaleToZero: false }), [{ at: 900, desired: 0 }], active(0))[0]).toMatchObject({
      replicas: 1,
      rule: "scale-to-zero-disabled",
    });
  });

  it("leaves the pods alone while nothing was decided", () => {
    expect(play(spec(), [{ at: 900, desired: undefined }], active(0))[0]).toMatchObject({
      replicas: undefined,
      rule: "awaiting-decision",
    });
  });
});

describe("activation", () => {
  it("is over when the threshold is ready, and begins again under it", () => {
    const rows = [
      { at: 1, desired: undefined, readyPods: 0 },
      { at: 3, desired: 1, readyPods: 1 },
      { at: 5, desired: 1, readyPods: 0 },
    ];
    expect(play(spec(), rows).map(row => row.phase)).toEqual(["activating", "active", "activating"]);
  });

  it("holds initial scale until it was ready once", () => {
    const rows = [
      { at: 1, desired: undefined, readyPods: 0 },
      { at: 3, desired: 1, readyPods: 2 },
      { at: 5, desired: 1, readyPods: 3 },
      { at: 7, desired: 1, readyPods: 3 },
    ];
    const played = play(spec({ initialScale: 3 }), rows);
    expect(played.map(row => [row.replicas, row.phase])).toEqual([
      [3, "activating"],
      [3, "activating"],
      [3, "active"],
      [1, "active"],
    ]);
  });

  it("with initial scale 0 is inactive from the start, and activates for a request", () => {
    const of = spec({ initialScale: 0 }, { allowZeroInitialScale: true });
    const rows = [
      { at: 1, desired: undefined, readyPods: 0 },
      { at: 9, desired: 1, readyPods: 0 },
      { at: 12, desired: 1, readyPods: 1 },
    ];
    expect(play(of, rows).map(row => [row.replicas, row.phase])).toEqual([
      [undefined, "inactive"],
      [1, "activating"],
      [1, "active"],
    ]);
  });

  it("is given up after the progress deadline and half a minute", () => {
    const rows = [
      { at: 630, desired: undefined, readyPods: 0 },
      { at: 630.5, desired: undefined, readyPods: 0 },
    ];
    const restarted: LifecycleState = { activity: { phase: "activating", sinceMs: 0 }, initialScaleReached: true };
    const played = play(spec(), rows, restarted);
    expect(played.map(row => [row.replicas, row.rule])).toEqual([
      [undefined, "awaiting-activation"],
      [0, "activation-timed-out"],
    ]);
    expect(played[1]!.result.next.activity).toMatchObject({ phase: "inactive", reason: "timed-out" });
  });

  it("case 22: is never given up at the first start, as long as a route leads to it", () => {
    const rows = [
      { at: 9000, desired: undefined, readyPods: 0 },
      { at: 9002, desired: 0, readyPods: 0 },
      { at: 9004, desired: 0, readyPods: 1 },
    ];
    expect(play(spec(), rows).map(row => [row.replicas, row.rule, row.phase])).toEqual([
      [undefined, "awaiting-activation", "activating"],
      [1, "awaiting-activation", "activating"],
      [1, "awaiting-activation", "active"],
    ]);
    expect(play(spec({}, {}, false), rows)[0]).toMatchObject({ replicas: 0, phase: "inactive" });
  });

  it("case 16: a crash-looping revision with min-scale 1 goes to zero once no route leads to it", () => {
    const rows = [{ at: 20, desired: undefined, readyPods: 0 }];
    expect(play(spec({ minScale: 1 }), rows)[0]).toMatchObject({ replicas: 1 });
    expect(play(spec({ minScale: 1 }, {}, false), rows)[0]).toMatchObject({
      replicas: 0,
      rule: "unreachable-never-ready",
      phase: "inactive",
    });
  });

  it("case 15: initial scale holds nothing of an unreachable revision", () => {
    const rows = [
      { at: 20, desired: 0, readyPods: 9 },
      { at: 90, desired: 0, readyPods: 9 },
      { at: 90, desired: 0, readyPods: 9 },
    ];
    expect(play(spec({ initialScale: 60 }, {}, false), rows).map(row => row.replicas)).toEqual([
      undefined,
      undefined,
      0,
    ]);
  });
});

describe("path mode", () => {
  const modes = (rows: readonly Row[], of = spec()) => play(of, rows, active(0)).map(row => row.mode);

  it("is serve with pods and burst capacity to spare, else proxy", () => {
    expect(
      modes([
        { at: 1, excessBurstCapacity: 0 },
        { at: 2, excessBurstCapacity: 9 },
        { at: 3, excessBurstCapacity: -1 },
      ]),
    ).toEqual(["serve", "serve", "proxy"]);
    expect(modes([{ at: 61, desired: 0, excessBurstCapacity: 9 }])).toEqual(["proxy"]);
    expect(modes([{ at: 1, desired: undefined, excessBurstCapacity: 9 }])).toEqual(["proxy"]);
  });
});

describe("repeating a step", () => {
  it("repeats its outcome and keeps the state's identity", () => {
    const activity: Activity = { phase: "active", sinceMs: 0 };
    const state: LifecycleState = { activity, initialScaleReached: true };
    const input = { desired: 2, excessBurstCapacity: 1, readyPods: 2, gatewaysInPathSinceMs: undefined };
    const first = step(spec(), input, state, 5 * S);
    expect(first.next).toBe(state);
    expect(step(spec(), input, first.next, 5 * S)).toEqual(first);
  });
});
