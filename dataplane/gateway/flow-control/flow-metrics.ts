import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Classification, LevelStatus } from "../../../core/flowcontrol/flow-controller.ts";
import { EXEMPT, type FlowSchemaObject } from "../../../core/flowcontrol/objects.ts";
import type { FlowControlObserver, FlowObserver, SeatRefusal } from "./flow-control.ts";

/** Upstream's. */
const DURATION_BUCKETS_S = [0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30];
const QUEUE_LENGTH_BUCKETS = [0, 10, 25, 50, 100, 250, 500, 1_000];
const SEAT_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 100];

/** Schemas with labels of their own; the others share one set. */
const MOST_SCHEMAS = 1_000;
const REASONS = ["queue-full", "concurrency-limit", "time-out", "cancelled"] as const satisfies SeatRefusal[];

type SchemaLabels = Readonly<Record<"priority_level" | "flow_schema", string>>;
const OTHERS: SchemaLabels = { priority_level: "other", flow_schema: "other" };

/** The seats at this gateway at the moment of a scrape. */
export interface SeatSource {
  status(): readonly LevelStatus[];
  readonly fairFraction: number;
}

/**
 * Upstream's `apiserver_flowcontrol_...` with `fairway_` in front: the same names, labels and meanings (k8s.io/apiserver,
 * flowcontrol/metrics). Series of a schema go when it is gone, or leads to another level, and the last of its requests has ended.
 */
export function flowMetrics(registry: Registry, seats: () => SeatSource | undefined): FlowControlObserver {
  levelGauges(registry, seats);
  const metrics = new SchemaMetrics(registry);
  const all = new Map<string, Series>();
  const others = new Series(metrics, OTHERS, () => undefined);
  metrics.all = () => [...all.values(), others];
  let wanted: ReadonlySet<string> = new Set();
  const keyOf = (schema: string, level: string): string => `${schema}/${level}`;

  return {
    of({ schema, level }: Classification): FlowObserver {
      const key = keyOf(schema.name, level.name);
      let series = all.get(key);
      if (series !== undefined) return series;
      if (all.size >= MOST_SCHEMAS) return others;
      series = new Series(metrics, { priority_level: level.name, flow_schema: schema.name }, ended => {
        if (wanted.has(key)) return;
        all.delete(key);
        metrics.remove(ended.labels);
      });
      all.set(key, series);
      return series;
    },
    configured(schemas: readonly FlowSchemaObject[]): void {
      wanted = new Set(schemas.map(({ name, spec }) => keyOf(name, spec.priorityLevelConfiguration.name)));
      for (const series of all.values()) series.endIfIdle();
    },
  };
}

function levelGauges(registry: Registry, seats: () => SeatSource | undefined): void {
  const registers = [registry];
  const gauges: readonly (readonly [string, string, (level: LevelStatus) => number | undefined])[] = [
    ["nominal_limit_seats", "Seats by shares", level => level.limits.nominal],
    ["lower_limit_seats", "Fewest seats: the others may be lent", level => level.limits.min],
    ["upper_limit_seats", "Most seats, borrowed ones included", level => level.limits.max],
    ["current_limit_seats", "Seats now, by demand", level => level.currentLimit],
    [
      "demand_seats_high_watermark",
      "Most seats asked for at a time in the last adjustment period",
      level => level.demand.highWatermark,
    ],
    ["demand_seats_average", "Average demand over the last adjustment period", level => level.demand.average],
    [
      "demand_seats_stdev",
      "Standard deviation of the demand over the last adjustment period",
      level => level.demand.deviation,
    ],
    ["demand_seats_smoothed", "Demand as the adjustment sees it", level => level.demand.smoothed],
    ["target_seats", "Seats that the last adjustment aimed at", level => level.targetSeats],
  ];
  for (const [name, help, valueOf] of gauges)
    new Gauge({
      name: `fairway_flowcontrol_${name}`,
      help,
      labelNames: ["priority_level"],
      registers,
      collect() {
        this.reset();
        for (const status of seats()?.status() ?? []) {
          const value = valueOf(status);
          if (value !== undefined) this.set({ priority_level: status.level.name }, value);
        }
      },
    });
  new Gauge({
    name: "fairway_flowcontrol_seat_fair_frac",
    help: "Seats per seat of target that the last adjustment gave to levels within their bounds; 0: nothing was left to divide",
    registers,
    collect() {
      this.set(seats()?.fairFraction ?? 0);
    },
  });
}

/** What is counted by schema. */
class SchemaMetrics {
  /** Set by who keeps them. */
  all: () => readonly Series[] = () => [];
  readonly dispatched: Counter<keyof SchemaLabels>;
  readonly rejected: Counter<keyof SchemaLabels | "reason">;
  readonly wait: Histogram<keyof SchemaLabels | "execute">;
  readonly execution: Histogram<keyof SchemaLabels | "type">;
  readonly queueLength: Histogram<keyof SchemaLabels>;
  readonly width: Histogram<keyof SchemaLabels>;

