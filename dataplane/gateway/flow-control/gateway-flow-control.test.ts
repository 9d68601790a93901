import { request as h1Request, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { applyLevel, applySchema, startTestBed, type TestBed, type TestBedOptions } from "../testing/test-gateway.ts";

const HOST = "hello.default.example.com";
const LEVEL = "x-fairway-prioritylevel";
let bed: TestBed;
afterEach(() => bed.close());

const limited = (nominalConcurrencyShares: number, limitResponse: object = { type: "Reject" }): object => ({
  type: "Limited",
  limited: { nominalConcurrencyShares, limitResponse },
});
const queued = (nominalConcurrencyShares: number): object =>
  limited(nominalConcurrencyShares, {
    type: "Queue",
    queuing: { queues: 8, handSize: 2, queueLengthLimit: 50 },
  });
/** Requests of these users, each a flow of its own. */
const schemaOf = (level: string, users: readonly string[], matchingPrecedence = 100): object => ({
  priorityLevelConfiguration: { name: level },
  matchingPrecedence,
  distinguisherMethod: { type: "ByUser" },
  rules: [
    {
      subjects: users.map(name => ({ kind: "User", user: { name } })),
      resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"] }],
    },
  ],
});

/** A request at the pod, which answers when the test says so. */
interface Held {
  readonly user: string;
  answer(): void;
}

interface Setup {
  readonly held: Held[];
  /** Users in the order in which their requests reached the pod. */
  readonly order: string[];
}

/** A gateway that believes what its client says about who it is, before a service with one pod. */
async function start(
  revision: { readonly spec?: object; readonly annotations?: Record<string, string> },
  options: TestBedOptions = {},
): Promise<Setup> {
  bed = await startTestBed({
    ...options,
    env: { IDENTITY_PROXIES: "127.0.0.1", FLOW_CONTROL_DEBUG: "true", ...options.env },
  });
  const held: Held[] = [];
  const order: string[] = [];
  bed.revision("hello-00001", revision.spec, { annotations: revision.annotations ?? {} });
  bed.route("hello", [{ revisionName: "hello-00001", percent: 100 }]);
  const pod = await bed.pod((req: IncomingMessage, res: ServerResponse) => {
    const user = String(req.headers["x-remote-user"]);
    order.push(user);
    held.push({ user, answer: () => void res.end("ok") });
  });
  bed.endpoint("hello-00001", pod);
  await until(async () => {
    const { external } = (await debug("routes")) as { external: Record<string, unknown> };
    const known = (await debug("revisions"))["default/hello-00001"] as { pods: unknown[] } | undefined;
    return external[HOST] !== undefined && known?.pods.length === 1;
  });
  return { held, order };
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise(resolve => setTimeout(resolve, 2));
}

const debug = async (view: string): Promise<Record<string, unknown>> =>
  (await (await fetch(`http://127.0.0.1:${bed.gateway.adminPort}/debug/${view}`)).json()) as Record<string, unknown>;
const waitingForPlace = async (): Promise<number> =>
  ((await debug("revisions"))["default/hello-00001"] as { waiting: number }).waiting;
interface LevelView {
  readonly name: string;
  readonly waiting: number;
  readonly executing: number;
  readonly quiescing: boolean;
}
const levelView = async (name: string): Promise<LevelView | undefined> =>
  ((await debug("flow-control"))["levels"] as LevelView[]).find(level => level.name === name);
const levelKnown = (name: string): Promise<void> => until(async () => (await levelView(name)) !== undefined);

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}
interface Asking extends Promise<Answer> {
  leave(): void;
}

function ask(user: string, groups: string[] = []): Asking {
  const headers = { host: HOST, "x-remote-user": user, ...(groups.length > 0 ? { "x-remote-group": groups } : {}) };
  const req = h1Request(bed.external, { headers, agent: false });
  const answer = new Promise<Answer>((resolve, reject) => {
    req.on("response", res => {
      text(res).then(() => resolve({ status: res.statusCode ?? 0, headers: res.headers }), reject);
    });
    req.on("error", reject);
    req.end();
  });
  return Object.assign(answer, { leave: () => req.destroy() });
}

