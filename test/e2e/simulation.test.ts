import { setTimeout as delay } from "node:timers/promises";
import { Agent } from "node:http";
import { describe, expect, it } from "vitest";
import { parseAutoscalerConfig } from "../../api/config/autoscaler.ts";
import type { Service } from "../../api/serving/v1/types.ts";
import { arrivalsOf, scenariosOf } from "../../cli/simulate/scenario.ts";
import type { Arrival } from "../../core/simulation/arrivals.ts";
import { simulate } from "../../core/simulation/simulate.ts";
import { SYSTEM_NAMESPACE } from "../../hack/kit/install.ts";
import type { AnyObject } from "../../hack/kit/kube.ts";
import { quantile, send, type Answer, type Target } from "../../hack/kit/load.ts";
import { waitForDecision } from "./scaling-support.ts";
import {
  applyReady,
  freshNames,
  kube,
  latestReadyRevision,
  ownNamespace,
  replicas,
  service,
  target,
} from "./support.ts";

const namespace = ownNamespace("simulated");
const fresh = freshNames();

const STEP_MS = 10_000;
const HORIZON_MS = 45_000;
const SERVICE_MS = 500;
/** From 2 to 16 requests a second: about 1, then 8 in progress. */
const LOAD = {
  kind: "pattern",
  pattern: { kind: "step", fromRps: 2, toRps: 16, atMs: STEP_MS },
  spacing: "even",
  durationMs: HORIZON_MS,
} as const;

/** What is compared; how many pods are wanted is the decision, so the node's speed plays a small part only. */
interface Course {
  /** Most pods wanted at a time. */
  readonly most: number;
  /** From the step until more than at the beginning were wanted, and until the most were. */
  readonly firstMs: number;
  readonly mostMs: number;
  /** Wanted pods, summed up over the time. */
  readonly podSeconds: number;
  readonly refused: number;
}

type Points = readonly { readonly atMs: number; readonly wanted: number }[];

function courseOf(points: Points, refused: number): Course {
  const most = Math.max(...points.map(({ wanted }) => wanted));
  const begin = points[0]?.wanted ?? 0;
  const firstAt = (matches: (wanted: number) => boolean): number =>
    (points.find(({ atMs, wanted }) => atMs >= STEP_MS && matches(wanted))?.atMs ?? Number.NaN) - STEP_MS;
  const podMs = points.reduce((sum, { atMs, wanted }, index) => {
    const until = points[index + 1]?.atMs ?? HORIZON_MS;
    return sum + wanted * Math.max(0, until - atMs);
  }, 0);
  return {
    most,
    firstMs: firstAt(wanted => wanted > begin),
    mostMs: firstAt(wanted => wanted === most),
    podSeconds: podMs / 1000,
    refused,
  };
}

interface Real extends Course {
  /** Median of what a request took; a busy machine adds to what the app sleeps. */
  readonly tookMs: number;
}

/** Sends each request at its time, and looks at the wanted pods meanwhile. */
async function onCluster(revision: string, to: Target, arrivals: readonly Arrival[]): Promise<Real> {
  const agent = new Agent({ keepAlive: true });
  const began = performance.now();
  const elapsed = (): number => performance.now() - began;
  const points: { atMs: number; wanted: number }[] = [];
  const watch = async (): Promise<void> => {
    while (elapsed() < HORIZON_MS) {
      const atMs = elapsed();
      const wanted = await replicas(namespace, revision);
      if (wanted !== undefined) points.push({ atMs, wanted });
      await delay(100);
    }
  };
  const answers = async (): Promise<Answer[]> => {
    const sent: Promise<Answer>[] = [];
    for (const { atMs, serviceMs } of arrivals) {
      const early = atMs - elapsed();
      if (early > 0) await delay(early);
      sent.push(send(to, { path: `/?sleep=${Math.round(serviceMs)}`, agent }));
    }
    return Promise.all(sent);
  };
  const [answered] = await Promise.all([answers(), watch()]);
  agent.destroy();
  const sortedMs = answered.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
  return {
    ...courseOf(points, answered.filter(({ status }) => status !== 200).length),
    tookMs: quantile(sortedMs, 0.5),
  };
}

