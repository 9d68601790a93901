import type { Decision } from "./revision-scaler.ts";

/** The last decision of each revision that is followed, for `fairway why`. Keys are `namespace/revision`. */
export class DecisionStore {
  readonly #decisions = new Map<string, Decision>();

  get(key: string): Decision | undefined {
    return this.#decisions.get(key);
  }

  record(key: string, decision: Decision): void {
    this.#decisions.set(key, decision);
  }

  forget(key: string): void {
    this.#decisions.delete(key);
  }

  clear(): void {
    this.#decisions.clear();
  }
}
