import { describe, expect, it } from "vitest";
import { DEFAULT_AUTOSCALER_CONFIG } from "./config.ts";
import type { CloudRunLoad } from "./cloud-run-drivers.ts";
import { drive, recommend } from "./cloud-run-drivers.ts";
import type { CloudRunScaling, CloudRunSpec } from "./cloud-run-spec.ts";
import { resolveCloudRunSpec } from "./cloud-run-spec.ts";
import type { CloudRunDecision, CloudRunObservation, CloudRunState } from "./cloud-run.ts";
import { decideCloudRun, initialCloudRunState } from "./cloud-run.ts";
import type { RevisionScaling } from "./config.ts";
import type { Instance } from "./demotion.ts";
import { matchCapacity } from "./rollout-capacity.ts";

const SECOND = 1000;
const MINUTE = 60_000;

function spec(more: CloudRunScaling = {}, scaling: RevisionScaling = {}, reachable = true): CloudRunSpec {
  const instance = { containerConcurrency: 10, cpus: 1, gpu: false };
  return resolveCloudRunSpec(DEFAULT_AUTOSCALER_CONFIG, scaling, more, instance, reachable);
}

const load = (concurrency1m: number, cpu1m?: number, concurrency10m = 0): CloudRunLoad => ({
  concurrency1m,
  concurrency10m,
  cpu1m,
});

function ready(count: number, utilization1m = 0.5, lastBusyMs = 0, prefix = "i"): Instance[] {
  return Array.from({ length: count }, (_, i) => ({
    name: `${prefix}${i}`,
    createdMs: i,
    readySinceMs: i + 4000,
    utilization1m,
    lastBusyMs,
  }));
}

function observe(more: Partial<CloudRunObservation>): CloudRunObservation {
  return {
    load: undefined,
    instances: [],
    waiting: 0,
    inFlight: 0,
    newlyWaiting: 0,
    freedPerSecond: 0,
    ...more,
  };
}

type Valid = Extract<CloudRunDecision, { valid: true }>;

function decide(
  of: CloudRunSpec,
  observation: CloudRunObservation,
  state: CloudRunState = initialCloudRunState(observation.instances.length),
  nowMs = 30 * MINUTE,
): Valid {
  const decision = decideCloudRun(of, observation, state, nowMs);
  if (!decision.valid) throw new Error(decision.reason);
  return decision;
}

describe("Cloud Run: drivers", () => {
  it("takes the larger of concurrency and CPU, each over capacity and target (60 %)", () => {
    expect(drive(spec(), load(45, 1.2))).toEqual({ concurrency: 7.5, cpu: 2, needed: 7.5, driving: "concurrency" });
    expect(drive(spec(), load(6, 3))).toEqual({ concurrency: 1, cpu: 5, needed: 5, driving: "cpu" });
  });

  it("takes the larger of one and ten minutes for concurrency", () => {
    expect(drive(spec(), load(6, undefined, 30)).needed).toBe(5);
    expect(drive(spec(), load(30, undefined, 6)).needed).toBe(5);
  });

  it("reads a single-threaded program on two CPUs as 50 %, with the CPUs of sidecars in the sum", () => {
    const two = { ...spec(), cpus: 2 };
    expect(drive(two, load(0.1, 1)).cpu).toBeCloseTo(0.5 / 0.6);
  });

  it("scales on concurrency alone where CPU cannot be measured, and not at all on a disabled driver", () => {
    expect(drive({ ...spec(), cpus: undefined }, load(6, 50)).driving).toBe("concurrency");
    expect(drive(spec({ cpuTarget: "disabled" }), load(6, 50)).needed).toBe(1);
    expect(drive(spec({ concurrencyTarget: "disabled" }), load(600, 0.6)).needed).toBe(1);
  });

  it("uses the container concurrency default where none is set, and 100 instances as maximum", () => {
    const instance = { containerConcurrency: 0, cpus: 1, gpu: false };
    expect(resolveCloudRunSpec(DEFAULT_AUTOSCALER_CONFIG, {}, {}, instance, true)).toMatchObject({
      maxConcurrency: 100,
      maxInstances: 100,
      mode: "default",
      idleTimeoutMs: 15 * MINUTE,
    });
    expect(resolveCloudRunSpec(DEFAULT_AUTOSCALER_CONFIG, {}, {}, { ...instance, gpu: true }, true).idleTimeoutMs).toBe(
      10 * MINUTE,
    );
  });
});

