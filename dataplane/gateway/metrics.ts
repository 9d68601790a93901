import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { RevisionBackend } from "./revisions/revision-backend.ts";

const BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
/** Revisions with labels of their own; the others share one set, so that a scrape stays small. */
const MOST_REVISIONS = 1_000;
const OTHERS = { namespace: "", service: "", revision: "other" };
const CODE_CLASSES = ["0xx", "1xx", "2xx", "3xx", "4xx", "5xx"] as const;

type RevisionLabel = "namespace" | "service" | "revision";

/** Series of one revision, looked up once. */
export interface RevisionMetrics {
  /** One request has ended. `status` 499: its client left. */
  ended(status: number, seconds: number): void;
  waited(seconds: number): void;
  connectFailed(): void;
}

export interface GatewayMetricsOptions {
  readonly registry: Registry;
  readonly backends: () => Iterable<RevisionBackend>;
}

/** The gateway's metrics, `fairway_gateway_...`. Labels of revisions go with them. */
export class GatewayMetrics {
  readonly #requests: Counter<RevisionLabel | "response_code_class">;
  readonly #latency: Histogram<RevisionLabel>;
  readonly #wait: Histogram<RevisionLabel>;
  readonly #connectErrors: Counter<RevisionLabel>;
  readonly #unrouted: Counter<"listener">;
  readonly #rejected: Counter<"code">;
  readonly #series = new Map<
    string,
    { readonly labels: Record<RevisionLabel, string>; readonly metrics: RevisionMetrics }
  >();
  readonly #others: RevisionMetrics;
  readonly reportFailures: Counter;
  readonly unreportedRequests: Counter;
  readonly reports: Counter<"kind">;
  readonly watchFailures: Counter<"kind">;
  readonly routes: Gauge;
  readonly passedOn: Counter;
  readonly tokenFailures: Counter;

  constructor({ registry, backends }: GatewayMetricsOptions) {
    const registers = [registry];
    const labelNames = ["namespace", "service", "revision"] as const;
    this.#requests = new Counter({
      name: "fairway_gateway_request_count",
      help: "Requests that ended, by revision and class of the answer's status (499: the client left)",
      labelNames: [...labelNames, "response_code_class"],
      registers,
    });
    this.#latency = new Histogram({
      name: "fairway_gateway_request_latency_seconds",
      help: "From the arrival of a request to the end of its answer",
      labelNames,
      buckets: BUCKETS_S,
      registers,
    });
    this.#wait = new Histogram({
      name: "fairway_gateway_queue_wait_seconds",
      help: "How long requests waited for a place at the revision, those that waited at all",
      labelNames,
      buckets: BUCKETS_S,
      registers,
    });
    this.#connectErrors = new Counter({
      name: "fairway_gateway_upstream_connect_errors_total",
      help: "Connections to pods that failed; nothing of the request had been sent",
      labelNames,
      registers,
    });
    this.#unrouted = new Counter({
      name: "fairway_gateway_unrouted_requests_total",
      help: "Requests for a host that no route has",
      labelNames: ["listener"],
      registers,
    });
    this.#rejected = new Counter({
      name: "fairway_gateway_error_answers_total",
      help: "Requests that the gateway answered itself, by error code",
      labelNames: ["code"],
      registers,
    });
    this.reports = new Counter({
      name: "fairway_gateway_reports_total",
      help: "Reports to the autoscaler that were accepted",
      labelNames: ["kind"],
      registers,
    });
    this.reportFailures = new Counter({
      name: "fairway_gateway_report_failures_total",
      help: "Reports to the autoscaler that did not arrive",
      registers,
    });
    this.unreportedRequests = new Counter({
      name: "fairway_gateway_unreported_requests_total",
      help: "Requests of seconds whose report did not arrive: the autoscaler never heard of them",
      registers,
    });
    this.watchFailures = new Counter({
      name: "fairway_gateway_watch_failures_total",
      help: "Lists and watches of the Kubernetes API that failed",
      labelNames: ["kind"],
      registers,
    });
    this.routes = new Gauge({
      name: "fairway_gateway_routes",
      help: "Routes in the routing table",
      registers,
    });
    this.passedOn = new Counter({
      name: "fairway_gateway_passed_requests_total",
      help: "Requests that were passed on to their revision's home gateway, which counts them",
      registers,
    });
    this.tokenFailures = new Counter({
      name: "fairway_gateway_token_failures_total",
      help: "Bearer tokens that could not be judged; their requests went on as anonymous",
      registers,
    });
    const byRevision = (name: string, help: string, value: (backend: RevisionBackend) => number): void => {
      const labelsOf = (backend: RevisionBackend) => this.#series.get(backend.key)?.labels ?? OTHERS;
      new Gauge({
        name,
        help,
        labelNames,
        registers,
        collect() {
          this.reset();
          for (const backend of backends()) {
            const now = value(backend);
            if (now > 0) this.inc(labelsOf(backend), now);
          }
        },
      });
    };
    byRevision("fairway_gateway_queue_depth", "Requests that wait for a place at the revision", b => b.waiting);
    byRevision("fairway_gateway_requests_in_flight", "Requests at the revision's pods", b => b.inFlight);
    byRevision("fairway_gateway_pods", "Pods of the revision that are known", b => b.pods.length);
    this.#others = this.#make(OTHERS);
  }

  of(backend: RevisionBackend): RevisionMetrics {
    return this.#series.get(backend.key)?.metrics ?? this.#add(backend);
  }

  forget(backend: RevisionBackend): void {
    const series = this.#series.get(backend.key);
    if (series === undefined) return;
    this.#series.delete(backend.key);
    const { labels } = series;
    for (const response_code_class of CODE_CLASSES) this.#requests.remove({ ...labels, response_code_class });
    this.#latency.remove(labels);
    this.#wait.remove(labels);
    this.#connectErrors.remove(labels);
  }

  unrouted(listener: string): void {
    this.#unrouted.inc({ listener });
  }

  answeredError(code: string): void {
    this.#rejected.inc({ code });
  }

  #add(backend: RevisionBackend): RevisionMetrics {
    // Until its Revision is seen its labels are not known.
    if (!backend.known || this.#series.size >= MOST_REVISIONS) return this.#others;
    const labels = { namespace: backend.namespace, service: backend.settings.service, revision: backend.name };
    const metrics = this.#make(labels);
    this.#series.set(backend.key, { labels, metrics });
    return metrics;
  }

  #make(labels: Record<RevisionLabel, string>): RevisionMetrics {
    const byClass = CODE_CLASSES.map(response_code_class => this.#requests.labels({ ...labels, response_code_class }));
    const latency = this.#latency.labels(labels);
    const wait = this.#wait.labels(labels);
    const connectErrors = this.#connectErrors.labels(labels);
    return {
      ended(status, seconds) {
        byClass[Math.floor(status / 100)]?.inc();
        latency.observe(seconds);
      },
      waited: seconds => wait.observe(seconds),
      connectFailed: () => connectErrors.inc(),
    };
  }
}
