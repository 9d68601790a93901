import { describe, expect, it } from "vitest";
import fc from "fast-check";
import {
  MANDATORY_FLOW_SCHEMAS,
  MANDATORY_PRIORITY_LEVELS,
  SUGGESTED_FLOW_SCHEMAS,
  SUGGESTED_PRIORITY_LEVELS,
} from "./bootstrap.ts";
import type { RequestAttributes } from "./classifier.ts";
import type { FlowTicket } from "./flow-controller.ts";
import { FlowController } from "./flow-controller.ts";
import type { FlowSchemaObject, LimitedSpec, PriorityLevelObject } from "./objects.ts";

const bootstrapLevels = [...MANDATORY_PRIORITY_LEVELS, ...SUGGESTED_PRIORITY_LEVELS].map(o => ({ ...o, uid: "" }));
const bootstrapSchemas = [...MANDATORY_FLOW_SCHEMAS, ...SUGGESTED_FLOW_SCHEMAS].map(o => ({ ...o, uid: "" }));

const queuing = { queues: 16, handSize: 4, queueLengthLimit: 10 };

function level(name: string, limited: Partial<LimitedSpec> = {}): PriorityLevelObject {
  return {
    name,
    uid: `uid-${name}`,
    spec: {
      type: "Limited",
      limited: { nominalConcurrencyShares: 30, limitResponse: { type: "Queue", queuing }, ...limited },
    },
  };
}

function schema(name: string, levelName: string, matchingPrecedence = 1000): FlowSchemaObject {
  return {
    name,
    uid: `uid-${name}`,
    spec: {
      priorityLevelConfiguration: { name: levelName },
      matchingPrecedence,
      distinguisherMethod: { type: "ByUser" },
      rules: [
        {
          subjects: [{ kind: "Group", group: { name: "*" } }],
          resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"] }],
        },
      ],
    },
  };
}

const by = (user: string, groups: readonly string[] = ["system:authenticated"]): RequestAttributes => ({
  user,
  groups,
  verb: "get",
  resource: { apiGroup: "serving.knative.dev", resource: "services", subresource: "", namespace: "ns", name: "svc" },
  path: "/",
  header: () => undefined,
});

function harness(totalSeats: number, levels: PriorityLevelObject[] = [], schemas: FlowSchemaObject[] = []) {
  const dispatched: FlowTicket<string>[] = [];
  const expired: [FlowTicket<string>, number][] = [];
  const hooks = {
    dispatched: (ticket: FlowTicket<string>) => dispatched.push(ticket),
    expired: (ticket: FlowTicket<string>, retryAfterS: number) => expired.push([ticket, retryAfterS]),
  };
  const controller = new FlowController<string>({ totalSeats, maxWaitMs: 1000, hooks }, 0);
  const report = controller.configure(levels, schemas, 0);
  const start = (user: string, nowMs = 0, seats = 1) =>
    controller.start({ classification: controller.classify(by(user)), seats, payload: user }, nowMs);
  const ticket = (user: string, nowMs = 0, seats = 1): FlowTicket<string> => {
    const result = start(user, nowMs, seats);
    if (result.kind === "rejected") throw new Error(`rejected: ${result.reason}`);
    return result.ticket;
  };
  const status = (name: string) => controller.status().find(candidate => candidate.level.name === name);
  return { controller, report, dispatched, expired, start, ticket, status };
}

/** One level has all seats: the mandatory ones are crowded out by its shares. */
const only = (limited: Partial<LimitedSpec> = {}): PriorityLevelObject =>
  level("only", { nominalConcurrencyShares: 10_000, borrowingLimitPercent: 0, ...limited });