/** Lets the pod answer what it gets, one after the other, until so many have reached it. */
async function drain({ held, order }: Setup, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await until(() => held.length > i);
    // One at a time, as the revision says.
    expect(order).toHaveLength(i + 1);
    held[i]!.answer();
  }
}

describe("the place at a saturated revision", () => {
  const one = { spec: { containerConcurrency: 1 } };

  it("goes to a mouse between an elephant's requests, and under `fifo` after them", async () => {
    for (const policy of ["fair", "fifo"]) {
      const setup = await start({ ...one, annotations: { "flowcontrol.fairway.dev/queue-policy": policy } });
      applyLevel(bed.api, "tenants", queued(100));
      applySchema(bed.api, "tenants", schemaOf("tenants", ["elephant", "mouse"]));
      await levelKnown("tenants");
      const elephant = Array.from({ length: 20 }, () => ask("elephant"));
      await until(async () => (await waitingForPlace()) === 19);
      const mouse = [ask("mouse"), ask("mouse")];
      await until(async () => (await waitingForPlace()) === 21);
      await drain(setup, 22);
      expect((await Promise.all([...elephant, ...mouse])).every(({ status }) => status === 200)).toBe(true);
      const last = setup.order.lastIndexOf("mouse");
      if (policy === "fair") expect(last).toBeLessThanOrEqual(5);
      else expect(last).toBe(21);
      if (policy === "fair") await bed.close();
    }
  });

  it("goes by the levels' shares, to `exempt` first", async () => {
    const setup = await start(one);
    applyLevel(bed.api, "high", queued(90));
    applyLevel(bed.api, "low", queued(10));
    applySchema(bed.api, "high", schemaOf("high", ["boss"]));
    applySchema(bed.api, "low", schemaOf("low", ["clerk"]));
    await levelKnown("high");
    const asked = Array.from({ length: 20 }, () => ask("clerk"));
    await until(async () => (await waitingForPlace()) === 19);
    asked.push(...Array.from({ length: 18 }, () => ask("boss")), ask("pager", ["system:masters"]));
    await until(async () => (await waitingForPlace()) === 38);
    await drain(setup, 39);
    const answers = await Promise.all(asked);
    expect(answers.at(-1)?.headers[LEVEL]).toBe("exempt");
    expect(setup.order[1]).toBe("pager");
    // Nine to one, where those who came first would have had all.
    expect(setup.order.slice(2, 22).filter(user => user === "boss").length).toBeGreaterThanOrEqual(16);
  });

  it("goes by new shares as soon as levels change, to those who wait already too", async () => {
    const setup = await start(one);
    applyLevel(bed.api, "high", queued(1));
    applyLevel(bed.api, "low", queued(1_000));
    applySchema(bed.api, "high", schemaOf("high", ["boss"]));
    applySchema(bed.api, "low", schemaOf("low", ["clerk"]));
    await levelKnown("high");
    const asked = [...Array.from({ length: 11 }, () => ask("clerk")), ...Array.from({ length: 10 }, () => ask("boss"))];
    await until(async () => (await waitingForPlace()) === 20);
    applyLevel(bed.api, "high", queued(1_000));
    applyLevel(bed.api, "low", queued(1));
    await until(async () => {
      const metrics = await bed.registry.metrics();
      const of = (level: string): number =>
        Number(new RegExp(`nominal_limit_seats\\{priority_level="${level}"\\} (\\d+)`).exec(metrics)?.[1]);
      return of("high") > of("low");
    });
    await drain(setup, 21);
    await Promise.all(asked);
    expect(setup.order.slice(1, 12).filter(user => user === "boss").length).toBeGreaterThanOrEqual(9);
  });
});

