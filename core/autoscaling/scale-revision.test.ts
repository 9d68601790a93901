import { describe, expect, it } from "vitest";
import type { CloudRunObservation } from "./cloud-run.ts";
import type { GatewayLoadReport } from "./collector.ts";
import { MetricCollector, revisionKey } from "./collector.ts";
import { DEFAULT_AUTOSCALER_CONFIG } from "./config.ts";
import type { RevisionScaling } from "./config.ts";
import { HOLD_RULE, explain } from "./explain.ts";
import { initialLifecycleState } from "./lifecycle.ts";
import type { PodView } from "./observe-revision.ts";
import { observeRevision } from "./observe-revision.ts";
import type { PolicyKind, RevisionSettings } from "./resolve-revision.ts";
import { resolveRevision } from "./resolve-revision.ts";
import type { RevisionObservation, RevisionState, ScaleOutcome } from "./scale-revision.ts";
import { initialRevisionState, scaleRevision } from "./scale-revision.ts";

const S = 1000;
const MINUTE = 60 * S;

function settings(scaling: RevisionScaling = {}, more: Partial<RevisionSettings> = {}): RevisionSettings {
  return {
    policy: "kpa",
    config: DEFAULT_AUTOSCALER_CONFIG,
    scaling,
    cloudRun: {},
    manualInstances: 3,
    instance: { containerConcurrency: 10, cpus: 1, gpu: false },
    reachable: true,
    progressDeadlineMs: 600 * S,
    ...more,
  };
}

const ACTIVE = { activity: { phase: "active", sinceMs: -MINUTE }, initialScaleReached: true } as const;

interface Row {
  readonly at: number;
  readonly stable?: number;
  readonly panic?: number;
  readonly ready?: number;
  readonly settings?: RevisionSettings;
  readonly cloudRun?: CloudRunObservation;
}

/** Plays rows (times in seconds); a row without `stable` has no data. */
function play(rows: readonly Row[], from: RevisionSettings, start: RevisionState): ScaleOutcome[] {
  let state = start;
  let { spec } = resolveRevision(from);
  return rows.map(row => {
    if (row.settings !== undefined) ({ spec } = resolveRevision(row.settings));
    const observation: RevisionObservation = {
      readyPods: row.ready ?? 1,
      load:
        row.stable === undefined
          ? { kind: "none", reason: "no-data-in-window" }
          : { kind: "measured", stable: row.stable, panic: row.panic ?? row.stable },
      cloudRun: row.cloudRun,
      gatewaysInPathSinceMs: 0,
    };
    const outcome = scaleRevision(spec, observation, state, row.at * S);
    state = outcome.next;
    return outcome;
  });
}

const replicas = (outcomes: readonly ScaleOutcome[]) => outcomes.map(outcome => outcome.step.replicas);

