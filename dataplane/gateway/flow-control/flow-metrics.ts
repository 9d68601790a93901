import { Counter, Gauge, type Registry } from "prom-client";
import type { Classification, LevelStatus } from "../../../core/flowcontrol/flow-controller.ts";
import { EXEMPT, type FlowSchemaObject } from "../../../core/flowcontrol/objects.ts";
import { BucketCounts, registerHistogram } from "./bucket-counts.ts";
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
  const all = new Map<string, Series>();
  const others = new Series(OTHERS, () => undefined);
  levelMetrics(registry, seats);
  schemaMetrics(registry, () => [...all.values(), others]);
  let wanted: ReadonlySet<string> = new Set();
  const keys = new WeakMap<FlowSchemaObject, string>();
  const keyOf = (schema: FlowSchemaObject): string => {
    let key = keys.get(schema);
    if (key === undefined) keys.set(schema, (key = `${schema.name}/${schema.spec.priorityLevelConfiguration.name}`));
    return key;
  };

  return {
    of({ schema, level }: Classification): FlowObserver {
      const key = keyOf(schema);
      let series = all.get(key);
      if (series !== undefined) return series;
      if (all.size >= MOST_SCHEMAS) return others;
      series = new Series({ priority_level: level.name, flow_schema: schema.name }, () => {
        if (!wanted.has(key)) all.delete(key);
      });
      all.set(key, series);
      return series;
    },
    configured(schemas: readonly FlowSchemaObject[]): void {
      wanted = new Set(schemas.map(keyOf));
      for (const series of all.values()) series.endIfIdle();
    },
  };
}

function levelMetrics(registry: Registry, seats: () => SeatSource | undefined): void {
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

/** What is counted by schema; all of it is read from the series at a scrape. */
function schemaMetrics(registry: Registry, all: () => readonly Series[]): void {
  const registers = [registry];
  const labelNames = ["priority_level", "flow_schema"] as const;
  new Counter({
    name: "fairway_flowcontrol_dispatched_requests_total",
    help: "Requests that got a seat",
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const { labels, dispatchedRequests } of all()) this.inc(labels, dispatchedRequests);
    },
  });
  new Counter({
    name: "fairway_flowcontrol_rejected_requests_total",
    help: `Requests that got no seat, by reason (${REASONS.join(", ")})`,
    labelNames: [...labelNames, "reason"],
    registers,
    collect() {
      this.reset();
      for (const { labels, refusedRequests } of all())
        for (const reason of REASONS)
          if (refusedRequests[reason] > 0) this.inc({ ...labels, reason }, refusedRequests[reason]);
    },
  });
  registerHistogram(registry, {
    name: "fairway_flowcontrol_request_wait_duration_seconds",
    help: "How long requests waited for a seat, those of exempt levels apart",
    samples: () =>
      all().flatMap(({ labels, waitS }) => [
        [{ ...labels, execute: "true" }, waitS.served] as const,
        [{ ...labels, execute: "false" }, waitS.refused] as const,
      ]),
  });
  registerHistogram(registry, {
    name: "fairway_flowcontrol_request_execution_seconds",
    help: "How long requests had their seats",
    samples: () => all().map(({ labels, executionS }) => [{ ...labels, type: "regular" }, executionS] as const),
  });
  registerHistogram(registry, {
    name: "fairway_flowcontrol_request_queue_length_after_enqueue",
    help: "Requests in the queue that a request has joined, itself included",
    samples: () => all().map(({ labels, queueLength }) => [labels, queueLength] as const),
  });
  registerHistogram(registry, {
    name: "fairway_flowcontrol_work_estimated_seats",
    help: "Seats that requests asked for",
    samples: () => all().map(({ labels, width }) => [labels, width] as const),
  });
  const gauges: readonly (readonly [string, string, (series: Series) => number])[] = [
    ["current_inqueue_requests", "Requests that wait for a seat", series => series.waitingRequests],
    ["current_inqueue_seats", "Seats that those who wait will take", series => series.waitingSeats],
    ["current_executing_requests", "Requests that have a seat", series => series.executingRequests],
    ["current_executing_seats", "Seats in use", series => series.executingSeats],
  ];
  for (const [name, help, valueOf] of gauges)
    new Gauge({
      name: `fairway_flowcontrol_${name}`,
      help,
      labelNames,
      registers,
      collect() {
        this.reset();
        for (const series of all()) this.set(series.labels, valueOf(series));
      },
    });
}

/** Of one schema at its level. */
class Series implements FlowObserver {
  readonly labels: SchemaLabels;
  waitingRequests = 0;
  waitingSeats = 0;
  executingRequests = 0;
  executingSeats = 0;
  dispatchedRequests = 0;
  readonly refusedRequests: Record<SeatRefusal, number> = {
    "queue-full": 0,
    "concurrency-limit": 0,
    "time-out": 0,
    cancelled: 0,
  };
  readonly waitS = {
    served: new BucketCounts(DURATION_BUCKETS_S),
    refused: new BucketCounts(DURATION_BUCKETS_S),
  };
  readonly executionS = new BucketCounts(DURATION_BUCKETS_S);
  readonly queueLength = new BucketCounts(QUEUE_LENGTH_BUCKETS);
  readonly width = new BucketCounts(SEAT_BUCKETS);
  readonly #onIdle: () => void;
  readonly #isExempt: boolean;

  constructor(labels: SchemaLabels, onIdle: () => void) {
    this.labels = labels;
    this.#onIdle = onIdle;
    this.#isExempt = labels.priority_level === EXEMPT;
  }

  arrived(seats: number): void {
    this.width.observe(seats);
  }

  joined(queueLength: number): void {
    this.queueLength.observe(queueLength);
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
    this.dispatchedRequests++;
    if (!this.#isExempt) this.waitS.served.observe(waitedMs / 1000);
  }

  refused(reason: SeatRefusal, waitedMs: number): void {
    this.refusedRequests[reason]++;
    this.waitS.refused.observe(waitedMs / 1000);
    this.endIfIdle();
  }

  finished(seats: number, executedMs: number): void {
    this.executingRequests--;
    this.executingSeats -= seats;
    this.executionS.observe(executedMs / 1000);
    this.endIfIdle();
  }

  endIfIdle(): void {
    if (this.waitingRequests + this.executingRequests === 0) this.#onIdle();
  }
}