describe("Cloud Run: from drivers to a count", () => {
  const count = (of: CloudRunSpec, concurrency: number, before: number, existing = before) => {
    const at = load(concurrency);
    return recommend(of, at, drive(of, at), before, existing);
  };

  it("90 % rule: adds instances only when those that exist are nearly full", () => {
    expect(count(spec(), 72, 10)).toMatchObject({ instances: 10, rule: "capacity-under-90-percent" });
    expect(count(spec(), 89.9, 10).instances).toBe(10);
    expect(count(spec(), 90, 10)).toMatchObject({ instances: 15, rule: "metrics" });
  });

  it("90 % rule: recommends demoted instances again before it is reached, they exist already", () => {
    expect(count(spec(), 30, 2, 6).instances).toBe(5);
    expect(count(spec(), 50, 2, 6)).toMatchObject({ instances: 6, rule: "capacity-under-90-percent" });
  });

  it("follows the need down at once", () => {
    expect(count(spec(), 41, 10).instances).toBe(7);
    expect(count(spec(), 0, 10).instances).toBe(0);
  });

  it("scaling controls: within 10 % of the target nothing changes, beyond it the count brings the driver under it", () => {
    const controls = spec({ concurrencyTarget: 0.5 });
    expect(controls.mode).toBe("controls");
    expect(count(controls, 54.9, 10)).toMatchObject({ instances: 10, rule: "within-tolerance" });
    expect(count(controls, 56, 10)).toMatchObject({ instances: 12, rule: "metrics" });
    expect(count(controls, 45.1, 10)).toMatchObject({ instances: 10, rule: "within-tolerance" });
    expect(count(controls, 44, 10)).toMatchObject({ instances: 9, rule: "metrics" });
  });

  it("scaling controls: are precise for few instances too", () => {
    expect(count(spec({ concurrencyTarget: 0.5 }), 6, 1)).toMatchObject({ instances: 2, rule: "metrics" });
  });

  it("never leaves zero by metrics", () => {
    expect(count(spec(), 50, 0)).toMatchObject({ instances: 0, rule: "zero-without-request" });
  });
});