  constructor(registry: Registry) {
    const common = { labelNames: ["priority_level", "flow_schema"] as const, registers: [registry] };
    const and = <L extends string>(label: L) => ({ ...common, labelNames: [...common.labelNames, label] });
    this.dispatched = new Counter({
      ...common,
      name: "fairway_flowcontrol_dispatched_requests_total",
      help: "Requests that got a seat",
    });
    this.rejected = new Counter({
      ...and("reason"),
      name: "fairway_flowcontrol_rejected_requests_total",
      help: `Requests that got no seat, by reason (${REASONS.join(", ")})`,
    });
    this.wait = new Histogram({
      ...and("execute"),
      name: "fairway_flowcontrol_request_wait_duration_seconds",
      help: "How long requests waited for a seat, those of exempt levels apart",
      buckets: DURATION_BUCKETS_S,
    });
    this.execution = new Histogram({
      ...and("type"),
      name: "fairway_flowcontrol_request_execution_seconds",
      help: "How long requests had their seats",
      buckets: DURATION_BUCKETS_S,
    });
    this.queueLength = new Histogram({
      ...common,
      name: "fairway_flowcontrol_request_queue_length_after_enqueue",
      help: "Requests in the queue that a request has joined, itself included",
      buckets: QUEUE_LENGTH_BUCKETS,
    });
    this.width = new Histogram({
      ...common,
      name: "fairway_flowcontrol_work_estimated_seats",
      help: "Seats that requests asked for",
      buckets: SEAT_BUCKETS,
    });
    const gauges: readonly (readonly [string, string, (series: Series) => number])[] = [
      ["current_inqueue_requests", "Requests that wait for a seat", series => series.waitingRequests],
      ["current_inqueue_seats", "Seats that those who wait will take", series => series.waitingSeats],
      ["current_executing_requests", "Requests that have a seat", series => series.executingRequests],
      ["current_executing_seats", "Seats in use", series => series.executingSeats],
    ];
    const all = (): readonly Series[] => this.all();
    for (const [name, help, valueOf] of gauges)
      new Gauge({
        ...common,
        name: `fairway_flowcontrol_${name}`,
        help,
        collect() {
          this.reset();
          for (const series of all()) this.set(series.labels, valueOf(series));
        },
      });
  }

  remove(labels: SchemaLabels): void {
    for (const metric of [this.dispatched, this.queueLength, this.width]) metric.remove(labels);
    for (const reason of REASONS) this.rejected.remove({ ...labels, reason });
    for (const execute of ["true", "false"]) this.wait.remove({ ...labels, execute });
    this.execution.remove({ ...labels, type: "regular" });
  }
}

/** Of one schema at its level. */
class Series implements FlowObserver {
  readonly labels: SchemaLabels;
  waitingRequests = 0;
  waitingSeats = 0;
  executingRequests = 0;
  executingSeats = 0;
  readonly #metrics: SchemaMetrics;
  readonly #onIdle: (series: Series) => void;
  readonly #dispatched: { inc(): void };
  readonly #executed: { observe(seconds: number): void };
  readonly #finished: { observe(seconds: number): void };
  readonly #queueLength: { observe(length: number): void };
  readonly #width: { observe(seats: number): void };
  readonly #isExempt: boolean;

  constructor(metrics: SchemaMetrics, labels: SchemaLabels, onIdle: (series: Series) => void) {
    this.#metrics = metrics;
    this.labels = labels;
    this.#onIdle = onIdle;
    this.#isExempt = labels.priority_level === EXEMPT;
    this.#dispatched = metrics.dispatched.labels(labels);
    this.#executed = metrics.wait.labels({ ...labels, execute: "true" });
    this.#finished = metrics.execution.labels({ ...labels, type: "regular" });
    this.#queueLength = metrics.queueLength.labels(labels);
    this.#width = metrics.width.labels(labels);
  }

  arrived(seats: number): void {
    this.#width.observe(seats);
  }

  joined(queueLength: number): void {
    this.#queueLength.observe(queueLength);
  }

  waits(seats: number): void {
    this.waitingRequests++;
    this.waitingSeats += seats;
  }

  waited(seats: number): void {
    this.waitingRequests--;
    this.waitingSeats -= seats;
  }

  dispatched(seats: number, waitedMs: number): void {
    this.executingRequests++;
    this.executingSeats += seats;
    this.#dispatched.inc();
    if (!this.#isExempt) this.#executed.observe(waitedMs / 1000);
  }

  refused(reason: SeatRefusal, waitedMs: number): void {
    this.#metrics.rejected.inc({ ...this.labels, reason });
    this.#metrics.wait.observe({ ...this.labels, execute: "false" }, waitedMs / 1000);
    this.endIfIdle();
  }

  finished(seats: number, executedMs: number): void {
    this.executingRequests--;
    this.executingSeats -= seats;
    this.#finished.observe(executedMs / 1000);
    this.endIfIdle();
  }

  endIfIdle(): void {
    if (this.waitingRequests + this.executingRequests === 0) this.#onIdle(this);
  }
}
