import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Classification, LevelStatus } from "../../../core/flowcontrol/flow-controller.ts";
import type { FlowControlObserver } from "./flow-control.ts";

const BUCKETS_S = [0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30];
/** Pairs of schema and level with labels of their own; the others share one. */
const MOST_PAIRS = 1_000;

interface Series {
  readonly dispatched: { inc(): void };
  readonly executed: { observe(seconds: number): void };
  readonly refused: { observe(seconds: number): void };
  readonly labels: { readonly priority_level: string; readonly flow_schema: string };
}

/** Upstream's `apiserver_flowcontrol_...` with `fairway_` in front: the same names, labels and meanings. */
export function flowMetrics(registry: Registry, status: () => readonly LevelStatus[]): FlowControlObserver {
  const registers = [registry];
  const dispatched = new Counter({
    name: "fairway_flowcontrol_dispatched_requests_total",
    help: "Requests that got a seat",
    labelNames: ["priority_level", "flow_schema"],
    registers,
  });
  const rejected = new Counter({
    name: "fairway_flowcontrol_rejected_requests_total",
    help: "Requests that were refused a seat, by reason (queue-full, concurrency-limit, time-out, cancelled)",
    labelNames: ["priority_level", "flow_schema", "reason"],
    registers,
  });
  const wait = new Histogram({
    name: "fairway_flowcontrol_request_wait_duration_seconds",
    help: "How long requests waited for a seat",
    labelNames: ["priority_level", "flow_schema", "execute"],
    buckets: BUCKETS_S,
    registers,
  });
  const gauges: readonly (readonly [string, string, (level: LevelStatus) => number])[] = [
    ["current_inqueue_requests", "Requests that wait for a seat", level => level.waiting],
    ["current_inqueue_seats", "Seats that those who wait will take", level => level.seatsWaiting],
    ["current_executing_requests", "Requests that have a seat", level => level.executing],
    ["current_executing_seats", "Seats in use", level => level.seatsInUse],
    ["nominal_limit_seats", "Seats by shares", level => level.limits.nominal],
    ["lower_limit_seats", "Fewest seats: the others may be lent", level => level.limits.min],
    ["upper_limit_seats", "Most seats, borrowed ones included", level => level.limits.max],
    ["current_limit_seats", "Seats now, by demand", level => level.currentLimit],
    ["demand_seats_average", "Average demand over the last adjustment period", level => level.demand.average],
    ["demand_seats_smoothed", "Demand as the adjustment sees it", level => level.demand.smoothed],
  ];
  for (const [name, help, value] of gauges)
    new Gauge({
      name: `fairway_flowcontrol_${name}`,
      help,
      labelNames: ["priority_level"],
      registers,
      collect() {
        this.reset();
        for (const level of status()) this.set({ priority_level: level.level.name }, value(level));
      },
    });

  const series = new Map<string, Series>();
  const of = ({ schema, level }: Classification): Series => {
    const key = `${schema.name}/${level.name}`;
    let found = series.get(key);
    if (found === undefined) {
      const isTooMany = series.size >= MOST_PAIRS;
      const labels = isTooMany
        ? { priority_level: "other", flow_schema: "other" }
        : { priority_level: level.name, flow_schema: schema.name };
      found = {
        labels,
        dispatched: dispatched.labels(labels),
        executed: wait.labels({ ...labels, execute: "true" }),
        refused: wait.labels({ ...labels, execute: "false" }),
      };
      if (!isTooMany) series.set(key, found);
    }
    return found;
  };
  return {
    dispatched(classification, waitedMs) {
      const { dispatched: counter, executed } = of(classification);
      counter.inc();
      executed.observe(waitedMs / 1000);
    },
    rejected(classification, reason, waitedMs) {
      const { labels, refused } = of(classification);
      rejected.inc({ ...labels, reason });
      refused.observe(waitedMs / 1000);
    },
  };
}