describe("a revision under Knative's policy", () => {
  it("case 17: after a restart without metrics holds its seven pods, then by panic's ratchet", () => {
    const start = initialRevisionState(ACTIVE, 7, 0);
    const rows: Row[] = [
      { at: 2, ready: 7 },
      { at: 4, ready: 7 },
      { at: 6, ready: 7, stable: 8 },
      { at: 8, ready: 7, stable: 9 },
      { at: 62, ready: 7, stable: 45 },
    ];
    const outcomes = play(rows, settings(), start);
    expect(replicas(outcomes)).toEqual([undefined, undefined, 7, 7, 7]);
    expect(outcomes[0]!.decision).toEqual({ valid: false, reason: "no-data-in-window" });
  });

  it("keeps the last decision through a gap in the data", () => {
    const rows: Row[] = [
      { at: 2, stable: 30, ready: 5 },
      { at: 4, ready: 5 },
      { at: 6, stable: 37, ready: 5 },
    ];
    expect(replicas(play(rows, settings(), initialRevisionState(ACTIVE, 1, 0)))).toEqual([5, 5, 6]);
  });

  it("does not halve again each time a pod stops: a decision holds until the next tick", () => {
    const start = initialRevisionState(ACTIVE, 1, 0);
    const rows: Row[] = [
      { at: 100, stable: 0, ready: 20 },
      { at: 100.3, stable: 0, ready: 15 },
      { at: 101, stable: 0, ready: 10 },
      { at: 102, stable: 0, ready: 10 },
    ];
    expect(replicas(play(rows, settings(), start))).toEqual([10, 10, 10, 5]);
  });

  it("decides at once for a request at zero, however short ago the last decision was", () => {
    const start = initialRevisionState(ACTIVE, 0, 0);
    const rows: Row[] = [
      { at: 100, stable: 0, ready: 0 },
      { at: 100.2, stable: 3, ready: 0 },
    ];
    expect(play(rows, settings(), start).map(outcome => outcome.desired)).toEqual([0, 1]);
  });

  it("case 20: a changed min-scale holds at the next decision, in place", () => {
    const rows: Row[] = [
      { at: 2, stable: 1 },
      { at: 4, stable: 1, settings: settings({ minScale: 4 }) },
      { at: 6, stable: 1, settings: settings() },
    ];
    expect(replicas(play(rows, settings(), initialRevisionState(ACTIVE, 1, 0)))).toEqual([1, 4, 1]);
  });

  it("case 15: after the route has left, nothing of nine pods or of max and min scale stays", () => {
    const unreachable = settings({ minScale: 9 }, { reachable: false });
    const rows: Row[] = [
      { at: 2, stable: 60, ready: 9 },
      { at: 4, stable: 0, ready: 9, settings: unreachable },
      { at: 20, stable: 0, ready: 9, settings: unreachable },
      { at: 34, stable: 0, ready: 9, settings: unreachable },
    ];
    const outcomes = play(rows, settings({ minScale: 9 }), initialRevisionState(ACTIVE, 1, 0));
    expect(replicas(outcomes)).toEqual([9, undefined, undefined, 0]);
  });

  it("shows the hold after panic as a rule of its own", () => {
    const short = settings({ windowMs: 6 * S });
    const rows: Row[] = [
      { at: 2, stable: 100, panic: 350, ready: 4 },
      ...[4, 6, 8, 10].map(at => ({ at, stable: 84, panic: 84, ready: 20 })),
    ];
    const last = play(rows, short, initialRevisionState(ACTIVE, 1, 0)).at(-1)!;
    expect(last).toMatchObject({ desired: 12, held: true, step: { replicas: 50 } });
    const why = explain(resolveRevision(short).spec, last);
    expect(why).toMatchObject({ winner: HOLD_RULE, pods: 50 });
    expect(why.lines.find(line => line.rule === "stable-window")).toMatchObject({ pods: 12, won: false });
  });
});

describe("from reports to pods", () => {
  const KEY = revisionKey("ns", "rev-00001");
  const report = (
    sequence: number,
    atMs: number,
    concurrency: number,
    requests: number,
    poke = false,
  ): GatewayLoadReport => ({
    gateway: "gw",
    instance: "boot",
    sequence,
    timestampMs: atMs,
    poke,
    revisions: [
      {
        namespace: "ns",
        revision: "rev-00001",
        averageConcurrentRequests: concurrency,
        requestCount: requests,
        waiting: poke ? 1 : 0,
        inFlight: 0,
      },
    ],
  });

  it("case 13: [1000, 0, 0, 0, 0, 1000] over windows of 6 s and 5 s with target 10 makes 34 pods", () => {
    const given = settings({ windowMs: 6 * S, panicWindowPercentage: 83, target: 10, targetUtilization: 1 });
    const { spec, windows } = resolveRevision(given);
    expect(windows).toMatchObject({ stableWindowMs: 6000, panicWindowMs: 5000 });
    const collector = new MetricCollector();
    collector.register(KEY, windows, 0);
    [1000, 0, 0, 0, 0, 1000].forEach((load, i) => collector.acceptReport(report(i + 1, i * S, load, 0), i * S));
    const observation = observeRevision(spec.policy, collector, KEY, [], 0, 5 * S);
    expect(observation.load).toEqual({ kind: "measured", stable: 333.333333, panic: 200 });
    const outcome = scaleRevision(spec, observation, initialRevisionState(ACTIVE, 1, 0), 5 * S);
    expect(outcome.step.replicas).toBe(34);
    const decided = outcome.decision;
    expect(decided.valid && decided.policy === "kpa" && decided.explanation.panicWanted).toBe(20);
  });

  it("case 33: an rps revision idle for 45 minutes scales for one request at once", () => {
    const { spec, windows } = resolveRevision(settings({ metric: "rps", minScale: 0 }));
    const collector = new MetricCollector();
    collector.register(KEY, windows, 0);
    collector.acceptReport(report(1, 0, 1, 5), 0);
    const at = 45 * MINUTE;
    expect(collector.release(KEY, at)).toBe(true);
    const idle = {
      activity: { phase: "inactive", sinceMs: 3 * MINUTE, reason: "no-traffic" },
      initialScaleReached: true,
    } as const;
    expect(collector.acceptReport(report(2, at, 0.01, 1, true), at)).toEqual([KEY]);
    const observation = observeRevision(spec.policy, collector, KEY, [], 0, at);
    const outcome = scaleRevision(spec, observation, initialRevisionState(idle, 0, 0), at);
    expect(outcome.step).toMatchObject({ replicas: 1, mode: "proxy", next: { activity: { phase: "activating" } } });
  });

  it("Cloud Run: a poke starts an instance, and idle time alone takes it away", () => {
    const { spec, windows } = resolveRevision(settings({}, { policy: "cloud-run" }));
    const collector = new MetricCollector();
    collector.register(KEY, windows, 0);
    collector.acceptReport(report(1, 0, 0.01, 1, true), 100);
    let state = initialRevisionState(initialLifecycleState(0), 0, 0);
    const decideAt = (atMs: number, pods: readonly PodView[]): ScaleOutcome => {
      const observation = observeRevision(spec.policy, collector, KEY, pods, 0, atMs);
      const outcome = scaleRevision(spec, observation, state, atMs);
      state = outcome.next;
      return outcome;
    };
    const started = decideAt(100, []);
    expect(started.step).toMatchObject({ replicas: 1, mode: "proxy" });
    const pods: PodView[] = [{ name: "p", createdMs: 200, readySinceMs: 2200 }];
    const busy = { podName: "p", averageProxiedConcurrentRequests: 1, proxiedRequestCount: 1, requestCount: 1 };
    for (let second = 3; second <= 16 * 60; second++) {
      const averageConcurrentRequests = second < 10 ? 1 : 0;
      const reading = {
        ...busy,
        averageConcurrentRequests,
        averageProxiedConcurrentRequests: averageConcurrentRequests,
      };
      collector.recordScrape(KEY, { readyPods: 1, readings: [reading] }, second * S);
      if (second % 2 === 0) {
        const outcome = decideAt(second * S + 500, pods);
        // Last busy in second 9; 15 minutes later it stops.
        const idle = second * S + 500 >= 9 * S + 15 * MINUTE;
        expect([second, outcome.desired]).toEqual([second, idle ? 0 : 1]);
      }
    }
    expect(decideAt(16 * MINUTE, pods).step.replicas).toBe(0);
  });
});

