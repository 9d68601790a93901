import type { Upstream } from "../../shared/http/upstream.ts";

/** Where a pod of a revision is, as its EndpointSlice says. */
export interface Endpoint {
  readonly podName: string;
  /** Changes when another pod takes over the address. */
  readonly podUid: string;
  /** `host:port`, an IPv6 host in brackets. */
  readonly address: string;
  /** Takes requests: ready and not terminating. */
  readonly ready: boolean;
  /** Is going away: takes none, whatever else is known about it. */
  readonly terminating: boolean;
}

const FIRST_SET_ASIDE_MS = 200;
const LONGEST_SET_ASIDE_MS = 10_000;

/**
 * `starting` (known, never ready) -> `ready` <-> `unready`; `gone` at the end. A pod that answered a probe before its
 * EndpointSlice said so counts as ready.
 */
export type PodState = "starting" | "ready" | "unready" | "gone";

/** One pod and what this gateway has there. Changed by `RevisionBackend` only. */
export class Pod {
  readonly name: string;
  readonly uid: string;
  readonly address: string;
  readonly upstream: Upstream;
  state: PodState = "starting";
  /** Its readiness is known from its own answer, not yet from its EndpointSlice. */
  readyByProbe = false;
  /** Requests of this gateway at the pod. */
  inFlight = 0;
  /** Most of them. */
  limit: number;
  /** Gets requests only when all others are busy. */
  demoted = false;
  #setAsideUntilMs = -Infinity;
  #refusals = 0;

  constructor(endpoint: Endpoint, upstream: Upstream, limit: number) {
    this.name = endpoint.podName;
    this.uid = endpoint.podUid;
    this.address = endpoint.address;
    this.upstream = upstream;
    this.limit = limit;
  }

  hasRoom(): boolean {
    return this.inFlight < this.limit;
  }

  isRoutable(nowMs: number): boolean {
    return this.state === "ready" && this.#setAsideUntilMs <= nowMs;
  }

  /** Set aside, or again after it came back: for longer each time. Returns for how long. */
  refused(nowMs: number): number {
    // Requests that failed together are one refusal.
    if (this.#setAsideUntilMs <= nowMs) {
      const durationMs = Math.min(LONGEST_SET_ASIDE_MS, FIRST_SET_ASIDE_MS * 2 ** this.#refusals);
      this.#refusals++;
      this.#setAsideUntilMs = nowMs + durationMs;
    }
    return this.#setAsideUntilMs - nowMs;
  }

  /** It took a connection. */
  accepted(): void {
    this.#refusals = 0;
  }
}