describe("Cloud Run: on demand", () => {
  it("starts from zero for a request, as many as the waiting need", () => {
    const one = decide(spec(), observe({ waiting: 1 }));
    expect(one).toMatchObject({ desired: 1, recommended: 1, explanation: { winner: "on-demand" } });
    expect(decide(spec(), observe({ waiting: 25 })).desired).toBe(3);
  });

  it("does not decide without data when nobody waits", () => {
    const decision = decideCloudRun(spec(), observe({ instances: ready(2) }), initialCloudRunState(2), 0);
    expect(decision).toEqual({ valid: false, reason: "no-data-in-window" });
  });

  it("counts on instances that start and on places that free up before it starts new ones", () => {
    const starting: Instance = {
      name: "s",
      readySinceMs: undefined,
      createdMs: 30 * MINUTE - SECOND,
      utilization1m: 0,
      lastBusyMs: 0,
    };
    const decision = decide(
      spec(),
      observe({ load: load(10), instances: [...ready(1, 1), starting], waiting: 25, freedPerSecond: 2 }),
    );
    expect(decision.explanation.onDemand).toEqual({
      byStarting: 10,
      byRunning: 7,
      byNew: 8,
      atMaximum: 0,
      newInstances: 1,
    });
    expect(decision.desired).toBe(3);
  });

  it("starts none for who has just come while an instance has room, though not at that gateway", () => {
    const seen = { load: load(8), instances: ready(1), waiting: 1, inFlight: 7 };
    const came = decide(spec(), observe({ ...seen, newlyWaiting: 1 }));
    expect(came).toMatchObject({ desired: 1, explanation: { waiting: 1, haveRoom: 1, onDemand: { newInstances: 0 } } });
    expect(decide(spec(), observe({ ...seen, newlyWaiting: 0 })).desired).toBe(2);
    expect(decide(spec(), observe({ ...seen, inFlight: 10, newlyWaiting: 1 })).desired).toBe(2);
    expect(decide(spec(), observe({ ...seen, inFlight: 9, waiting: 3, newlyWaiting: 3 }))).toMatchObject({
      desired: 2,
      explanation: { haveRoom: 1, onDemand: { byNew: 2 } },
    });
  });

  it("counts on a starting instance also where starts take no second, which is as Kubernetes' clock tells them", () => {
    const nowMs = 30 * MINUTE;
    const [one] = ready(1);
    const fast: Instance = { ...one!, createdMs: nowMs - 60 * SECOND, readySinceMs: nowMs - 60 * SECOND };
    const starting: Instance = { ...one!, name: "fresh", createdMs: nowMs - 2 * SECOND, readySinceMs: undefined };
    const seen = { load: load(10), instances: [fast, starting], waiting: 1, inFlight: 10 };
    expect(decide(spec(), observe(seen))).toMatchObject({
      desired: 2,
      explanation: { expectedStartMs: 1000, onDemand: { byStarting: 1, newInstances: 0 } },
    });
  });

  it("knows that an instance takes fewer than configured while its CPU is busy", () => {
    const [one] = ready(1);
    const seen = { load: load(8), waiting: 1, newlyWaiting: 1, inFlight: 7 };
    const decision = decide(spec(), observe({ ...seen, instances: [{ ...one!, adaptedMaximum: 7 }] }));
    expect(decision).toMatchObject({ desired: 2, explanation: { haveRoom: 0 } });
  });

  it("starts none for who waited for an instance that has just become ready", () => {
    const nowMs = 30 * MINUTE;
    const busy: Instance = ready(1)[0]!;
    const seen = (readyAgoMs: number, more: Partial<CloudRunObservation> = {}) =>
      decide(
        spec(),
        observe({
          load: load(10),
          instances: [busy, { ...busy, name: "fresh", readySinceMs: nowMs - readyAgoMs }],
          waiting: 4,
          inFlight: 10,
          ...more,
        }),
      );
    // The gateways have not told yet that they use it.
    expect(seen(1000)).toMatchObject({ desired: 2, explanation: { haveRoom: 4, onDemand: { newInstances: 0 } } });
    // It is as busy as the other one: who waits now waits for more.
    expect(seen(1000, { inFlight: 18 })).toMatchObject({ desired: 3, explanation: { haveRoom: 2 } });
    // It had the time to be used.
    expect(seen(3000)).toMatchObject({ desired: 3, explanation: { haveRoom: 0 } });
  });

  it("keeps what a request started until the drivers have seen a minute of it", () => {
    let state = initialCloudRunState(1);
    const surge = decide(spec(), observe({ load: load(12), instances: ready(1), waiting: 40 }), state, 10 * MINUTE);
    expect(surge.desired).toBe(5);
    state = surge.next;
    const settling = decide(spec(), observe({ load: load(12), instances: ready(5) }), state, 10 * MINUTE + 58 * SECOND);
    expect(settling).toMatchObject({ recommended: 5, explanation: { winner: "on-demand-settling" } });
    const settled = decide(spec(), observe({ load: load(12), instances: ready(5) }), settling.next, 11 * MINUTE);
    expect(settled).toMatchObject({ recommended: 2, explanation: { winner: "metrics" } });
  });

  it("is idempotent while the pods it asked for are not there yet", () => {
    const first = decide(spec(), observe({ load: load(10), instances: ready(1), waiting: 30 }));
    const again = decide(spec(), observe({ load: load(10), instances: ready(1), waiting: 30 }), first.next);
    expect([first.desired, again.desired]).toEqual([4, 4]);
  });
});

