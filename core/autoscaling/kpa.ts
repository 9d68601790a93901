/**
 * Knative's decision: how many pods, from the load over a stable and a panic window.
 *
 * Source of the rules: knative.dev/serving v0.51.0 pkg/autoscaler/scaling, equal to it in all three result fields at
 * every tick (hack/oracles/kpa, test/vectors/kpa).
 *
 * Worked numbers: target 7, stable value 30, panic value 90, 4 pods ready, rates 1000 and 2, threshold 2.0:
 * bounds [floor(4 / 2), ceil(1000 x 4)] = [2, 4000]; stable ceil(30 / 7) = 5, panic ceil(90 / 7) = 13;
 * 13 / 4 = 3.25 >= 2.0 -> panic: max(5, 13) = 13, and 13 is the floor until panic ends.
 */
import type { Aggregation } from "./bucket-window.ts";
import type { ScalingMetric } from "./config.ts";
import type { MaxWindow } from "./max-window.ts";
import { EMPTY_MAX_WINDOW, currentMax, recordMax } from "./max-window.ts";

/** How often every active revision is decided; also the slot of the scale-down delay. */
export const TICK_MS = 2000;

export interface KpaSpec {
  readonly metric: ScalingMetric;
  readonly aggregation: Aggregation;
  /** Aimed-at load per pod, > 0. */
  readonly targetValue: number;
  /** Load a pod can take. */
  readonly totalValue: number;
  /** -1: unlimited, 0: none. */
  readonly targetBurstCapacity: number;
  /** Ratio of wanted to ready pods at which panic begins (2.0 = 200 %). */
  readonly panicThreshold: number;
  readonly stableWindowMs: number;
  readonly panicWindowMs: number;
  readonly maxScaleUpRate: number;
  readonly maxScaleDownRate: number;
  /** 0: no delay window at all. */
  readonly scaleDownDelayMs: number;
  /** Pods for the first request; values under 2 have no effect. */
  readonly activationScale: number;
  readonly reachable: boolean;
}

/** Load of one revision over the spec's two windows, as the collector measured it. */
export type WindowedLoad =
  | { readonly kind: "measured"; readonly stable: number; readonly panic: number }
  | { readonly kind: "none"; readonly reason: NoLoadReason };

export type NoLoadReason = "no-data-in-window" | "not-collecting";

export interface KpaObservation {
  /** Ready pods that are not terminating; undefined when they could not be counted. */
  readonly readyPods: number | undefined;
  readonly load: WindowedLoad;
}

export type KpaMode =
  | { readonly mode: "stable" }
  /** `sinceMs`: the last tick at which the threshold was crossed; `maxPods`: the ratchet. */
  | { readonly mode: "panic"; readonly sinceMs: number; readonly maxPods: number };

/** Kept between the decisions of a revision; treat as opaque. */
export interface KpaState {
  readonly panic: KpaMode;
  readonly delay: MaxWindow;
}

export type PanicEvent = "none" | "begins" | "extended" | "holds" | "ends";

/** Which rule fixed the number, in the order in which they apply. */
export type KpaRule =
  | "stable-window"
  | "panic-window"
  | "max-scale-up-rate"
  | "max-scale-down-rate"
  | "activation-scale"
  | "panic-ratchet"
  | "scale-down-delay";

/** The number of each rule, for `fairway why`. */
export interface KpaExplanation {
  readonly winner: KpaRule;
  readonly readyPods: number;
  readonly stableValue: number;
  readonly panicValue: number;
  readonly targetValue: number;
  /** ceil(stableValue / targetValue), before any bound. */
  readonly stableWanted: number;
  /** ceil(panicValue / targetValue), before any bound. */
  readonly panicWanted: number;
  readonly maxScaleDown: number;
  readonly maxScaleUp: number;
  /** After rates and activation scale. */
  readonly stablePods: number;
  readonly panicPods: number;
  readonly panicEvent: PanicEvent;
  /** panicWanted / max(1, readyPods), compared with panicThreshold. */
  readonly panicRatio: number;
  readonly panicThreshold: number;
  /** The floor while in panic, else 0. */
  readonly panicRatchet: number;
  /** The number before the scale-down delay. */
  readonly beforeDelay: number;
}

export type KpaInvalidReason = NoLoadReason | "pods-unknown";

export type KpaDecision =
  | { readonly valid: false; readonly reason: KpaInvalidReason }
  | {
      readonly valid: true;
      readonly desired: number;
      readonly excessBurstCapacity: number;
      readonly next: KpaState;
      readonly explanation: KpaExplanation;
    };

const STABLE: KpaMode = { mode: "stable" };

/**
 * State of a revision that this process has not decided before. With more than one ready pod it begins in panic, so that a
 * restart without history holds what is there until a whole stable window has been seen.
 */
