import { explain } from "../../core/autoscaling/explain.ts";
import type { Decision } from "./revision-scaler.ts";

/** A decision that changed the number of pods. */
export interface NumberChange {
  readonly atMs: number;
  readonly from: number;
  readonly to: number;
  /** The rule that fixed the number. */
  readonly winner: string;
  /** When a gateway told that requests need a pod, where that led to the decision; undefined: a tick or a change did. */
  readonly pokedMs: number | undefined;
}

/** The last decision of each revision that is followed, for `fairway why`. Keys are `namespace/revision`. */
export class DecisionStore {
  readonly #decisions = new Map<string, Decision>();
  readonly #changes = new Map<string, NumberChange>();

  get(key: string): Decision | undefined {
    return this.#decisions.get(key);
  }

  /** The last one that changed the number of pods; undefined: none did since this operator leads. */
  lastChange(key: string): NumberChange | undefined {
    return this.#changes.get(key);
  }

  record(key: string, decision: Decision): void {
    this.#decisions.set(key, decision);
    const { atMs, replicasBefore: from, outcome, spec, pokedMs } = decision;
    const to = outcome.step.replicas;
    if (from === undefined || to === undefined || from === to) return;
    this.#changes.set(key, { atMs, from, to, winner: explain(spec, outcome).winner, pokedMs });
  }

  forget(key: string): void {
    this.#decisions.delete(key);
    this.#changes.delete(key);
  }

  clear(): void {
    this.#decisions.clear();
    this.#changes.clear();
  }
}