describe("Cloud Run: bounds", () => {
  it("case 43: never starts more than the maximum, however many wait", () => {
    const capped = spec({}, { maxScale: 2 });
    const decision = decide(capped, observe({ load: load(20), instances: ready(2, 1), waiting: 500 }));
    expect(decision).toMatchObject({ desired: 2, explanation: { winner: "max-instances", beforeBounds: 52 } });
    expect(decision.explanation.onDemand).toMatchObject({ atMaximum: 500, newInstances: 0 });
  });

  it("keeps the minimum for ever, at the service's or the revision's level", () => {
    const kept = spec({}, { minScale: 3 });
    const decision = decide(kept, observe({ load: load(0), instances: ready(3, 0, -60 * MINUTE) }));
    expect(decision).toMatchObject({ desired: 3, stops: [], explanation: { winner: "min-instances" } });
  });

  it("stops what is over a lowered maximum", () => {
    const decision = decide(
      spec({}, { maxScale: 2 }),
      observe({ load: load(50), instances: ready(5, 0.9, 30 * MINUTE) }),
    );
    expect(decision.desired).toBe(2);
    expect(decision.stops.map(stop => stop.rule)).toEqual(["over-maximum", "over-maximum", "over-maximum"]);
  });

  it("lets surges exceed the maximum only where the service allows it, up to twice and for 15 minutes", () => {
    const allowed = spec({ maxScaleOvershoot: true }, { maxScale: 4 });
    const surge = observe({ load: load(40), instances: ready(4, 1), waiting: 200 });
    const first = decide(allowed, surge, initialCloudRunState(4), 0);
    expect(first).toMatchObject({ desired: 8, explanation: { winner: "max-instances" } });
    const few = decide(allowed, { ...surge, waiting: 15 }, initialCloudRunState(4), 0);
    expect(few).toMatchObject({ desired: 7, explanation: { winner: "max-instances-overshoot" } });
    const over = observe({ load: load(80), instances: ready(8, 1), waiting: 200 });
    expect(decide(allowed, over, first.next, 15 * MINUTE - 1).desired).toBe(8);
    expect(decide(allowed, over, first.next, 15 * MINUTE).desired).toBe(4);
  });

  it("case 20: a changed minimum holds at the next decision, with the same state", () => {
    const busy = observe({ load: load(6), instances: ready(1), inFlight: 6 });
    const before = decide(spec(), busy);
    const after = decide(spec({}, { minScale: 4 }), busy, before.next);
    expect([before.desired, after.desired]).toEqual([1, 4]);
  });

  it("keeps nothing of an unreachable revision once its requests are done", () => {
    const gone = spec({}, { minScale: 3 }, false);
    const busy = decide(gone, observe({ load: load(6), instances: ready(3, 0.5, 30 * MINUTE), inFlight: 2 }));
    expect(busy).toMatchObject({ recommended: 1, explanation: { winner: "metrics" } });
    const done = decide(gone, observe({ load: load(6), instances: ready(3, 0.5, 29 * MINUTE) }), busy.next);
    expect(done).toMatchObject({ desired: 0, explanation: { winner: "unreachable" } });
  });
});

describe("Cloud Run: demotion", () => {
  it("demotes the least used; the first group stops under 10 % over a minute, the second at the idle time-out", () => {
    const instances = ready(6, 0.5, 30 * MINUTE).map((one, i) => ({
      ...one,
      utilization1m: [0.7, 0.02, 0.6, 0.3, 0.01, 0.5][i]!,
    }));
    const at = 30 * MINUTE;
    const decision = decide(spec(), observe({ load: load(17), instances }), initialCloudRunState(6), at);
    expect(decision.recommended).toBe(3);
    expect(decision.demoted).toEqual([
      { name: "i4", group: "second", sinceMs: at },
      { name: "i1", group: "first", sinceMs: at },
      { name: "i3", group: "second", sinceMs: at },
    ]);
    expect([decision.stops, decision.desired]).toEqual([[], 6]);
    const early = decide(spec(), observe({ load: load(17), instances }), decision.next, at + MINUTE - 1);
    expect(early.stops).toEqual([]);
    const later = decide(spec(), observe({ load: load(17), instances }), decision.next, at + MINUTE);
    expect(later.stops).toEqual([{ name: "i1", rule: "first-group-under-10-percent" }]);
    expect(later.desired).toBe(5);
  });

  it("does not stop the first group at 10 % exactly", () => {
    const instances = ready(3, 0.1, 30 * MINUTE);
    const down = decide(spec(), observe({ load: load(1), instances }), initialCloudRunState(3), 28 * MINUTE);
    expect(down.demoted.map(one => one.group)).toEqual(["second", "first"]);
    expect(decide(spec(), observe({ load: load(1), instances }), down.next).stops).toEqual([]);
  });

  it("recommends demoted instances again, the most used first, and starts none for it", () => {
    const instances = ready(4, 0.5, 30 * MINUTE).map((one, i) => ({ ...one, utilization1m: [0.9, 0.5, 0.4, 0.3][i]! }));
    const down = decide(spec(), observe({ load: load(11), instances }));
    expect(down.demoted.map(one => one.name)).toEqual(["i3", "i2"]);
    const up = decide(spec(), observe({ load: load(17), instances }), down.next);
    expect(up).toMatchObject({ recommended: 3, desired: 4 });
    expect(up.demoted.map(one => one.name)).toEqual(["i3"]);
  });

  it("stops idle instances at a shorter idle time-out although the averages remember requests", () => {
    const of = spec({ idleTimeoutMs: 8 * SECOND });
    const remembered = { load: load(3, undefined, 8), instances: ready(2, 0.1, 29 * MINUTE) };
    expect(decide(of, observe(remembered))).toMatchObject({ desired: 0, explanation: { winner: "idle-timeout" } });
    // Never under a request, and never under the minimum.
    expect(decide(of, observe({ ...remembered, inFlight: 1 })).desired).toBe(2);
    expect(decide(spec({ idleTimeoutMs: 8 * SECOND }, { minScale: 1 }), observe(remembered)).desired).toBe(1);
  });

  it("keeps the last instance for 15 idle minutes, then goes to zero", () => {
    const of = spec();
    const idle = observe({ load: load(0, 0.02), instances: ready(1, 0.02, 0) });
    const early = decide(of, idle, initialCloudRunState(1), 15 * MINUTE - 1);
    expect(early).toMatchObject({ desired: 1, recommended: 0, recheckAtMs: 15 * MINUTE });
    expect(decide(of, idle, early.next, 15 * MINUTE)).toMatchObject({
      desired: 0,
      stops: [{ name: "i0", rule: "idle-timeout" }],
    });
  });

  it("sends the first demoted instance to the second group and then takes turns", () => {
    const decision = decide(spec(), observe({ load: load(1), instances: ready(5, 0.2, 30 * MINUTE) }));
    expect(decision.demoted.map(one => one.group)).toEqual(["second", "first", "second", "first"]);
    // Of equally used ones the youngest go first.
    expect(decision.demoted.map(one => one.name)).toEqual(["i4", "i3", "i2", "i1"]);
  });
});