export function initialKpaState(readyPods: number, nowMs: number): KpaState {
  return {
    panic: readyPods > 1 ? { mode: "panic", sinceMs: nowMs, maxPods: readyPods } : STABLE,
    delay: EMPTY_MAX_WINDOW,
  };
}

/** Excess burst capacity to go by before the first decision: initial scale's room less the burst to be ready for. */
export function initialExcessBurstCapacity(spec: KpaSpec, initialScale: number): number {
  const burst = spec.targetBurstCapacity;
  return burst === -1 || burst === 0 ? burst : Math.trunc(initialScale * spec.totalValue - burst);
}

function excessBurstCapacity(spec: KpaSpec, readyPods: number, panicValue: number): number {
  if (spec.targetBurstCapacity === 0) return 0;
  if (spec.targetBurstCapacity < 0) return -1;
  return Math.floor(readyPods * spec.totalValue - spec.targetBurstCapacity - panicValue);
}

/**
 * One decision. Called every TICK_MS for a revision with load, and at once when a request waits at zero. Pure; neither
 * blocks nor throws. `next` of a valid decision is the state for the following one; an invalid one leaves the state as is.
 */
export function decide(spec: KpaSpec, observation: KpaObservation, state: KpaState, nowMs: number): KpaDecision {
  const { readyPods, load } = observation;
  if (readyPods === undefined) return { valid: false, reason: "pods-unknown" };
  if (load.kind === "none") return { valid: false, reason: load.reason };

  const pods = Math.max(1, readyPods);
  const maxScaleUp = Math.ceil(spec.maxScaleUpRate * pods);
  const maxScaleDown = spec.reachable ? Math.floor(pods / spec.maxScaleDownRate) : 0;
  const stableWanted = Math.ceil(load.stable / spec.targetValue);
  const panicWanted = Math.ceil(load.panic / spec.targetValue);
  let stablePods = Math.min(Math.max(stableWanted, maxScaleDown), maxScaleUp);
  let panicPods = Math.min(Math.max(panicWanted, maxScaleDown), maxScaleUp);
  if (spec.activationScale > 1) {
    if (stableWanted > 0 && spec.activationScale > stablePods) stablePods = spec.activationScale;
    if (panicWanted > 0 && spec.activationScale > panicPods) panicPods = spec.activationScale;
  }

  const panicRatio = panicWanted / pods;
  const overThreshold = panicRatio >= spec.panicThreshold;
  const was = state.panic;
  let sinceMs = 0;
  let ratchet = 0;
  let panicEvent: PanicEvent = "none";
  if (overThreshold) {
    panicEvent = was.mode === "panic" ? "extended" : "begins";
    sinceMs = nowMs;
    ratchet = was.mode === "panic" ? was.maxPods : 0;
  } else if (was.mode === "panic") {
    if (was.sinceMs + spec.stableWindowMs < nowMs) {
      panicEvent = "ends";
    } else {
      panicEvent = "holds";
      sinceMs = was.sinceMs;
      ratchet = was.maxPods;
    }
  }

  const panicking = panicEvent !== "none" && panicEvent !== "ends";
  let desired = stablePods;
  let winner: KpaRule = "stable-window";
  if (panicking) {
    if (panicPods > desired) {
      desired = panicPods;
      winner = "panic-window";
    }
    if (desired < ratchet) {
      desired = ratchet;
      winner = "panic-ratchet";
    } else {
      ratchet = desired;
    }
  }
  if (winner !== "panic-ratchet") {
    const wanted = winner === "panic-window" ? panicWanted : stableWanted;
    if (desired !== wanted) {
      winner =
        desired === spec.activationScale && desired > Math.max(wanted, maxScaleDown)
          ? "activation-scale"
          : desired === maxScaleUp && wanted > maxScaleUp
            ? "max-scale-up-rate"
            : "max-scale-down-rate";
    }
  }

  const beforeDelay = desired;
  let delay = EMPTY_MAX_WINDOW;
  if (spec.scaleDownDelayMs > 0) {
    delay = state.delay;
    if (spec.reachable) {
      delay = recordMax(delay, spec.scaleDownDelayMs, TICK_MS, nowMs, desired);
      desired = currentMax(delay) ?? desired;
      if (desired !== beforeDelay) winner = "scale-down-delay";
    }
  }

  return {
    valid: true,
    desired,
    excessBurstCapacity: excessBurstCapacity(spec, readyPods, load.panic),
    next: { panic: panicking ? { mode: "panic", sinceMs, maxPods: ratchet } : STABLE, delay },
    explanation: {
      winner,
      readyPods,
      stableValue: load.stable,
      panicValue: load.panic,
      targetValue: spec.targetValue,
      stableWanted,
      panicWanted,
      maxScaleDown,
      maxScaleUp,
      stablePods,
      panicPods,
      panicEvent,
      panicRatio,
      panicThreshold: spec.panicThreshold,
      panicRatchet: panicking ? ratchet : 0,
      beforeDelay,
    },
  };
}