describe("FlowController", () => {
  it("works with the mandatory objects alone", () => {
    const { controller, start } = harness(2);
    expect(controller.status().map(s => [s.level.name, s.currentLimit])).toEqual([
      ["catch-all", 2],
      ["exempt", 0],
    ]);
    expect([start("a").kind, start("b").kind, start("c").kind]).toEqual(["execute", "execute", "rejected"]);
    const master = controller.classify(by("root", ["system:masters"]));
    for (let i = 0; i < 5; i++) {
      expect(controller.start({ classification: master, seats: 1, payload: "" }, 0).kind).toBe("execute");
    }
  });

  it("divides 600 seats as upstream does with the suggested objects", () => {
    const { controller } = harness(600, bootstrapLevels, bootstrapSchemas);
    const nominal = new Map(controller.status().map(s => [s.level.name, [s.limits.nominal, s.limits.min]]));
    expect(Object.fromEntries(nominal)).toEqual({
      "catch-all": [13, 13],
      exempt: [0, 0],
      "global-default": [49, 24],
      "leader-election": [25, 25],
      "node-high": [98, 73],
      system: [74, 50],
      "workload-high": [98, 49],
      "workload-low": [245, 24],
    });
  });

  it("lends idle seats to a busy level within ten seconds and takes them back", () => {
    const lender = level("lender", { lendablePercent: 100 });
    const { controller, ticket, status, dispatched } = harness(60, [level("busy"), lender], [schema("all", "busy")]);
    const running = Array.from({ length: 60 }, (_, i) => ticket(`u${i % 20}`));
    const before = status("busy")!.currentLimit;
    controller.tick(controller.nextEventMs()); // waits end after a second, before anything is lent
    expect(dispatched.length).toBe(0);
    for (let i = 0; i < 30; i++) ticket(`u${i}`, 9500);
    controller.tick(10_000);
    const lent = status("busy")!.currentLimit;
    expect(lent).toBeGreaterThan(before);
    expect(status("busy")!.executing).toBe(lent);
    for (const t of running) controller.finish(t, 10_001);
    for (const t of dispatched) controller.finish(t, 10_002); // grows meanwhile
    for (let nowMs = 20_000; nowMs < 3_000_000; nowMs += 10_000) controller.tick(nowMs);
    expect(status("busy")).toMatchObject({ seatsInUse: 0, waiting: 0 });
    expect(status("busy")!.currentLimit).toBeLessThan(lent);
  });

  it("tells of dispatch and of waits that were too long", () => {
    const { controller, ticket, dispatched, expired } = harness(1, [only()], [schema("all", "only")]);
    const a = ticket("a", 0);
    const b = ticket("b", 10);
    const c = ticket("c", 20);
    expect([a.state, b.state, c.state]).toEqual(["executing", "queued", "queued"]);
    controller.finish(a, 500);
    expect(dispatched).toEqual([b]);
    expect(controller.nextEventMs()).toBe(1020);
    controller.tick(1020);
    expect(expired).toEqual([[c, 1]]);
    expect([b.state, c.state]).toEqual(["executing", "expired"]);
    expect([controller.finish(c, 1021), controller.cancel(c, 1021), controller.cancel(b, 1021)]).toEqual([
      false,
      false,
      false,
    ]);
    expect([controller.finish(b, 1030), controller.finish(b, 1030)]).toEqual([true, false]);
    controller.cancel(ticket("d", 2000), 2000);
    for (let i = 0; i < 13; i++) controller.cancel(ticket("e", 2000), 2001);
    const { counts } = controller.status().find(s => s.level.name === "only")!;
    expect(counts).toEqual({ dispatched: 3, rejected: 0, timedOut: 1, cancelled: 13 });
  });

  it("lets a removed level drain and forgets it with its last request", () => {
    const { controller, ticket, status, dispatched } = harness(1, [only()], [schema("all", "only")]);
    const a = ticket("a");
    const b = ticket("b");
    const stale = controller.classify(by("late"));
    controller.configure([], [], 1);
    expect(status("only")).toMatchObject({ quiescing: true, waiting: 1, executing: 1 });
    expect(controller.classify(by("a")).level.name).toBe("catch-all");
    controller.finish(a, 2);
    expect(dispatched).toEqual([b]);
    controller.finish(b, 3);
    expect(status("only")).toBeUndefined();
    const late = controller.start({ classification: stale, seats: 1, payload: "late" }, 4);
    expect(late.kind).toBe("execute");
    expect(status("catch-all")).toMatchObject({ executing: 1 });
  });

  it("keeps those who wait when a level comes back, changes its queues or starts to reject", () => {
    const { controller, ticket, start, dispatched } = harness(1, [only()], [schema("all", "only")]);
    const a = ticket("a");
    const b = ticket("b");
    const c = ticket("c");
    controller.configure([], [], 1);
    controller.configure([only({ limitResponse: { type: "Reject" } })], [schema("all", "only")], 2);
    expect(start("d", 3)).toMatchObject({ kind: "rejected", reason: "concurrency-limit" });
    controller.finish(a, 4);
    const smaller = { type: "Queue" as const, queuing: { queues: 2, handSize: 1, queueLengthLimit: 5 } };
    controller.configure([only({ limitResponse: smaller })], [schema("all", "only")], 5);
    controller.finish(dispatched[0]!, 6);
    expect(new Set(dispatched)).toEqual(new Set([b, c]));
  });

  it("treats broken levels as if they did not exist and says why", () => {
    const broken: PriorityLevelObject[] = [
      { name: "a", uid: "", spec: { type: "Exempt", exempt: {} } },
      { name: "b", uid: "", spec: { type: "Limited" } },
      level("c", { limitResponse: { type: "Queue" } }),
      level("d", { limitResponse: { type: "Reject", queuing } }),
      level("e", { limitResponse: { type: "Queue", queuing: { ...queuing, handSize: 17 } } }),
      { name: "exempt", uid: "", spec: level("x").spec },
    ];
    const { report, controller } = harness(10, broken, [schema("s", "a")]);
    expect(report.broken.map(({ level: name, problem }) => `${name}: ${problem}`)).toEqual([
      "a: only the level exempt may be and must be Exempt",
      "b: type Limited and limited do not agree",
      "c: limitResponse Queue lacks queuing",
      "d: limitResponse Reject has queuing",
      "e: handSize 17 is greater than queues 16",
      "exempt: only the level exempt may be and must be Exempt",
    ]);
    expect(report.dangling).toEqual([{ schema: "s", level: "a" }]);
    expect(controller.status().map(s => s.level.name)).toEqual(["catch-all", "exempt"]);
  });

  it("explains where a request goes and what it would wait behind", () => {
    const { controller, ticket } = harness(1, [only()], [schema("first", "gone", 1), schema("all", "only")]);
    ticket("a");
    const { classification, missed, schema: matched } = controller.explain(by("alice"));
    expect([matched?.name, classification.level.name, classification.flow]).toEqual(["all", "only", "alice"]);
    expect(missed.map(miss => miss.schema.name)).toEqual(["exempt"]);
    const place = controller.queueOf(classification)!;
    expect(place.hand).toHaveLength(4);
    expect(place.hand).toContain(place.queue);
    ticket("alice");
    const dump = controller.dump().find(({ level: name }) => name === "only")!;
    expect(dump.queues[place.queue]!.waiting.map(({ payload }) => payload)).toEqual(["alice"]);
  });

  it("loses no request and no seat while levels and schemas come, change and go", () => {
    const names = ["a", "b", "c"];
    const arbitraryLevel = fc.record({
      name: fc.constantFrom(...names),
      shares: fc.constantFrom(0, 1, 30),
      queues: fc.constantFrom(0, 1, 4),
      lendable: fc.constantFrom(0, 50, 100),
    });
    const step = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({
          kind: fc.constant("start" as const),
          user: fc.nat(5),
          seats: fc.integer({ min: 1, max: 3 }),
        }),
      },
      {
        weight: 5,
        arbitrary: fc.record({ kind: fc.constantFrom("finish" as const, "cancel" as const), at: fc.nat() }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant("pass" as const), ms: fc.integer({ min: 0, max: 12_000 }) }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.constant("configure" as const),
          levels: fc.uniqueArray(arbitraryLevel, { selector: ({ name }) => name }),
          target: fc.constantFrom(...names),
          totalSeats: fc.integer({ min: 1, max: 12 }),
        }),
      },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), steps => {
        const { controller, dispatched, expired } = harness(5, [level("a")], [schema("all", "a")]);
        const tickets: FlowTicket<string>[] = [];
        const queuedOnce = new Set<FlowTicket<string>>();
        const inState = (state: string): FlowTicket<string>[] => tickets.filter(ticket => ticket.state === state);
        let nowMs = 0;
        const pass = (ms: number): void => {
          for (const endMs = nowMs + ms; nowMs < endMs; ) {
            nowMs = Math.min(endMs, Math.max(nowMs, controller.nextEventMs()));
            controller.tick(nowMs);
          }
        };
        for (const s of steps) {
          if (s.kind === "start") {
            const classification = controller.classify(by(`u${s.user}`));
            const result = controller.start({ classification, seats: s.seats, payload: "" }, nowMs);
            if (result.kind !== "rejected") tickets.push(result.ticket);
            if (result.kind === "queued") queuedOnce.add(result.ticket);
          } else if (s.kind === "pass") pass(s.ms);
          else if (s.kind === "configure") {
            const levels = s.levels.map(({ name, shares, queues, lendable }) =>
              level(name, {
                nominalConcurrencyShares: shares,
                lendablePercent: lendable,
                limitResponse:
                  queues === 0
                    ? { type: "Reject" }
                    : { type: "Queue", queuing: { queues, handSize: 1, queueLengthLimit: 3 } },
              }),
            );
            controller.configure(levels, [schema("all", s.target)], nowMs, s.totalSeats);
          } else {
            const candidates = inState(s.kind === "finish" ? "executing" : "queued");
            const chosen = candidates[s.at % Math.max(1, candidates.length)];
            if (chosen !== undefined) expect(controller[s.kind](chosen, nowMs)).toBe(true);
          }
          const sums = controller.status().map(({ waiting, executing }) => [waiting, executing]);
          expect(sums.reduce((sum, [waiting]) => sum + waiting!, 0)).toBe(inState("queued").length);
          expect(sums.reduce((sum, [, executing]) => sum + executing!, 0)).toBe(inState("executing").length);
        }
        pass(1000); // no queued one waits longer
        expect(inState("queued")).toEqual([]);
        for (const ticket of tickets) controller.finish(ticket, nowMs);
        const ended = [...dispatched, ...expired.map(([ticket]) => ticket), ...inState("cancelled")];
        expect(new Set(ended)).toEqual(queuedOnce);
        expect(ended).toHaveLength(queuedOnce.size);
        for (const status of controller.status()) {
          expect(status).toMatchObject({ seatsInUse: 0, seatsWaiting: 0, quiescing: false });
        }
      }),
      { numRuns: 150, seed: 12 },
    );
  });

  describe("reports of users", () => {
    it("case 2 (KS#13583): bounded queue, cancelled waiters leave at once, the rest get 429 with Retry-After", () => {
      const { controller, start, status } = harness(2, [only()], [schema("all", "only")]);
      const outcomes = Array.from({ length: 200 }, () => start("client"));
      const queued = outcomes.flatMap(o => (o.kind === "queued" ? [o.ticket] : []));
      const rejected = outcomes.filter(o => o.kind === "rejected");
      expect([queued.length, rejected.length]).toEqual([40, 158]); // a hand of 4 queues of 10
      expect(rejected.every(o => o.reason === "queue-full" && o.retryAfterS >= 1)).toBe(true);
      for (const t of queued) expect(controller.cancel(t, 1000)).toBe(true);
      expect(status("only")).toMatchObject({ waiting: 0, seatsWaiting: 0, executing: 2 });
      expect(start("client", 1000).kind).toBe("queued");
    });

    it("case 10 (KS#10792): waiting has a clock of its own; a request that got its seat is not timed here", () => {
      const { controller, ticket, expired } = harness(1, [only()], [schema("all", "only")]);
      const a = ticket("a");
      const b = ticket("b");
      controller.finish(a, 999);
      controller.tick(60_000);
      expect([b.state, expired]).toEqual(["executing", []]);
    });

    it("case 37 (K8#115409): wide requests of one flow cannot fill the level, though handSize x width would", () => {
      const { controller, ticket, dispatched } = harness(40, [only()], [schema("all", "only")]);
      const { maxSeats } = controller.classify(by("lister"));
      expect(maxSeats).toBe(6); // 15 % of 40, below 40 / 4
      const lists = Array.from({ length: 30 }, () => ticket("lister", 0, 100));
      const mouse = ticket("mouse", 1);
      const running = lists.filter(t => t.state === "executing");
      expect(running).toHaveLength(6);
      // The mouse does not wait for the lists that were there before it, only for a place.
      const first = running[0]!;
      expect(mouse.state === "executing" || (controller.finish(first, 100) && dispatched[0] === mouse)).toBe(true);
    });

    it("case 38 (K8 PR#107729): a schema may come before its level; any order ends the same", () => {
      const { controller, report, start, status } = harness(10, [], [schema("all", "only")]);
      expect(report.dangling).toEqual([{ schema: "all", level: "only" }]);
      expect(controller.classify(by("a")).schema.name).toBe("catch-all");
      expect(controller.configure([only()], [schema("all", "only")], 1).dangling).toEqual([]);
      expect(controller.classify(by("a")).schema.name).toBe("all");
      const levelFirst = harness(10, [only()], []);
      levelFirst.controller.configure([only()], [schema("all", "only")], 1);
      expect(start("a", 2).kind).toBe("execute");
      expect(status("only")?.limits).toEqual(levelFirst.status("only")?.limits);
      // Configuring the same again changes nothing.
      expect(controller.configure([only()], [schema("all", "only")], 3)).toEqual({ dangling: [], broken: [] });
      expect(status("only")).toMatchObject({ executing: 1, quiescing: false });
    });

    it("case 40 (K8#117734): Retry-After grows while a level refuses and falls again, level by level", () => {
      const { start, ticket } = harness(1, [only({ limitResponse: { type: "Reject" } })], [schema("all", "only")]);
      ticket("holder");
      const seen: number[] = [];
      for (let second = 0; second < 60; second++) {
        for (let i = 0; i < 200; i++) {
          const result = start("client", second * 1000 + i);
          if (result.kind === "rejected") seen[second] = result.retryAfterS;
        }
      }
      expect(seen[0]).toBe(1);
      expect(Math.max(...seen)).toBe(32);
      expect(seen).toEqual([...seen].sort((a, b) => a - b));
      const calm: number[] = [];
      for (let second = 160; second < 260; second++) {
        const result = start("client", second * 1000);
        if (result.kind === "rejected") calm.push(result.retryAfterS);
      }
      expect(calm.at(-1)).toBeLessThan(calm[0]!);
    });
  });
});
