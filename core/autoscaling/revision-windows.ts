/**
 * The windows of one revision under Knative's policy: concurrency and requests per second, each over the stable and the
 * panic window.
 *
 * Source of the rules: knative.dev/serving v0.51.0 pkg/autoscaler/metrics (collection). Mutable, owned by one collector.
 */
import type { Aggregation, MetricWindow } from "./bucket-window.ts";
import { createWindow } from "./bucket-window.ts";
import type { ScalingMetric } from "./config.ts";
import type { WindowedLoad } from "./kpa.ts";

export interface WindowsSpec {
  readonly aggregation: Aggregation;
  readonly stableWindowMs: number;
  readonly panicWindowMs: number;
  /**
   * False only where pods are never scraped because all traffic is sure to pass the gateways (target burst capacity -1):
   * an empty window then means no requests. Else it means no data.
   */
  readonly scraped: boolean;
  /** Also keep what Cloud Run's policy needs: 1 and 10 minutes, each instance's own numbers, freed places. */
  readonly perInstance?: boolean;
}

const NO_DATA: WindowedLoad = { kind: "none", reason: "no-data-in-window" };

export class RevisionWindows {
  #scraped: boolean;
  readonly #concurrency: MetricWindow;
  readonly #concurrencyPanic: MetricWindow;
  readonly #rps: MetricWindow;
  readonly #rpsPanic: MetricWindow;

  constructor(spec: WindowsSpec) {
    this.#scraped = spec.scraped;
    this.#concurrency = createWindow(spec.aggregation, spec.stableWindowMs);
    this.#concurrencyPanic = createWindow(spec.aggregation, spec.panicWindowMs);
    this.#rps = createWindow(spec.aggregation, spec.stableWindowMs);
    this.#rpsPanic = createWindow(spec.aggregation, spec.panicWindowMs);
  }

  /** Adds to the second of `nowMs`; what several sources record for one second sums up. */
  record(nowMs: number, concurrency: number, requests: number): void {
    this.#concurrency.record(nowMs, concurrency);
    this.#concurrencyPanic.record(nowMs, concurrency);
    this.#rps.record(nowMs, requests);
    this.#rpsPanic.record(nowMs, requests);
  }

  /** Takes new window lengths and keeps the data; the aggregation stays what it was. */
  update(spec: WindowsSpec, nowMs: number): void {
    this.#scraped = spec.scraped;
    this.#concurrency.resize(spec.stableWindowMs, nowMs);
    this.#concurrencyPanic.resize(spec.panicWindowMs, nowMs);
    this.#rps.resize(spec.stableWindowMs, nowMs);
    this.#rpsPanic.resize(spec.panicWindowMs, nowMs);
  }

  isEmpty(nowMs: number): boolean {
    return this.#concurrency.isEmpty(nowMs);
  }

  load(metric: ScalingMetric, nowMs: number): WindowedLoad {
    const [stable, panic] =
      metric === "rps" ? [this.#rps, this.#rpsPanic] : [this.#concurrency, this.#concurrencyPanic];
    if (this.#scraped && stable.isEmpty(nowMs)) return NO_DATA;
    return { kind: "measured", stable: stable.average(nowMs), panic: panic.average(nowMs) };
  }
}
