/** The size of the load bench, and what it measures. */
export const REVISIONS = 10_000;
export const ACTIVE = 500;
export const PODS_PER_REVISION = 2;

/** `whole`: reports and scrapes over HTTP; `loop`: handed over in memory. */
export type LoadMode = "whole" | "loop";

export interface LoadResult {
  readonly mode: LoadMode;
  /** Part of one core. */
  readonly cpuShare: number;
  readonly rssMegabytes: number;
  readonly decisionsPerTick: number;
  /** From a tick to the last decision of it. */
  readonly slowestTickMs: number;
  readonly scrapesPerSecond: number;
  readonly failedScrapes: number;
}
