import type { Activity, PathMode } from "../../core/autoscaling/lifecycle.ts";

/** What the autoscaler last decided for one revision, as other capabilities see it. */
export interface RevisionScale {
  /** Whether the revision's public Service leads to the gateways or straight to its pods. */
  readonly mode: PathMode;
  readonly activity: Activity;
  /** Pods wanted; undefined before the first decision. */
  readonly wanted: number | undefined;
  readonly initialScaleReached: boolean;
}

/** Read side, for the reconcilers that write status and endpoints. Keys are `namespace/revision`. */
export interface ScalingView {
  /** Undefined until the autoscaler has seen the revision. */
  get(key: string): RevisionScale | undefined;
  /** `listener` hears keys whose scale changed, on the event loop; it must only enqueue. */
  onChange(listener: (key: string) => void): void;
}

/** In memory, in the leading operator: a new leader decides afresh from the objects. */
export class ScalingBoard implements ScalingView {
  readonly #scales = new Map<string, RevisionScale>();
  readonly #listeners: ((key: string) => void)[] = [];

  get(key: string): RevisionScale | undefined {
    return this.#scales.get(key);
  }

  onChange(listener: (key: string) => void): void {
    this.#listeners.push(listener);
  }

  publish(key: string, scale: RevisionScale): void {
    const before = this.#scales.get(key);
    this.#scales.set(key, scale);
    if (before === undefined || !equal(before, scale)) for (const listener of this.#listeners) listener(key);
  }

  remove(key: string): void {
    this.#scales.delete(key);
  }

  clear(): void {
    this.#scales.clear();
  }
}

function equal(a: RevisionScale, b: RevisionScale): boolean {
  return (
    a.mode === b.mode &&
    a.wanted === b.wanted &&
    a.initialScaleReached === b.initialScaleReached &&
    a.activity.phase === b.activity.phase &&
    a.activity.sinceMs === b.activity.sinceMs
  );
}
