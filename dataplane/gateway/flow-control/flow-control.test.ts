import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import type { FlowSchema, PriorityLevelConfiguration } from "../../../api/flowcontrol/v1/types.ts";
import type { PlaceLevel } from "../../../core/flowcontrol/place-queue.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { ANONYMOUS } from "../identity/identity.ts";
import type { WaitingClient } from "../revisions/revision-backend.ts";
import { FlowControl, type Seat } from "./flow-control.ts";
import { flowMetrics } from "./flow-metrics.ts";
import { flowControlViews } from "./flow-views.ts";
import { serviceRequestAttributes } from "../../../core/flowcontrol/service-request.ts";

class Client implements WaitingClient {
  gone = false;
  #callback: (() => void) | undefined;
  onGone(callback: (() => void) | undefined): void {
    this.#callback = callback;
  }
  leave(): void {
    this.gone = true;
    this.#callback?.();
  }
}

const level = (name: string, shares: number, queues?: number): PriorityLevelConfiguration => ({
  metadata: { name, uid: `uid-${name}` },
  spec: {
    type: "Limited",
    limited: {
      nominalConcurrencyShares: shares,
      lendablePercent: 0,
      borrowingLimitPercent: 0,
      limitResponse:
        queues === undefined
          ? { type: "Reject" }
          : { type: "Queue", queuing: { queues, handSize: 1, queueLengthLimit: 2 } },
    },
  },
});

/** Requests of a namespace go to a level. */
const schema = (name: string, to: string, namespace: string): FlowSchema => ({
  metadata: { name, uid: `uid-${name}` },
  spec: {
    priorityLevelConfiguration: { name: to },
    matchingPrecedence: 100,
    distinguisherMethod: { type: "ByUser" },
    rules: [
      {
        subjects: [{ kind: "Group", group: { name: "system:unauthenticated" } }],
        resourceRules: [
          { verbs: ["*"], apiGroups: ["serving.knative.dev"], resources: ["services"], namespaces: [namespace] },
        ],
      },
    ],
  },
});

const request = (method = "GET", target = "/a?b") => ({ method, target, header: () => undefined });
const attributes = (namespace: string) =>
  serviceRequestAttributes(request(), { namespace, service: "s", tag: "" }, ANONYMOUS);

function setUp() {
  const clock = new FakeClock();
  const registry = new Registry();
  const heard: ReadonlyMap<string, PlaceLevel>[] = [];
  const flowControl: FlowControl = new FlowControl({
    clock,
    totalSeats: 10,
    observer: flowMetrics(registry, () => flowControl),
    onLevels: levels => heard.push(levels),
  });
  return { clock, registry, heard, flowControl };
}