describe("the seat at the gateway", () => {
  /** Four seats: three of `few`, one of others. */
  const FOUR = { MAX_REQUESTS_INFLIGHT: "3", MAX_MUTATING_REQUESTS_INFLIGHT: "1" };
  async function fourSeats(options: TestBedOptions = {}): Promise<Setup> {
    const setup = await start({}, { ...options, env: { ...FOUR, ...options.env } });
    applyLevel(bed.api, "few", queued(15));
    applySchema(bed.api, "few", schemaOf("few", ["a", "b", "c"]));
    await levelKnown("few");
    return setup;
  }
  /** All seats of the level busy, and one request more that waits. */
  async function fill({ held }: Setup): Promise<{ readonly running: Asking[]; readonly waits: Asking }> {
    const running: Asking[] = [];
    for (;;) {
      const asking = ask("a");
      const before = held.length;
      await until(async () => held.length > before || (await levelView("few"))?.waiting === 1);
      if (held.length === before) return { running, waits: asking };
      running.push(asking);
    }
  }

  it("is never wanting for `exempt`, whatever the others have", async () => {
    const setup = await fourSeats();
    const { running, waits } = await fill(setup);
    const exempt = Array.from({ length: 10 }, () => ask("root", ["system:masters"]));
    await until(() => setup.held.filter(({ user }) => user === "root").length === 10);
    expect((await levelView("few"))?.waiting).toBe(1);
    for (const each of setup.held) each.answer();
    await until(() => setup.held.length === running.length + 11);
    setup.held.at(-1)?.answer();
    expect((await waits).status).toBe(200);
    expect((await Promise.all([...running, ...exempt])).every(({ status }) => status === 200)).toBe(true);
  });

  it("is waited for no longer than a quarter of the request's time, and never by a client that left", async () => {
    const clock = new FakeClock();
    const setup = await fourSeats({ clock: movedBy(clock) });
    const { running, waits } = await fill(setup);
    const leaves = ask("b");
    leaves.catch(() => undefined);
    await until(async () => (await levelView("few"))?.waiting === 2);
    leaves.leave();
    await until(async () => (await levelView("few"))?.waiting === 1);
    clock.advance(7_600);
    const { status, headers } = await waits;
    expect(status).toBe(429);
    expect(Number(headers["retry-after"])).toBeGreaterThanOrEqual(1);
    expect(headers["x-kubernetes-pf-prioritylevel-uid"]).toBe("uid-few");
    const reasons = await bed.registry.metrics();
    expect(reasons).toMatch(/rejected_requests_total\{.*priority_level="few".*reason="time-out".*\} 1/);
    expect(reasons).toMatch(/rejected_requests_total\{.*priority_level="few".*reason="cancelled".*\} 1/);
    for (const each of setup.held) each.answer();
    expect((await Promise.all(running)).every(({ status: each }) => each === 200)).toBe(true);
  });

  it("is kept, and waited for, while levels and schemas come and go; a level that is gone drains", async () => {
    const setup = await fourSeats();
    const { running, waits } = await fill(setup);
    bed.api.delete("/apis/flowcontrol.fairway.dev/v1/flowschemas", "", "few");
    bed.api.delete("/apis/flowcontrol.fairway.dev/v1/prioritylevelconfigurations", "", "few");
    await until(async () => (await levelView("few"))?.quiescing === true);
    const more = ask("a");
    await until(() => setup.held.length === running.length + 1);
    expect((await levelView("few"))?.waiting).toBe(1);
    for (const each of setup.held) each.answer();
    await until(() => setup.held.length === running.length + 2);
    setup.held.at(-1)?.answer();
    expect((await more).headers[LEVEL]).toBe("catch-all");
    expect((await waits).headers[LEVEL]).toBe("few");
    await until(async () => (await levelView("few")) === undefined);
    expect((await Promise.all(running)).every(({ status }) => status === 200)).toBe(true);
  });
});

/** The fake clock, with steps of its own for what has nothing to do with the test: views that are told in a moment. */
function movedBy(clock: FakeClock): FakeClock {
  const timer = setInterval(() => clock.advance(1), 1);
  timer.unref();
  return clock;
}
