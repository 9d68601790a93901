import type { Percentiles } from "./percentiles.ts";

/** How requests ended. The fields after `arrived` sum up to it. */
export interface RequestTotals {
  readonly arrived: number;
  readonly completed: number;
  /** Answered 429: no room to wait, or pushed out of the queue by a request of a shorter one. */
  readonly queueFull: number;
  /** Answered 429 (or 503 without a pod): waited as long as it may. */
  readonly waitedTooLong: number;
  /** Answered 504: took longer than the revision's timeout. */
  readonly timedOut: number;
  /** Waiting or running at the end. */
  readonly unfinished: number;
}

export interface PodTotals {
  /** Most at a time, with those that start or drain. */
  readonly most: number;
  /** Started after the beginning. */
  readonly started: number;
  /** Times a request found no pod and began to wait for the first one. */
  readonly coldStarts: number;
  /** Requests that came while no pod was ready. */
  readonly coldRequests: number;
  /** Of all that existed (what is paid for), and of those that took requests. */
  readonly podSeconds: number;
  readonly readyPodSeconds: number;
}

/** One flow of the trace. */
export interface FlowResult {
  readonly flow: string;
  readonly arrived: number;
  readonly completed: number;
  readonly refused: number;
  readonly latencyMs: Percentiles;
}

/** The state at one time, and what happened since the point before. */
export interface TimelinePoint {
  readonly atMs: number;
  readonly arrived: number;
  readonly completed: number;
  readonly refused: number;
  /** 95th percentile of the latency of those completed; 0 without any. */
  readonly latencyP95Ms: number;
  /** Most requests that waited since the point before, at any change. */
  readonly waiting: number;
  readonly inFlight: number;
  readonly readyPods: number;
  readonly startingPods: number;
  readonly drainingPods: number;
  /** What the Deployment is set to. */
  readonly wantedPods: number;
  readonly mode: "proxy" | "serve";
  readonly panic: boolean;
}

/** A decision that changed the number of pods, or the rule that fixes it. */
export interface DecisionPoint {
  readonly atMs: number;
  readonly from: number;
  readonly to: number;
  /** The rule that fixed the number. */
  readonly rule: string;
  /** What the rule says, with its numbers. */
  readonly because: string;
}

export interface SimulationResult {
  readonly name: string;
  readonly seed: number;
  readonly horizonMs: number;
  readonly requests: RequestTotals;
  /** From arrival to the end, of those completed. */
  readonly latencyMs: Percentiles;
  /** Wait for a place, of all that got one. */
  readonly waitMs: Percentiles;
  readonly pods: PodTotals;
  /** By flow, those with the most requests first; empty when the trace names none. */
  readonly flows: readonly FlowResult[];
  readonly timeline: readonly TimelinePoint[];
  readonly decisions: readonly DecisionPoint[];
}
