import { describe, expect, it } from "vitest";
import type { ScalingDebug } from "../../api/wire/why.ts";
import { ScalingDebugSchema } from "../../api/wire/why.ts";
import { DEFAULT_AUTOSCALER_CONFIG } from "../../core/autoscaling/config.ts";
import { explain } from "../../core/autoscaling/explain.ts";
import { initialLifecycleState } from "../../core/autoscaling/lifecycle.ts";
import { resolveRevision, type RevisionSettings } from "../../core/autoscaling/resolve-revision.ts";
import type { RevisionObservation } from "../../core/autoscaling/scale-revision.ts";
import { initialRevisionState, scaleRevision } from "../../core/autoscaling/scale-revision.ts";
import { apiRefusal, Refusal, runFairway, type FakeInput } from "../testing/fake-context.ts";

const NOW = 1_800_000_000_000;

/** A decision of the core, as the operator has it and sends it. */
function decided(
  policy: RevisionSettings["policy"],
  observation: Partial<RevisionObservation>,
  more: Partial<RevisionSettings> = {},
): object {
  const { spec } = resolveRevision({
    policy,
    config: DEFAULT_AUTOSCALER_CONFIG,
    scaling: {},
    cloudRun: {},
    manualInstances: 3,
    instance: { containerConcurrency: 10, cpus: 1, gpu: false },
    reachable: true,
    progressDeadlineMs: 600_000,
    ...more,
  });
  const seen: RevisionObservation = {
    readyPods: 2,
    load: { kind: "measured", stable: 25, panic: 30 },
    gatewaysInPathSinceMs: NOW - 60_000,
    ...observation,
  };
  const outcome = scaleRevision(spec, seen, initialRevisionState(initialLifecycleState(NOW - 90_000), 2, NOW), NOW);
  const decision = { atMs: NOW, spec, observation: seen, outcome, replicasBefore: 2, livePods: 2 };
  return JSON.parse(
    JSON.stringify({ namespace: "shop", revision: "cart-00002", decision, explanation: explain(spec, outcome) }),
  ) as object;
}

const BASE = "/apis/serving.knative.dev/v1/namespaces/shop";
const POD = "/api/v1/namespaces/fairway-system/pods/fairway-operator-abc:9090/proxy/debug/scaling";
const LEASE = "/apis/coordination.k8s.io/v1/namespaces/fairway-system/leases/fairway-operator";

const cluster = (scaling: object): Record<string, object> => ({
  [`${BASE}/services/cart`]: {
    metadata: { name: "cart", namespace: "shop" },
    spec: { template: { spec: { containers: [{ image: "x" }] } } },
    status: {
      latestCreatedRevisionName: "cart-00002",
      traffic: [
        { revisionName: "cart-00002", percent: 90 },
        { revisionName: "cart-00001", percent: 0, tag: "old" },
        { revisionName: "cart-00002", percent: 10, tag: "new" },
      ],
    },
  },
  [`${BASE}/revisions/cart-00002`]: {
    metadata: { name: "cart-00002", namespace: "shop" },
    spec: { containers: [{ image: "x" }] },
    status: {
      conditions: [
        { type: "Active", status: "True" },
        { type: "Ready", status: "Unknown", reason: "Deploying", message: "pods are starting" },
      ],
    },
  },
  [LEASE]: {
    spec: {
      holderIdentity: "fairway-operator-abc",
      leaseDurationSeconds: 15,
      renewTime: new Date(NOW - 2000).toISOString(),
    },
  },
  [POD]: scaling,
});

const why = (objects: Record<string, object>, ...argv: string[]) => {
  const input: FakeInput = { cluster: objects, nowMs: () => NOW + 1500 };
  return runFairway(["why", "cart", "-n", "shop", ...argv], input);
};

describe("the answer of the operator", () => {
  it("is the core's decision through JSON, under every policy, with and without data", () => {
    const nothing = { load: { kind: "none", reason: "no-data-in-window" } } as const;
    const cloudRun = {
      load: { concurrency1m: 12, concurrency10m: 4, cpu1m: undefined },
      instances: [{ name: "a", createdMs: 0, readySinceMs: 1, utilization1m: 0.5, lastBusyMs: NOW }],
      waiting: 3,
      inFlight: 10,
      newlyWaiting: 0,
      freedPerSecond: 2,
    };
    const answers = [
      decided("kpa", {}),
      decided("kpa", nothing),
      decided("kpa", { readyPods: undefined }),
      decided("cloud-run", { cloudRun }),
      decided("cloud-run", {}),
      decided("manual", {}),
    ];
    for (const answer of answers) expect(ScalingDebugSchema.safeParse(answer)).toMatchObject({ success: true });
  });
});