/** How long the revision's pods took until they were ready; times of Kubernetes are whole seconds. */
async function startTimesMs(revision: string): Promise<number[]> {
  const pods = await kube().list("v1", "Pod", namespace, `serving.knative.dev/revision=${revision}`);
  return (pods as readonly (AnyObject & { metadata?: { creationTimestamp?: string } })[]).flatMap(pod => {
    const list = (pod.status?.["conditions"] ?? []) as readonly { type: string; lastTransitionTime: string }[];
    const ready = list.find(({ type }) => type === "Ready")?.lastTransitionTime;
    const created = pod.metadata?.creationTimestamp;
    return ready === undefined || created === undefined ? [] : [Date.parse(ready) - Date.parse(created) + 500];
  });
}

describe("the simulation", () => {
  // Both wait much more than they compute.
  it.concurrent.each([
    {
      policy: "kpa",
      name: "knative",
      annotations: {
        "autoscaling.knative.dev/window": "10s",
        "autoscaling.knative.dev/target": "3",
        "autoscaling.knative.dev/min-scale": "1",
        "autoscaling.knative.dev/max-scale": "6",
      },
      containerConcurrency: 0,
    },
    {
      policy: "cloudrun",
      name: "cloudrun",
      annotations: {
        "autoscaling.knative.dev/class": "cloudrun.autoscaling.fairway.dev",
        "autoscaling.knative.dev/min-scale": "1",
        "autoscaling.knative.dev/max-scale": "6",
      },
      containerConcurrency: 4,
    },
  ])("agrees with the cluster under policy $policy", async ({ name, annotations, containerConcurrency }) => {
    // A second try begins at rest, too.
    const unused = fresh(name);
    const object = service(namespace, unused, { annotations, containerConcurrency });
    const revision = latestReadyRevision(await applyReady(object));
    await waitForDecision(namespace, revision, "data", ({ decision }) => decision.outcome.decision.valid);
    const arrivals = (ms: number) => arrivalsOf(LOAD, { kind: "constant", ms }, 1);
    const real = await onCluster(revision, target(namespace, unused), arrivals(SERVICE_MS));

    const config = await kube().get({
      apiVersion: "v1",
      kind: "ConfigMap",
      namespace: SYSTEM_NAMESPACE,
      name: "config-autoscaler",
    });
    const [scenario] = scenariosOf({
      service: object as unknown as Service,
      config: parseAutoscalerConfig(config?.data),
      policies: [],
      queuePolicies: [],
      arrivals: arrivals(real.tookMs),
      horizonMs: HORIZON_MS,
      podStart: { kind: "empirical", valuesMs: await startTimesMs(revision) },
      drainMs: 0,
      gateways: 2,
      seed: 1,
      cpuPerRequest: undefined,
      podCpus: undefined,
      beginning: { kind: "at-rest", pods: 1 },
      timelineStepMs: 100,
    });
    if (scenario === undefined) throw new Error("no scenario");
    const result = simulate(scenario);
    const simulated = courseOf(
      result.timeline.map(({ atMs, wantedPods }) => ({ atMs, wanted: wantedPods })),
      result.requests.queueFull + result.requests.waitedTooLong + result.requests.timedOut,
    );
    console.log(`${name} on the cluster: ${JSON.stringify(real)}; simulated: ${JSON.stringify(simulated)}`);

    expect(real.refused).toBe(simulated.refused);
    expect(Math.abs(real.most - simulated.most), "most pods").toBeLessThanOrEqual(1);
    // A tick is 2 s, and the cluster's ticks and seconds begin at other moments than the simulation's.
    expect(Math.abs(real.firstMs - simulated.firstMs), "time to the first new pod").toBeLessThanOrEqual(4_000);
    expect(Math.abs(real.mostMs - simulated.mostMs), "time to the most pods").toBeLessThanOrEqual(6_000);
    expect(Math.abs(real.podSeconds / simulated.podSeconds - 1), "pod-seconds").toBeLessThanOrEqual(0.25);
  });
});
