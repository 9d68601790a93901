import { LRUCache } from "lru-cache";
import type { EventRecorder, KubeObject } from "../runtime/types.ts";

/** How many objects' last events are remembered; forgetting one may repeat its event. */
const REMEMBERED = 20_000;

/**
 * Events about changes of state. Between the write of a status and its return by the watch a reconciler sees the old state again:
 * a change is told once all the same, since the last thing told about each topic of an object is remembered.
 */
export class Transitions {
  readonly #events: EventRecorder;
  readonly #last = new LRUCache<string, string>({ max: REMEMBERED });

  constructor(events: EventRecorder) {
    this.#events = events;
  }

  tell(object: KubeObject, topic: string, type: "Normal" | "Warning", reason: string, message: string): void {
    const id = `${object.metadata?.uid ?? ""} ${topic}`;
    const text = `${reason} ${message}`;
    if (this.#last.get(id) === text) return;
    this.#last.set(id, text);
    this.#events.event(object, type, reason, message);
  }
}