describe("fairway why", () => {
  it("tells what was observed, the number of each rule, the winner, the wait and the conditions", async () => {
    const { exitCode, stdout, asked } = await why(cluster(decided("kpa", {})));
    expect(exitCode).toBe(0);
    expect(asked.at(-1)).toBe(`${POD}?namespace=shop&revision=cart-00002`);
    expect(stdout).toContain("shop/cart-00002: 5 pods wanted by panic-window, 2 ready (100 % of the traffic of cart)");
    expect(stdout).toContain("1.5s ago by policy kpa");
    expect(stdout).toContain("25 (stable window), 30 (panic window)");
    expect(stdout).toMatch(/\* +panic-window +5 +30 requests in flight over 6 s/);
    expect(stdout).toMatch(/ {2,}stable-window +4 /);
    expect(stdout).toContain("active for 1.5s");
    expect(stdout).toContain("proxy: in-cluster requests pass the gateways");
    expect(stdout).toMatch(/Ready +Unknown +Deploying +pods are starting/);
  });

  it("tells what is waited for and until when, and what was missing", async () => {
    const { stdout } = await why(cluster(decided("kpa", { load: { kind: "none", reason: "no-data-in-window" } })));
    expect(stdout).toMatch(/no decision +no-data-in-window/);
    expect(stdout).toContain("stays at 2 pods by awaiting-activation, 2 ready");
    expect(stdout).toMatch(/waits for +ready pods, or the activation to time out/);
  });

  it("tells who was not heard when there is no decision", async () => {
    const answer = decided("kpa", { load: { kind: "none", reason: "no-data-in-window" } }) as { explanation: object };
    const held = { ...answer, explanation: { ...answer.explanation, pods: 2, winner: "no-data-in-window" } };
    const sources = {
      gateways: [{ name: "gw-a", heardMs: NOW - 10_500 }, { name: "gw-b" }],
      scraped: true,
      answeredMs: NOW - 58_500,
    };
    const { stdout } = await why(cluster({ ...held, sources }));
    expect(stdout).toContain("shop/cart-00002: stays at 2 pods without a decision (no-data-in-window), 2 ready");
    expect(stdout).toMatch(/no-data-in-window +nothing was heard of its load for a whole window/);
    expect(stdout).toMatch(/no decision +no-data-in-window\n +gateways told +gw-a 12s ago, gw-b never\n/);
    expect(stdout).toMatch(/pods answered +60s ago\n/);
    const unasked = { gateways: [], scraped: false };
    expect((await why(cluster({ ...held, sources: unasked }))).stdout).toMatch(
      /gateways told +there are none\n +pods answered +not asked: all requests pass the gateways\n/,
    );
  });

  it("tells who is silent although numbers heard before still stand", async () => {
    const answer = decided("kpa", {});
    const gateways = [{ name: "gw-a", heardMs: NOW + 500 }];
    const told = async (sources: object) => (await why(cluster({ ...answer, sources }))).stdout;
    expect(await told({ gateways, scraped: true, answeredMs: NOW })).not.toContain("told");
    expect(await told({ gateways, scraped: true, answeredMs: NOW - 10_500 })).toMatch(
      /observed .*\n +gateways told +gw-a 1s ago\n +pods answered +12s ago\n/,
    );
  });

  it("tells what changed the number last", async () => {
    const answer = decided("cloud-run", {});
    const lastChange = { atMs: NOW - 10_500, from: 1, to: 3, winner: "on-demand", pokedMs: NOW - 10_510 };
    const { stdout } = await why(cluster({ ...answer, lastChange }));
    expect(stdout).toMatch(/last change +1 -> 3 pods 12s ago by on-demand, at once as requests found no place/);
    const byTick = await why(cluster({ ...answer, lastChange: { ...lastChange, pokedMs: undefined } }));
    expect(byTick.stdout).toMatch(/last change +1 -> 3 pods 12s ago by on-demand\n/);
  });

  it("tells until when", async () => {
    const answer = decided("kpa", {}) as { explanation: object };
    const explanation = { ...answer.explanation, waitsFor: "the scale-to-zero grace period", untilMs: NOW + 13_500 };
    const { stdout } = await why(cluster({ ...answer, explanation }));
    expect(stdout).toMatch(/waits for +the scale-to-zero grace period, at latest in 12s/);
  });

  it("shows the instances of Cloud Run's policy: adapted concurrency and demotion", async () => {
    const answer = decided("cloud-run", {}) as { decision: ScalingDebug["decision"] };
    const adaptations = [{ name: "cart-a", rule: "cpu-over-90", maximum: 7, cpu: 0.95 }];
    const demoted = [{ name: "cart-b", group: "second", sinceMs: NOW }];
    const { decision } = answer;
    const outcome = {
      ...decision.outcome,
      decision: { ...decision.outcome.decision, demoted, pendingTimeoutMs: 14_000 },
    };
    const { stdout } = await why(cluster({ ...answer, decision: { ...decision, outcome }, adaptations }));
    expect(stdout).toMatch(/cart-a +7 +95 % +cpu-over-90/);
    expect(stdout).toMatch(/cart-b +second group/);
    expect(stdout).toMatch(/requests wait +at most 14s/);
  });

  it("gives all of it as JSON", async () => {
    const { stdout } = await why(cluster(decided("manual", {})), "-o", "json");
    expect(JSON.parse(stdout)).toMatchObject({
      namespace: "shop",
      service: "cart",
      leader: "fairway-operator-abc",
      revisions: [{ revision: "cart-00002", percent: 100, scaling: { explanation: { winner: "manual", pods: 3 } } }],
    });
  });

  it("says so when the operator has not decided about a revision", async () => {
    const { exitCode, stdout } = await why(
      cluster(new Refusal(404, "nothing was decided about shop/cart-00002 yet\n")),
    );
    expect(exitCode).toBe(0);
    expect(stdout).toContain("not decided");
    expect(stdout).toContain("nothing was decided about shop/cart-00002 yet");
  });

  it.each([
    ["no service", { [`${BASE}/services/cart`]: undefined }, 3, "service shop/cart not found"],
    [
      "no permission",
      { [`${BASE}/services/cart`]: apiRefusal(403, 'User "eve" cannot get services') },
      4,
      'service shop/cart: User "eve" cannot get services',
    ],
    ["no lease", { [LEASE]: undefined }, 5, "no operator of Fairway has run in namespace fairway-system"],
    ["no leader", { [LEASE]: { spec: { holderIdentity: "" } } }, 5, "no operator leads"],
    [
      "a leader long gone",
      {
        [LEASE]: {
          spec: { holderIdentity: "x", leaseDurationSeconds: 15, renewTime: new Date(NOW - 600_000).toISOString() },
        },
      },
      5,
      "has not renewed it for 602 s",
    ],
    [
      "a pod that is gone",
      { [POD]: apiRefusal(404, 'pods "fairway-operator-abc" not found') },
      3,
      'pod fairway-system/fairway-operator-abc: pods "fairway-operator-abc" not found',
    ],
    [
      "no pods/proxy",
      { [POD]: apiRefusal(403, "cannot get resource pods/proxy") },
      4,
      "cannot get resource pods/proxy",
    ],
    ["a replica that no longer leads", { [POD]: new Refusal(503, "this replica does not lead") }, 5, "does not lead"],
    ["an answer of another version", { [POD]: { decision: 1 } }, 1, "this version does not understand the answer"],
  ])("fails clearly with %s", async (_, change, exitCode, message) => {
    const objects = Object.fromEntries(
      Object.entries({ ...cluster(decided("kpa", {})), ...change }).filter(([, value]) => value !== undefined),
    ) as Record<string, object>;
    const result = await why(objects);
    expect([result.exitCode, result.stderr]).toEqual([exitCode, expect.stringContaining(message)]);
    expect(result.stdout).toBe("");
  });

  it("asks about one revision when told to, and about none that does not exist", async () => {
    const result = await why(cluster(decided("kpa", {})), "--revision", "cart-00009");
    expect([result.exitCode, result.stderr]).toEqual([3, "error: revision shop/cart-00009 not found\n"]);
  });

  it("waits out a missing leader with --watch, once it has shown something", async () => {
    const interrupt = new AbortController();
    const objects = cluster(decided("kpa", {}));
    let calls = 0;
    const result = await runFairway(["why", "cart", "-n", "shop", "--watch"], {
      cluster: objects,
      signal: interrupt.signal,
      nowMs: () => {
        calls++;
        // Shown once; then nobody leads; then the user has seen enough.
        if (calls === 2) objects[LEASE] = { spec: { holderIdentity: "" } };
        if (calls === 3) interrupt.abort();
        return NOW;
      },
    });
    expect(result.exitCode).toBe(0);
    expect(result.stdout).toContain("pods wanted");
    expect(result.stdout).toContain("no operator leads");
  });

  it("repeats until interrupted with --watch", async () => {
    const interrupt = new AbortController();
    let calls = 0;
    const result = await runFairway(["why", "cart", "-n", "shop", "--watch"], {
      cluster: cluster(decided("kpa", {})),
      signal: interrupt.signal,
      // The clock is read once to ask and once to draw.
      nowMs: () => {
        if (++calls === 2) interrupt.abort();
        return NOW;
      },
    });
    expect(result.exitCode).toBe(0);
    expect(result.stdout.match(/pods wanted/g)).toHaveLength(1);
  });
});