describe("Cloud Run: after a restart of the operator", () => {
  it("an idle instance gets its idle time anew, for it is not known when it was last busy", () => {
    const { spec, windows } = resolveRevision(settings({}, { policy: "cloud-run" }));
    const collector = new MetricCollector();
    const key = revisionKey("ns", "rev-00001");
    collector.register(key, windows, 0);
    const now = 300 * MINUTE;
    const pods: PodView[] = [{ name: "p", createdMs: 0, readySinceMs: 2000 }];
    const seen = (atMs: number) => observeRevision(spec.policy, collector, key, pods, 0, atMs).cloudRun!.instances[0]!;
    expect(seen(now).lastBusyMs).toBe(now);
    const idle = {
      podName: "p",
      averageConcurrentRequests: 0,
      averageProxiedConcurrentRequests: 0,
      requestCount: 0,
      proxiedRequestCount: 0,
    };
    collector.recordScrape(key, { readyPods: 1, readings: [idle] }, now + 500);
    expect(seen(now + 5000).lastBusyMs).toBe(now + 500);
    expect(seen(now + 5000).utilization1m).toBe(0);
    // One CPU, half of it used: that counts more than 2 of 10 requests.
    const working = { ...idle, averageConcurrentRequests: 2, averageProxiedConcurrentRequests: 2, cpuUsage: 0.5 };
    collector.recordScrape(key, { readyPods: 1, readings: [working] }, now + 61_500);
    expect(seen(now + 61_500).utilization1m).toBe(0.5);
  });
});

describe("other policies", () => {
  it("manual: is a fixed number whatever the load, and zero once unreachable", () => {
    const manual = settings({}, { policy: "manual" });
    const rows: Row[] = [
      { at: 2, ready: 0 },
      { at: 4, stable: 900, ready: 3 },
      { at: 6, stable: 0, ready: 3 },
      { at: 70, stable: 0, ready: 3, settings: { ...manual, reachable: false } },
      { at: 72, stable: 0, ready: 3, settings: { ...manual, reachable: false } },
    ];
    const outcomes = play(rows, manual, initialRevisionState(initialLifecycleState(0), 0, 0));
    expect(replicas(outcomes)).toEqual([3, 3, 3, undefined, 0]);
    expect(outcomes[0]!.step.mode).toBe("proxy");
  });

  it("may change while the revision runs: the new policy begins with what is there", () => {
    const to = (policy: PolicyKind): RevisionSettings => settings({}, { policy });
    const rows: Row[] = [
      { at: 2, stable: 40, ready: 6 },
      { at: 4, stable: 40, ready: 6, settings: to("manual") },
      { at: 6, stable: 1, ready: 6, settings: to("kpa") },
    ];
    expect(replicas(play(rows, to("kpa"), initialRevisionState(ACTIVE, 1, 0)))).toEqual([6, 3, 6]);
  });

  it("Cloud Run's does not decide without its observation", () => {
    const [outcome] = play(
      [{ at: 2, stable: 5 }],
      settings({}, { policy: "cloud-run" }),
      initialRevisionState(ACTIVE, 1, 0),
    );
    expect(outcome).toMatchObject({
      decision: { valid: false, reason: "not-collecting" },
      step: { replicas: undefined },
    });
  });
});