describe("Cloud Run: billing and zero", () => {
  it("request-based: CPU use without any request asks for nothing", () => {
    expect(drive(spec(), load(0, 5)).needed).toBe(0);
  });

  it("instance-based: work beside requests counts, but CPU never keeps the last instance", () => {
    const always = spec({ cpuAlwaysAllocated: true });
    expect(drive(always, load(0, 1.5)).needed).toBe(2.5);
    expect(drive(always, load(0, 0.5)).needed).toBe(0);
    expect(drive(always, load(0.1, 0.5)).needed).toBeCloseTo(0.5 / 0.6);
  });

  it("instance-based: only a request scales from zero", () => {
    const always = spec({ cpuAlwaysAllocated: true });
    expect(decide(always, observe({ load: load(0, 3) }), initialCloudRunState(0)).desired).toBe(0);
    expect(decide(always, observe({ waiting: 1 }), initialCloudRunState(0)).desired).toBe(1);
  });
});

describe("Cloud Run: a new revision", () => {
  it("gets enough instances for the old one's present load before traffic moves", () => {
    const of = { ...spec(), maxConcurrency: 20, cpus: 2 };
    expect(matchCapacity(of, [load(60, 3)]).instances).toBe(5);
    expect(matchCapacity(of, [load(40, 3), load(20)]).instances).toBe(5);
    expect(matchCapacity(of, []).instances).toBe(1);
    expect(matchCapacity({ ...of, maxInstances: 3 }, [load(600)]).instances).toBe(3);
    expect(matchCapacity({ ...of, minInstances: 7 }, [load(1)]).instances).toBe(7);
  });

  it("expects ten seconds for a start while none was measured", () => {
    expect(decide(spec(), observe({ waiting: 1 })).pendingTimeoutMs).toBe(35_000);
  });

  it("measures starts from creation to readiness, each once", () => {
    const first = decide(spec(), observe({ waiting: 1, instances: ready(2) }));
    expect(first.explanation.expectedStartMs).toBe(4000);
    const slow: Instance = { name: "s", createdMs: 0, readySinceMs: 10_000, utilization1m: 0, lastBusyMs: 0 };
    const second = decide(spec(), observe({ waiting: 1, instances: [...ready(2), slow] }), first.next);
    expect(second.explanation).toMatchObject({ expectedStartMs: 6000, pendingTimeoutMs: 21_000 });
    const third = decide(spec(), observe({ waiting: 1, instances: [slow] }), second.next);
    expect(third.explanation.expectedStartMs).toBe(6000);
  });
});
