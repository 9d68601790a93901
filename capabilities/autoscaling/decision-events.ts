import type { EventRecorder, KubeObject } from "../runtime/types.ts";
import type { Decision } from "./revision-scaler.ts";
import { atMaximum, overMaximum, withoutCpu } from "./scaling-note.ts";

/** Shorter gaps are usual: a new pod's first seconds, a new leader's. */
const WORTH_TELLING_MS = 15_000;

/** What of a decision is worth telling a user when it changes. */
interface Told {
  readonly atMaxScale: boolean;
  readonly overMaxScale: boolean;
  /** Why CPU does not count; undefined while it does. */
  readonly withoutCpu: string | undefined;
  /** Since when pods are kept without data; undefined while there are data, or no pods. */
  readonly heldSinceMs: number | undefined;
  readonly heldTold: boolean;
}

const NOTHING: Told = {
  atMaxScale: false,
  overMaxScale: false,
  withoutCpu: undefined,
  heldSinceMs: undefined,
  heldTold: false,
};

/**
 * Events on the Revision and its Service when a bound or a lack of data changes the outcome: once when it begins. That pods are
 * kept because there is no data is told only for a revision that has pods; at zero nothing is decided and nothing is held.
 */
export class DecisionEvents {
  readonly #told = new Map<string, Told>();
  readonly #events: EventRecorder;
  readonly #serviceOf: (revision: KubeObject) => KubeObject | undefined;

  constructor(events: EventRecorder, serviceOf: (revision: KubeObject) => KubeObject | undefined) {
    this.#events = events;
    this.#serviceOf = serviceOf;
  }

  observe(key: string, revision: KubeObject, decision: Decision): void {
    const before = this.#told.get(key) ?? NOTHING;
    const tell = (reason: string, message: string): void => this.#tell(revision, reason, message);
    const { outcome, spec, observation, replicasBefore } = decision;

    const bound = atMaximum(spec, outcome);
    if (bound !== undefined && !before.atMaxScale) {
      const { wanted, max } = bound;
      tell("MaxScaleReached", `${wanted} pods are wanted, max scale is ${max}: requests wait for the ${max} there are`);
    }
    const over = overMaximum(outcome);
    if (over !== undefined && !before.overMaxScale) {
      tell("MaxScaleExceeded", `${over.wanted} pods, over max scale ${over.max}, as the service allows for a while`);
    }
    const noCpu = withoutCpu(decision);
    if (noCpu !== undefined && noCpu !== before.withoutCpu) {
      tell("CpuNotMeasured", `scales on concurrency alone: ${noCpu}`);
    }
    const missing = outcome.decision.valid || (observation.readyPods ?? 0) === 0 ? undefined : outcome.decision.reason;
    const heldSinceMs = missing === undefined ? undefined : (before.heldSinceMs ?? decision.atMs);
    let heldTold = heldSinceMs !== undefined && before.heldTold;
    if (heldSinceMs !== undefined && !heldTold && decision.atMs - heldSinceMs >= WORTH_TELLING_MS) {
      const count = replicasBefore ?? 0;
      tell("ScalingHeld", `no decision without data (${missing}): the number of pods stays at ${count}`);
      heldTold = true;
    }
    const now: Told = {
      atMaxScale: bound !== undefined,
      overMaxScale: over !== undefined,
      // Without load nothing is measured either: what was told stays told.
      withoutCpu: noCpu ?? before.withoutCpu,
      heldSinceMs,
      heldTold,
    };
    const quiet = !now.atMaxScale && !now.overMaxScale && now.withoutCpu === undefined && heldSinceMs === undefined;
    if (quiet) this.#told.delete(key);
    else this.#told.set(key, now);
  }

  forget(key: string): void {
    this.#told.delete(key);
  }

  #tell(revision: KubeObject, reason: string, message: string): void {
    this.#events.event(revision, "Warning", reason, message);
    const service = this.#serviceOf(revision);
    const name = revision.metadata?.name ?? "";
    if (service !== undefined) this.#events.event(service, "Warning", reason, `revision "${name}": ${message}`);
  }
}
