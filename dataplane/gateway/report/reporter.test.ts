import { pino } from "pino";
import { describe, expect, it } from "vitest";
import type { GatewayReply, GatewayReport } from "../../../api/wire/stats.ts";
import { ConcurrencyMeter } from "../../shared/concurrency-meter.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import type { RevisionBackend } from "../revisions/revision-backend.ts";
import { Reporter } from "./reporter.ts";

interface FakeBackend {
  key: string;
  namespace: string;
  name: string;
  waiting: number;
  inFlight: number;
  hasRoutablePod: boolean;
  needsPod: boolean;
  meter: ConcurrencyMeter;
}

/** @param lateMs by which every timer fires late */
function setUp(lateMs = 0) {
  const clock = new FakeClock();
  const sent: GatewayReport[] = [];
  const state = { reply: { needFull: false, hints: {} } as GatewayReply | undefined, lost: 0, failures: 0 };
  const backend: FakeBackend = {
    key: "ns/r",
    namespace: "ns",
    name: "r",
    waiting: 0,
    inFlight: 0,
    hasRoutablePod: false,
    needsPod: true,
    meter: new ConcurrencyMeter(0),
  };
  const hints: unknown[] = [];
  const reporter = new Reporter({
    gateway: "gw",
    instance: "boot",
    clock: {
      nowMs: () => clock.nowMs(),
      wallMs: () => clock.wallMs(),
      after: (delayMs, run) => clock.after(delayMs + lateMs, run),
      cancel: timer => clock.cancel(timer),
    },
    send: async report => {
      if (state.reply === undefined) throw new Error("away");
      sent.push(report);
      return state.reply;
    },
    backends: () => [backend as unknown as RevisionBackend],
    onHints: heard => hints.push(heard),
    logger: pino({ level: "silent" }),
    onAccepted: () => undefined,
    onFailed: requests => {
      state.failures++;
      state.lost += requests;
    },
  });
  reporter.start();
  const advance = async (ms: number): Promise<void> => {
    clock.advance(ms);
    for (let i = 0; i < 5; i++) await Promise.resolve();
  };
  const request = (): void => {
    backend.meter.enter(clock.nowMs());
    backend.waiting++;
    reporter.poke(backend as unknown as RevisionBackend);
  };
  return { clock, sent, state, backend, reporter, advance, request, hints };
}

