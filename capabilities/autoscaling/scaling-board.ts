import type { Activity, PathMode } from "../../core/autoscaling/lifecycle.ts";
import { keyText } from "../runtime/resource.ts";
import type { ObjectKey } from "../runtime/types.ts";
import type { RevisionScaling, ScalingChange, ScalingNote } from "../services/revision-scaling.ts";

/** What the autoscaler last decided for one revision, as the reconcilers of status and endpoints see it. */
export interface RevisionScale {
  readonly mode: PathMode;
  readonly activity: Activity;
  readonly wanted: number | undefined;
  readonly readyBeforeTraffic: number | undefined;
  readonly note?: ScalingNote | undefined;
}

/** In memory, in the leading operator: a new leader decides afresh from the objects. */
export class ScalingBoard implements RevisionScaling {
  readonly #scales = new Map<string, RevisionScale>();
  readonly #listeners: ((revision: ObjectKey, change: ScalingChange) => void)[] = [];

  get(revision: ObjectKey): RevisionScale | undefined {
    return this.#scales.get(keyText(revision));
  }

  onChange(listener: (revision: ObjectKey, change: ScalingChange) => void): void {
    this.#listeners.push(listener);
  }

  publish(revision: ObjectKey, scale: RevisionScale): void {
    const before = this.#scales.get(keyText(revision));
    this.#scales.set(keyText(revision), scale);
    if (before !== undefined && equal(before, scale)) return;
    const isPath = before?.mode !== scale.mode || before.readyBeforeTraffic !== scale.readyBeforeTraffic;
    for (const listener of this.#listeners) listener(revision, isPath ? "path" : "report");
  }

  remove(revision: ObjectKey): void {
    this.#scales.delete(keyText(revision));
  }

  clear(): void {
    this.#scales.clear();
  }
}

function equal(a: RevisionScale, b: RevisionScale): boolean {
  return (
    a.mode === b.mode &&
    a.wanted === b.wanted &&
    a.readyBeforeTraffic === b.readyBeforeTraffic &&
    a.note?.reason === b.note?.reason &&
    a.note?.message === b.note?.message &&
    a.activity.phase === b.activity.phase &&
    a.activity.sinceMs === b.activity.sinceMs
  );
}
