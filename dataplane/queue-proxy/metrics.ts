import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { QueueProxyConfig } from "./config.ts";

export interface QueueProxyMetrics {
  readonly registry: Registry;
  /** A request that reached the app, by the status the client got (499: it left first). */
  answered(status: number, seconds: number): void;
  /** A request that did not reach the app, by the error's code. */
  refused(code: string): void;
  appStarted(seconds: number): void;
}

/** What is read when somebody asks. */
export interface QueueProxyGauges {
  /** Requests at the app. */
  readonly inside: () => number;
  /** Requests that wait for a place at the app. */
  readonly waiting: () => number;
  readonly ready: () => boolean;
}

/** Bounds of Knative's own histogram of the same name. */
const LATENCY_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

export function createMetrics(identity: QueueProxyConfig["identity"], gauges: QueueProxyGauges): QueueProxyMetrics {
  const registry = new Registry();
  registry.setDefaultLabels({ ...identity });
  const registers = [registry];
  const duration = new Histogram({
    name: "kn_serving_invocation_duration_seconds",
    help: "Duration of requests at the app, from the queue-proxy's side.",
    labelNames: ["http_response_status_code"],
    buckets: LATENCY_SECONDS,
    registers,
  });
  const refused = new Counter({
    name: "fairway_queue_proxy_refused_total",
    help: "Requests that did not reach the app, by reason.",
    labelNames: ["reason"],
    registers,
  });
  const started = new Gauge({
    name: "fairway_queue_proxy_app_start_seconds",
    help: "From the start of the queue-proxy until the app was ready for the first time; 0 before.",
    registers,
  });
  const read = (name: string, help: string, value: () => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value());
      },
    });
  };
  read("kn_serving_queue_depth", "Requests at the app or waiting for it.", () => gauges.inside() + gauges.waiting());
  read("fairway_queue_proxy_in_flight", "Requests at the app.", gauges.inside);
  read("fairway_queue_proxy_waiting", "Requests that wait for a place at the app.", gauges.waiting);
  read("fairway_queue_proxy_ready", "1 while the pod takes traffic.", () => (gauges.ready() ? 1 : 0));
  return {
    registry,
    answered: (status, seconds) => duration.observe({ http_response_status_code: String(status) }, seconds),
    refused: code => refused.inc({ reason: code }),
    appStarted: seconds => started.set(seconds),
  };
}
