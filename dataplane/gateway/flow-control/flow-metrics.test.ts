import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { MANDATORY_PRIORITY_LEVELS } from "../../../core/flowcontrol/bootstrap.ts";
import { FlowController } from "../../../core/flowcontrol/flow-controller.ts";
import type { FlowSchemaObject } from "../../../core/flowcontrol/objects.ts";
import { ANONYMOUS } from "../identity/identity.ts";
import { flowMetrics } from "./flow-metrics.ts";
import { serviceRequestAttributes } from "../../../core/flowcontrol/service-request.ts";

const schema = (name: string, level = "catch-all", matchingPrecedence = 100): FlowSchemaObject => ({
  name,
  uid: "",
  spec: {
    priorityLevelConfiguration: { name: level },
    matchingPrecedence,
    rules: [
      {
        subjects: [{ kind: "Group", group: { name: "system:unauthenticated" } }],
        resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"] }],
      },
    ],
  },
});

function setUp() {
  const registry = new Registry();
  const hooks = { dispatched: () => undefined, expired: () => undefined };
  const controller = new FlowController<string>({ totalSeats: 600, maxWaitMs: 15_000, hooks }, 0);
  const metrics = flowMetrics(registry, () => controller);
  const request = serviceRequestAttributes(
    { method: "GET", target: "/", header: () => undefined },
    { namespace: "ns", service: "s", tag: "" },
    ANONYMOUS,
  );
  const configure = (...schemas: FlowSchemaObject[]): void => {
    controller.configure(LEVELS, schemas, 0);
    metrics.configured(controller.schemas);
  };
  const of = () => metrics.of(controller.classify(request));
  /** Samples of a scrape that have this in them, without the prefix that all have. */
  const samples = async (part: string): Promise<string[]> =>
    (await registry.metrics())
      .split("\n")
      .filter(line => line.includes(part) && !line.startsWith("#"))
      .map(line => line.replace("fairway_flowcontrol_", ""));
  return { controller, configure, of, samples };
}

const LEVELS = MANDATORY_PRIORITY_LEVELS.map(level => ({ ...level, uid: "" }));
const LABELS = 'priority_level="catch-all",flow_schema="a"';

describe("metrics of flow control", () => {
  it("have upstream's gauges by level", async () => {
    const { samples } = setUp();
    const names = (await samples('{priority_level="catch-all"}')).map(line => line.slice(0, line.indexOf("{")));
    expect(names).toEqual([
      "nominal_limit_seats",
      "lower_limit_seats",
      "upper_limit_seats",
      "current_limit_seats",
      "demand_seats_high_watermark",
      "demand_seats_average",
      "demand_seats_stdev",
      "demand_seats_smoothed",
      "target_seats",
    ]);
    // What an exempt level takes is aimed at by nobody.
    expect(await samples('target_seats{priority_level="exempt"}')).toEqual([]);
    expect(await samples("seat_fair_frac")).toEqual([expect.stringMatching(/^seat_fair_frac \d/)]);
  });

  it("tell of a schema's requests what becomes of them", async () => {
    const { configure, of, samples } = setUp();
    configure(schema("a"));
    const a = of();
    for (const length of [1, 30]) {
      a.arrived(2);
      a.joined(length);
    }
    a.dispatched(2, 0);
    a.waits(2);
    expect(await samples(`current_inqueue_requests{${LABELS}}`)).toEqual([`current_inqueue_requests{${LABELS}} 1`]);
    expect(await samples(`current_inqueue_seats{${LABELS}}`)).toEqual([`current_inqueue_seats{${LABELS}} 2`]);
    expect(await samples(`current_executing_requests{${LABELS}}`)).toEqual([`current_executing_requests{${LABELS}} 1`]);
    expect(await samples(`current_executing_seats{${LABELS}}`)).toEqual([`current_executing_seats{${LABELS}} 2`]);
    a.waited(2);
    a.refused("time-out", 15_000);
    a.finished(2, 300);
    expect(await samples(`{${LABELS}`)).toEqual(
      expect.arrayContaining([
        `dispatched_requests_total{${LABELS}} 1`,
        `rejected_requests_total{${LABELS},reason="time-out"} 1`,
        `work_estimated_seats_sum{${LABELS}} 4`,
        `request_queue_length_after_enqueue_sum{${LABELS}} 31`,
        `current_executing_seats{${LABELS}} 0`,
      ]),
    );
    expect(await samples("request_wait_duration_seconds_sum")).toEqual([
      `request_wait_duration_seconds_sum{${LABELS},execute="true"} 0`,
      `request_wait_duration_seconds_sum{${LABELS},execute="false"} 15`,
    ]);
    expect(await samples("request_execution_seconds_sum")).toEqual([
      `request_execution_seconds_sum{${LABELS},type="regular"} 0.3`,
    ]);
  });

  it("go with the schema, once its last request has ended", async () => {
    const { configure, of, samples } = setUp();
    configure(schema("a"));
    const a = of();
    a.arrived(1);
    a.joined(1);
    a.dispatched(1, 0);
    a.refused("queue-full", 0);
    configure(schema("b"));
    expect(await samples(`current_executing_seats{${LABELS}}`)).toHaveLength(1);
    a.finished(1, 10);
    expect(await samples('flow_schema="a"')).toEqual([]);
    // One that was classified before, and comes now.
    const late = a;
    late.arrived(1);
    expect(of()).not.toBe(a);
  });

  it("go when the schema leads to another level, and not when it comes back", async () => {
    const { configure, of, samples } = setUp();
    configure(schema("a"));
    of().dispatched(1, 0);
    configure(schema("a", "exempt"));
    configure(schema("a"));
    of().finished(1, 0);
    expect(await samples(`dispatched_requests_total{${LABELS}}`)).toEqual([`dispatched_requests_total{${LABELS}} 1`]);
    configure(schema("a", "exempt"));
    expect(await samples(LABELS)).toEqual([]);
    const exempt = of();
    exempt.dispatched(1, 0);
    expect(await samples("request_wait_duration_seconds_sum")).toEqual([]);
    expect(await samples('dispatched_requests_total{priority_level="exempt",flow_schema="a"}')).toHaveLength(1);
  });

  it("share one set of labels beyond a thousand schemas", async () => {
    const { configure, of, samples } = setUp();
    for (let i = 0; i <= 1_000; i++) {
      configure(schema(`s${i}`));
      of().dispatched(1, 0);
    }
    expect(await samples('current_executing_requests{priority_level="other",flow_schema="other"}')).toEqual([
      'current_executing_requests{priority_level="other",flow_schema="other"} 1',
    ]);
  });
});
