/**
 * Panic's end never undoes a scale-up whose pods are not ready yet.
 *
 * Beyond the original, which at the end of panic goes to the stable number even while the pods that panic asked for are
 * still starting: they are stopped, the load comes, and they are started again. The rule stands after Knative's decision
 * and never changes it; it shows in the explanation as its own rule. Bounded in time: pods that are not ready after
 * `startTimeoutMs` are not waited for.
 *
 * Worked numbers: panic asked for 50, 20 are ready, panic ends with a stable number of 12 -> 50 until the 50th is ready
 * (or the time-out), then 12.
 */
import type { KpaDecision, KpaState } from "./kpa.ts";

export type HoldState =
  | { readonly kind: "none" }
  /** In panic, and the pods of its latest scale-up are not all ready. */
  | { readonly kind: "starting"; readonly pods: number }
  /** Panic is over, the pods are still awaited. */
  | { readonly kind: "holding"; readonly pods: number; readonly sinceMs: number };

export const NO_HOLD: HoldState = { kind: "none" };

export interface HoldLimits {
  readonly reachable: boolean;
  /** The maximum scale, 0 = none: pods beyond it were never started. */
  readonly maxPods: number;
  readonly startTimeoutMs: number;
}

/** Follows one valid decision. `before` is the state that decision began with. */
export function holdUnreadyScaleUp(
  limits: HoldLimits,
  before: KpaState,
  decision: Extract<KpaDecision, { valid: true }>,
  hold: HoldState,
  nowMs: number,
): { pods: number; held: boolean; next: HoldState } {
  const release = { pods: decision.desired, held: false, next: NO_HOLD };
  if (!limits.reachable) return release;
  const { panicEvent, panicRatchet, readyPods } = decision.explanation;
  let state = hold;
  if (panicRatchet > 0) {
    const ratchetBefore = before.panic.mode === "panic" ? before.panic.maxPods : 0;
    if (panicRatchet > ratchetBefore) {
      const pods = limits.maxPods > 0 ? Math.min(panicRatchet, limits.maxPods) : panicRatchet;
      state = { kind: "starting", pods: hold.kind === "none" ? pods : Math.max(pods, hold.pods) };
    }
  } else if (panicEvent === "ends" && hold.kind === "starting") {
    state = { kind: "holding", pods: hold.pods, sinceMs: nowMs };
  }
  if (state.kind === "none" || readyPods >= state.pods) return release;
  if (state.kind === "holding" && nowMs - state.sinceMs >= limits.startTimeoutMs) return release;
  if (decision.desired >= state.pods) return { pods: decision.desired, held: false, next: state };
  return state.kind === "starting"
    ? { pods: decision.desired, held: false, next: state }
    : { pods: state.pods, held: true, next: state };
}