describe("an explanation", () => {
  const why = (rows: readonly Row[], of: RevisionSettings) =>
    explain(resolveRevision(of).spec, play(rows, of, initialRevisionState(ACTIVE, 1, 0)).at(-1)!);

  it("lists each rule's number and names the one that won", () => {
    const given = settings({ maxScale: 10, scaleDownDelayMs: 30 * S, activationScale: 2 });
    const explanation = why([{ at: 2, stable: 30, panic: 90, ready: 4 }], given);
    expect(explanation).toMatchObject({ winner: "max-scale", pods: 10 });
    expect(explanation.lines.map(line => [line.rule, line.pods, line.won])).toEqual([
      ["stable-window", 5, false],
      ["panic-window", 13, false],
      ["max-scale-up-rate", 4000, false],
      ["max-scale-down-rate", 2, false],
      ["activation-scale", 2, false],
      ["panic-ratchet", 13, false],
      ["scale-down-delay", undefined, false],
      ["awaiting-started-pods", 10, false],
      ["max-scale", 10, true],
    ]);
    expect(explanation.lines[1]!.text).toContain("3.25 of the ready pods, panic from 2 on (begins)");
  });

  it("says what is waited for, and until when", () => {
    const started = {
      ...initialRevisionState(ACTIVE, 1, 0),
      lifecycle: { ...ACTIVE, activity: { phase: "active", sinceMs: 0 } as const },
    };
    const [outcome] = play([{ at: 10, stable: 0 }], settings(), started);
    expect(explain(resolveRevision(settings()).spec, outcome!)).toMatchObject({
      winner: "active-less-than-stable-window",
      pods: 1,
      waitsFor: "the end of the stable window",
      untilMs: 60 * S,
    });
  });

  it("says that nothing is decided without data", () => {
    const explanation = why([{ at: 2 }], settings());
    expect(explanation).toMatchObject({
      winner: "no-data-in-window",
      pods: undefined,
      waitsFor: "data of the revision",
    });
  });

  it("covers Cloud Run's drivers, demand, bounds and stops", () => {
    const cloudRun: CloudRunObservation = {
      load: { concurrency1m: 20, concurrency10m: 4, cpu1m: 1.9 },
      instances: [0, 1].map(i => ({
        name: `p${i}`,
        createdMs: 0,
        readySinceMs: 2000,
        utilization1m: 0.9,
        lastBusyMs: 0,
      })),
      waiting: 30,
      inFlight: 20,
      newlyWaiting: 0,
      freedPerSecond: 1,
    };
    const explanation = why([{ at: 2, ready: 2, cloudRun }], settings({ maxScale: 4 }, { policy: "cloud-run" }));
    expect(explanation.winner).toBe("max-instances");
    expect(explanation.lines.map(line => [line.rule, line.pods])).toEqual([
      ["concurrency-driver", 4],
      ["cpu-driver", 4],
      ["metrics", 4],
      ["on-demand", 4],
      ["max-instances", 4],
    ]);
    expect(explanation.lines[3]!.text).toBe(
      "30 wait: 0 for starting instances, 1 for running ones, 20 for 2 new, 9 at the maximum; a start takes 2 s",
    );
  });

  it("tells of instances that are no more recommended and stay for a while", () => {
    const instances = ["a", "b", "c"].map(name => ({
      name,
      createdMs: 0,
      readySinceMs: 0,
      utilization1m: 0.2,
      lastBusyMs: 100_000,
    }));
    const cloudRun = {
      load: { concurrency1m: 2, concurrency10m: 2, cpu1m: undefined },
      instances,
      waiting: 0,
      inFlight: 2,
      newlyWaiting: 0,
      freedPerSecond: 1,
    };
    const explanation = why([{ at: 100, ready: 3, cloudRun }], settings({}, { policy: "cloud-run" }));
    expect([explanation.pods, explanation.winner]).toEqual([3, "demoted-instances"]);
    expect(explanation.lines.find(line => line.won)).toMatchObject({ pods: 3, rule: "demoted-instances" });
    expect(explanation.waitsFor).toBe("demoted instances to be idle long enough");
  });
});
