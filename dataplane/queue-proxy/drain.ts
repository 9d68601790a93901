import type { Clock, Timer } from "../shared/clock.ts";

/** Why the pod stops taking part: it ends (this container's hook, or the signal), or the kubelet is about to stop the user container. */
export type DrainReason = "SIGTERM" | "preStop";

/** `serving` -> `draining` -> `drained`; a drain that only preStop began may go back to `serving`. */
export type DrainState =
  | { readonly phase: "serving" }
  | { readonly phase: "draining"; readonly reason: DrainReason; readonly sinceMs: number }
  | { readonly phase: "drained"; readonly complete: boolean };

export interface DrainOptions {
  /** No sooner than this after the last request came. */
  readonly quietMs: number;
  /** No later than this after the drain began. */
  readonly maxMs: number;
  /** Requests here now, upgraded connections included. */
  readonly active: () => number;
}

/** A liveness probe's restart of the user container calls preStop too; then SIGTERM does not follow and the pod stays. */
const PRESTOP_ALONE_MS = 1000;
const LOOK_INTERVAL_MS = 50;

/**
 * The end of a pod's life: it is no longer ready, serves what still comes and what is here, and is drained when nothing
 * has come for a while and nothing is here. Requests are never refused by it.
 */
export class Drain {
  readonly #options: DrainOptions;
  readonly #clock: Clock;
  readonly #waiting = new Set<(state: DrainState) => void>();
  #state: DrainState = { phase: "serving" };
  #lastRequestMs: number;
  #timer: Timer | undefined;

  constructor(options: DrainOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.#lastRequestMs = clock.nowMs();
  }

  get state(): DrainState {
    return this.#state;
  }

  /** For each request that is not a probe, when it comes. */
  noteRequest(): void {
    this.#lastRequestMs = this.#clock.nowMs();
  }

  /** Begins to drain. Repeatable: SIGTERM makes a drain final that preStop began. */
  begin(reason: DrainReason): void {
    if (this.#state.phase === "drained") return;
    if (this.#state.phase === "draining") {
      if (reason === "SIGTERM") this.#state = { ...this.#state, reason };
      return;
    }
    this.#state = { phase: "draining", reason, sinceMs: this.#clock.nowMs() };
    this.#look();
  }

  /** Resolves when the drain is over: drained, or called off. */
  whenOver(): Promise<DrainState> {
    if (this.#state.phase !== "draining") return Promise.resolve(this.#state);
    return new Promise(resolve => this.#waiting.add(resolve));
  }

  readonly #look = (): void => {
    if (this.#state.phase !== "draining") return;
    const { quietMs, maxMs, active } = this.#options;
    const nowMs = this.#clock.nowMs();
    const { reason, sinceMs } = this.#state;
    const quiet = nowMs - Math.max(sinceMs, this.#lastRequestMs) >= quietMs && active() === 0;
    if (reason === "preStop" && nowMs - sinceMs >= PRESTOP_ALONE_MS) this.#settle({ phase: "serving" });
    else if (reason === "SIGTERM" && quiet) this.#settle({ phase: "drained", complete: true });
    else if (reason === "SIGTERM" && nowMs - sinceMs >= maxMs) this.#settle({ phase: "drained", complete: false });
    else this.#timer = this.#clock.after(LOOK_INTERVAL_MS, this.#look);
  };

  /** Stops looking, whatever the state. */
  stop(): void {
    if (this.#timer !== undefined) this.#clock.cancel(this.#timer);
  }

  #settle(state: DrainState): void {
    this.#state = state;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resolve of waiting) resolve(state);
  }
}