describe("FlowControl", () => {
  it("has a level for everybody without any object", () => {
    const { flowControl, heard } = setUp();
    const classification = flowControl.classify(attributes("ns"));
    expect([classification.schema.name, classification.level.name]).toEqual(["catch-all", "catch-all"]);
    expect(flowControl.responseFields(classification)).toEqual([]);
    expect(flowControl.acquire(new Client(), classification, 1)).not.toBeInstanceOf(Promise);
    expect(heard.at(-1)?.get("exempt")).toEqual({ kind: "exempt" });
  });

  it("takes on objects in any order, once for all that come together", () => {
    const { flowControl, heard, clock } = setUp();
    const before = heard.length;
    flowControl.setSchema(schema("gold", "gold", "paid"));
    clock.advance(10);
    expect(flowControl.report.dangling).toEqual([{ schema: "gold", level: "gold" }]);
    expect(flowControl.classify(attributes("paid")).level.name).toBe("catch-all");
    flowControl.setLevel(level("gold", 95));
    flowControl.setLevel(level("other", 5));
    clock.advance(10);
    expect(heard).toHaveLength(before + 2);
    expect(heard.at(-1)?.get("gold")).toEqual({ kind: "limited", weight: 95 });
    const classification = flowControl.classify(attributes("paid"));
    expect(flowControl.responseFields(classification)).toEqual([
      "X-Kubernetes-PF-FlowSchema-UID",
      "uid-gold",
      "X-Kubernetes-PF-PriorityLevel-UID",
      "uid-gold",
    ]);
  });

  it("rejects, queues, dispatches, times out and cancels", async () => {
    const { flowControl, clock, registry } = setUp();
    flowControl.setLevel(level("one", 1, 1));
    flowControl.setLevel(level("big", 1000));
    flowControl.setSchema(schema("one", "one", "ns"));
    flowControl.flush();
    const one = flowControl.classify(attributes("ns"));
    const first = flowControl.acquire(new Client(), one, 1) as Seat;
    const leaver = new Client();
    const second = flowControl.acquire(leaver, one, 1);
    const third = flowControl.acquire(new Client(), one, 1);
    expect([second, third]).toEqual([expect.any(Promise), expect.any(Promise)]);
    expect(() => flowControl.acquire(new Client(), one, 1)).toThrow(
      "too many requests at priority level one: queue-full",
    );
    leaver.leave();
    await expect(second).rejects.toMatchObject({ code: "CLIENT_GONE" });
    first.release();
    const seat = await third;
    const fourth = flowControl.acquire(new Client(), one, 1) as Promise<Seat>;
    const late = expect(fourth).rejects.toMatchObject({
      code: "TOO_MANY_REQUESTS",
      message: expect.stringContaining("time-out") as string,
    });
    clock.advance(15_000);
    await late;
    seat.release();
    seat.release();
    const status = flowControl.status().find(candidate => candidate.level.name === "one");
    expect([status?.waiting, status?.executing]).toEqual([0, 0]);
    expect(status?.counts).toEqual({ dispatched: 2, rejected: 1, timedOut: 1, cancelled: 1 });
    const metrics = await registry.metrics();
    expect(metrics).toContain(
      'fairway_flowcontrol_dispatched_requests_total{priority_level="one",flow_schema="one"} 2',
    );
    for (const reason of ["queue-full", "time-out", "cancelled"])
      expect(metrics).toContain(`flow_schema="one",reason="${reason}"} 1`);
    expect(metrics).toContain('fairway_flowcontrol_nominal_limit_seats{priority_level="one"} 1');
  });

  it("explains to people", () => {
    const { flowControl, clock } = setUp();
    flowControl.setLevel(level("gold", 10, 4));
    flowControl.setSchema(schema("gold", "gold", "paid"));
    flowControl.flush();
    const find = (host: string) => {
      if (host !== "free.example.com" && host !== "paid.example.com") return undefined;
      return { namespace: host.slice(0, 4), service: "s", route: "s", tag: "" } as never;
    };
    const views = flowControlViews(flowControl, find, () => clock.nowMs());
    const explain = (query: string) => views["/debug/flow-control/explain"]?.(new URLSearchParams(query));
    expect(explain("host=paid.example.com&path=/x")).toMatchObject({
      schema: "gold",
      level: "gold",
      flow: "system:anonymous",
      missed: [{ schema: "exempt" }],
    });
    expect(explain("host=free.example.com")).toMatchObject({ schema: "catch-all" });
    expect(explain("host=paid.example.com&user=jane&group=devs")).toMatchObject({
      schema: "catch-all",
      missed: [{}, { schema: "gold", mismatches: [["subject"]] }],
    });
    expect(explain("host=nobody")).toHaveProperty("error");
    expect(views["/debug/flow-control"]?.(new URLSearchParams())).toMatchObject({ dangling: [], broken: [] });
  });

  it("shows who waits", async () => {
    const { flowControl, clock } = setUp();
    flowControl.setLevel(level("one", 1, 1));
    flowControl.setLevel(level("big", 1000));
    flowControl.setSchema(schema("one", "one", "ns"));
    flowControl.flush();
    const one = flowControl.classify(attributes("ns"));
    const seat = flowControl.acquire(new Client(), one, 1) as Seat;
    const waiting = flowControl.acquire(new Client(), one, 1);
    clock.advance(30);
    const views = flowControlViews(
      flowControl,
      () => undefined,
      () => clock.nowMs(),
    );
    expect(views["/debug/flow-control"]?.(new URLSearchParams())).toMatchObject({
      levels: expect.arrayContaining([expect.objectContaining({ name: "one", waiting: 1, dispatched: 1 })]) as unknown,
      queues: [{ level: "one", index: 0, waiting: 1, executing: 1 }],
      longestWaiting: [{ level: "one", schema: "one", flow: "system:anonymous", queue: 0, waitedMs: 30 }],
    });
    seat.release();
    (await waiting).release();
  });
});
