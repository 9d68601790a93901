import type { EventRecorder, KubeObject } from "../runtime/types.ts";
import type { Decision } from "./revision-scaler.ts";

/** Shorter gaps are usual: a new pod's first seconds, a new leader's. */
const WORTH_TELLING_MS = 15_000;

/** What of a decision is worth telling a user when it changes. */
interface Told {
  readonly atMaxScale: boolean;
  /** Since when pods are kept without data; undefined while there are data, or no pods. */
  readonly heldSinceMs: number | undefined;
  readonly heldTold: boolean;
}

const NOTHING: Told = { atMaxScale: false, heldSinceMs: undefined, heldTold: false };

/**
 * Events on the Revision when a bound or a lack of data changes the outcome: once when it begins. That pods are kept
 * because there is no data is told only for a revision that has pods; at zero nothing is decided and nothing is held.
 */
export class DecisionEvents {
  readonly #told = new Map<string, Told>();
  readonly #events: EventRecorder;

  constructor(events: EventRecorder) {
    this.#events = events;
  }

  observe(key: string, revision: KubeObject, decision: Decision): void {
    const before = this.#told.get(key) ?? NOTHING;
    const { outcome, spec, observation, replicasBefore } = decision;
    const atMaxScale = outcome.step.bound === "max-scale";
    if (atMaxScale && !before.atMaxScale) {
      const { max } = spec.lifecycle.bounds;
      this.#events.event(
        revision,
        "Warning",
        "MaxScaleReached",
        `${outcome.desired} pods are wanted, max scale is ${max}: requests wait for the ${max} there are`,
      );
    }
    const missing = outcome.decision.valid || (observation.readyPods ?? 0) === 0 ? undefined : outcome.decision.reason;
    const heldSinceMs = missing === undefined ? undefined : (before.heldSinceMs ?? decision.atMs);
    let heldTold = heldSinceMs !== undefined && before.heldTold;
    if (heldSinceMs !== undefined && !heldTold && decision.atMs - heldSinceMs >= WORTH_TELLING_MS) {
      this.#events.event(
        revision,
        "Warning",
        "ScalingHeld",
        `no decision without data (${missing}): the number of pods stays at ${replicasBefore ?? 0}`,
      );
      heldTold = true;
    }
    if (atMaxScale || heldSinceMs !== undefined) this.#told.set(key, { atMaxScale, heldSinceMs, heldTold });
    else this.#told.delete(key);
  }

  forget(key: string): void {
    this.#told.delete(key);
  }
}