describe("Reporter", () => {
  it("tells each second of revisions with traffic, once more after it ended, then no more", async () => {
    const { sent, backend, advance, clock } = setUp();
    await advance(1_000);
    expect(sent[0]).toMatchObject({
      gateway: "gw",
      instance: "boot",
      sequence: 1,
      full: true,
      poke: false,
      revisions: [],
    });
    backend.meter.enter(clock.nowMs());
    await advance(500);
    backend.meter.leave(clock.nowMs());
    await advance(500);
    await advance(1_000);
    await advance(1_000);
    expect(sent.slice(1).map(report => report.revisions)).toEqual([
      [{ namespace: "ns", revision: "r", averageConcurrentRequests: 0.5, requestCount: 1, waiting: 0, inFlight: 0 }],
      [{ namespace: "ns", revision: "r", averageConcurrentRequests: 0, requestCount: 0, waiting: 0, inFlight: 0 }],
      [],
    ]);
  });

  it("keeps its beat although timers fire late", async () => {
    const { sent, clock, advance } = setUp(3);
    for (let i = 0; i < 20; i++) await advance(50);
    expect(sent).toEqual([]);
    for (let i = 0; i < 100_000; i += 50) await advance(50);
    expect(sent).toHaveLength(100);
    const late = sent.map(({ timestampMs }) => (timestampMs - clock.wallMs()) % 1_000);
    expect(new Set(late).size).toBe(1);
  });

  it("pokes at once, and once for requests that come together", async () => {
    const { sent, advance, request } = setUp();
    await advance(100);
    request();
    await advance(0);
    expect(sent).toMatchObject([
      { poke: true, revisions: [{ averageConcurrentRequests: 1, requestCount: 1, waiting: 1 }] },
    ]);
    request();
    request();
    await advance(49);
    expect(sent).toHaveLength(1);
    await advance(1);
    expect(sent).toMatchObject([{}, { poke: true, revisions: [{ averageConcurrentRequests: 3, waiting: 3 }] }]);
  });

  it("pokes again when it was not heard, more and more rarely, while anybody waits", async () => {
    const { sent, state, backend, advance, request } = setUp();
    state.reply = undefined;
    request();
    await advance(0);
    expect(state.failures).toBe(1);
    await advance(100);
    expect(state.failures).toBe(2);
    await advance(200);
    expect(state.failures).toBe(3);
    state.reply = { needFull: false, hints: {} };
    await advance(400);
    expect(sent).toMatchObject([{ poke: true }]);
    backend.waiting = 0;
    backend.needsPod = false;
    await advance(299);
    expect(sent).toHaveLength(1);
  });

  it("does not tell of a revision that needs no pod", async () => {
    const { sent, backend, advance, request } = setUp();
    backend.hasRoutablePod = true;
    backend.needsPod = false;
    request();
    await advance(0);
    expect(sent).toEqual([]);
  });

  it("pokes for a revision whose pods are busy while more wait than it has told of", async () => {
    const { sent, backend, advance, request } = setUp();
    const waiting = () => sent.map(({ poke, revisions }) => [poke, revisions[0]?.waiting]);
    backend.hasRoutablePod = true;
    request();
    request();
    await advance(0);
    await advance(50);
    // Two, of which the second came within the gap.
    expect(waiting()).toEqual([
      [true, 1],
      [true, 2],
    ]);
    // One has got its place, another comes: as many wait as were told of.
    backend.waiting--;
    request();
    await advance(100);
    expect(sent).toHaveLength(2);
    request();
    await advance(0);
    expect(waiting()[2]).toEqual([true, 3]);
    await advance(850);
    expect(waiting()[3]).toEqual([false, 3]);
    for (let i = 0; i < 1_000; i++) {
      backend.waiting--;
      request();
      await advance(1);
    }
    expect(waiting().slice(4)).toEqual([[false, 3]]);
  });

  it("pokes for busy pods again when it was not heard", async () => {
    const { sent, state, backend, advance, request } = setUp();
    backend.hasRoutablePod = true;
    state.reply = undefined;
    request();
    await advance(0);
    expect(state.failures).toBe(1);
    state.reply = { needFull: false, hints: {} };
    await advance(100);
    expect(sent).toMatchObject([{ poke: true, revisions: [{ waiting: 1 }] }]);
  });

  it("counts the requests of a second that was not heard of", async () => {
    const { state, backend, clock, advance } = setUp();
    state.reply = undefined;
    for (let i = 0; i < 7; i++) backend.meter.enter(clock.nowMs());
    await advance(1_000);
    expect([state.failures, state.lost]).toEqual([1, 7]);
  });

  it("tells soon what was programmed, only the news, and all of it to who knows nothing", async () => {
    const { sent, state, reporter, advance } = setUp();
    reporter.programmed(
      new Map([
        ["ns/a", "1"],
        ["ns/b", "1"],
      ]),
    );
    await advance(10);
    expect(sent).toMatchObject([{ full: true, poke: true, revisions: [], programmed: { "ns/a": "1", "ns/b": "1" } }]);
    reporter.programmed(
      new Map([
        ["ns/a", "1"],
        ["ns/b", "2"],
      ]),
    );
    await advance(10);
    expect(sent[1]).toMatchObject({ full: false, programmed: { "ns/b": "2" } });
    await advance(1_000);
    expect(sent[2]).toMatchObject({ full: false, poke: false, programmed: {} });
    state.reply = { needFull: true, hints: {} };
    await advance(1_000);
    state.reply = { needFull: false, hints: {} };
    await advance(10);
    expect(sent[4]).toMatchObject({ full: true, programmed: { "ns/a": "1", "ns/b": "2" } });
  });

  it("passes hints on, and tells the rest when it stops", async () => {
    const { sent, backend, clock, reporter, advance, hints } = setUp();
    backend.meter.enter(clock.nowMs());
    await advance(400);
    await reporter.stop();
    expect(sent).toMatchObject([{ poke: false, revisions: [{ requestCount: 1 }] }]);
    expect(hints).toEqual([{}]);
    await advance(5_000);
    expect(sent).toHaveLength(1);
  });
});
