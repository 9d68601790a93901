import type { EventRecorder, KubeObject } from "../runtime/types.ts";
import type { Decision } from "./revision-scaler.ts";

/** What of a decision is worth telling a user when it changes. */
interface Told {
  readonly atMaxScale: boolean;
  readonly heldWithoutData: boolean;
}

const NOTHING: Told = { atMaxScale: false, heldWithoutData: false };

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
    const heldWithoutData = !outcome.decision.valid && (observation.readyPods ?? 0) > 0;
    if (atMaxScale && !before.atMaxScale) {
      const { max } = spec.lifecycle.bounds;
      this.#events.event(
        revision,
        "Warning",
        "MaxScaleReached",
        `${outcome.desired} pods are wanted, max scale is ${max}: requests wait for the ${max} there are`,
      );
    }
    if (heldWithoutData && !before.heldWithoutData && !outcome.decision.valid) {
      this.#events.event(
        revision,
        "Warning",
        "ScalingHeld",
        `no decision without data (${outcome.decision.reason}): the number of pods stays at ${replicasBefore ?? 0}`,
      );
    }
    if (atMaxScale !== before.atMaxScale || heldWithoutData !== before.heldWithoutData) {
      this.#told.set(key, { atMaxScale, heldWithoutData });
    }
  }

  forget(key: string): void {
    this.#told.delete(key);
  }
}
