/**
 * The operator's decision loop under load, in a process of its own: 10,000 revisions, of which some are active. The parts are
 * the operator's (queue, caches, collector, scaler, scraper, intake, metrics); only the API server is absent.
 *
 *     node test/bench/autoscaling-load.ts operator whole|loop   (answers one JSON line)
 *     node test/bench/autoscaling-load.ts cluster PORT          (gateways and pods for `whole`, over loopback)
 *
 * `whole`: reports come by HTTP each second from two gateways, pods are asked by HTTP each second. `loop`: both are handed
 * over in memory, which leaves collecting and deciding.
 */
import { fork } from "node:child_process";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { Registry } from "prom-client";
import type { V1Deployment, V1Pod } from "@kubernetes/client-node";
import { request } from "undici";
import { LABEL } from "../../api/labels.ts";
import { deploymentName } from "../../api/names.ts";
import { parseAutoscalerConfig } from "../../api/config/autoscaler.ts";
import type { Revision } from "../../api/serving/v1/types.ts";
import type { GatewayReport, PodStat } from "../../api/wire/stats.ts";
import { DecisionEvents } from "../../capabilities/autoscaling/decision-events.ts";
import { DecisionStore } from "../../capabilities/autoscaling/decision-store.ts";
import { podScraper } from "../../capabilities/autoscaling/pod-scraper.ts";
import { resolveScaling } from "../../capabilities/autoscaling/resolve.ts";
import { RevisionScaler } from "../../capabilities/autoscaling/revision-scaler.ts";
import { ScalingBoard } from "../../capabilities/autoscaling/scaling-board.ts";
import { runScrapes, runTicks } from "../../capabilities/autoscaling/scaling-loops.ts";
import { ScalingMetrics } from "../../capabilities/autoscaling/scaling-metrics.ts";
import { startStatsIntake } from "../../capabilities/autoscaling/stats-intake.ts";
import { systemClock } from "../../capabilities/runtime/clock.ts";
import { ObjectCache } from "../../capabilities/runtime/object-cache.ts";
import type { KubeObject } from "../../capabilities/runtime/types.ts";
import { WorkQueue, createWorkQueueMetrics } from "../../capabilities/runtime/work-queue.ts";
import { MetricCollector } from "../../core/autoscaling/collector.ts";
import { TICK_MS } from "../../core/autoscaling/kpa.ts";
import { ACTIVE, PODS_PER_REVISION, REVISIONS } from "./autoscaling-load-size.ts";
import type { LoadMode, LoadResult } from "./autoscaling-load-size.ts";

const GATEWAYS = ["gateway-a", "gateway-b"];
const STATS_PORT = 19_091;
const WARM_UP_MS = 10_000;
const MEASURE_MS = 30_000;

const namespaceOf = (i: number): string => `ns-${i % 100}`;
const revisionOf = (i: number): string => `service-${i}-00001`;
/** Every pod has a loopback address of its own, so that the scraper sees as many hosts. */
const addressOf = (pod: number): string => `127.10.${Math.floor(pod / 250)}.${(pod % 250) + 1}`;
const podName = (address: string): string => `pod-${address.replaceAll(".", "-")}`;

function stat(name: string): PodStat {
  return {
    podName: name,
    timestampMs: Date.now(),
    uptimeMs: 60_000,
    averageConcurrentRequests: 5,
    averageProxiedConcurrentRequests: 5,
    requestCount: 50,
    proxiedRequestCount: 50,
  };
}

function gatewayReport(gateway: string, sequence: number): GatewayReport {
  return {
    gateway,
    instance: "boot",
    sequence,
    timestampMs: Date.now(),
    revisions: Array.from({ length: ACTIVE }, (_, i) => ({
      namespace: namespaceOf(i),
      revision: revisionOf(i),
      averageConcurrentRequests: 5 + (sequence % 7) / 10,
      requestCount: 50,
      waiting: 0,
      inFlight: 5,
    })),
    programmed: {},
    full: sequence === 1,
    poke: false,
  };
}

function objects(i: number) {
  const namespace = namespaceOf(i);
  const name = revisionOf(i);
  const labels = {
    [LABEL.revision]: name,
    [LABEL.service]: `service-${i}`,
    [LABEL.configuration]: `service-${i}`,
    [LABEL.routingState]: "active",
  };
  const metadata = (kind: string, more: object = {}) => ({
    namespace,
    name,
    uid: `${kind}-${i}`,
    resourceVersion: "1",
    creationTimestamp: "2026-01-01T00:00:00Z",
    labels,
    ...more,
  });
  const revision = {
    apiVersion: "serving.knative.dev/v1",
    kind: "Revision",
    metadata: metadata("revision", { annotations: { "autoscaling.knative.dev/max-scale": "20" } }),
    spec: { containerConcurrency: 10, containers: [{ image: "fairway.dev/sample:1" }] },
    status: {
      conditions: [
        { type: "Active", status: i < ACTIVE ? "True" : "False", lastTransitionTime: "2026-01-01T00:00:00Z" },
      ],
    },
  } as unknown as Revision & KubeObject;
  const deployment = {
    metadata: metadata("deployment", { name: deploymentName(name) }),
    spec: { replicas: i < ACTIVE ? PODS_PER_REVISION : 0 },
  } as unknown as V1Deployment & KubeObject;
  const pods = Array.from({ length: i < ACTIVE ? PODS_PER_REVISION : 0 }, (_, n) => {
    const address = addressOf(i * PODS_PER_REVISION + n);
    return {
      metadata: metadata("pod", { name: podName(address), uid: `pod-${i}-${n}` }),
      status: {
        podIP: address,
        conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T00:00:05Z" }],
      },
    } as unknown as V1Pod & KubeObject;
  });
  return { revision, deployment, pods };
}

/** Gateways and pods: answers for every pod, and reports once a second to `port`. */
function cluster(port: number): void {
  process.once("disconnect", () => process.exit(0));
  createServer((req, res) => {
    const text = JSON.stringify(stat(podName(req.socket.localAddress ?? "")));
    res.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
    res.end(text);
  }).listen(STATS_PORT, "0.0.0.0", () => process.send?.("listening"));
  let sequence = 0;
  setInterval(() => {
    sequence++;
    for (const gateway of GATEWAYS) {
      request(`http://127.0.0.1:${port}/v1/stats`, {
        method: "POST",
        headers: { authorization: "Bearer bench", "content-type": "application/json" },
        body: JSON.stringify(gatewayReport(gateway, sequence)),
      })
        .then(({ body }) => body.dump())
        .catch((error: unknown) => console.error(`report of ${gateway} failed: ${String(error)}`));
    }
  }, 1000);
}

async function operator(mode: LoadMode): Promise<LoadResult> {
  const fail = (error: unknown): void => {
    throw error;
  };
  const revisions = new ObjectCache<Revision & KubeObject>(fail);
  const deployments = new ObjectCache<V1Deployment & KubeObject>(fail);
  const pods = new ObjectCache<V1Pod & KubeObject>(fail);
  for (let i = 0; i < REVISIONS; i++) {
    const made = objects(i);
    revisions.upsert(made.revision);
    deployments.upsert(made.deployment);
    for (const pod of made.pods) pods.upsert(pod);
  }

  const registry = new Registry();
  const metrics = new ScalingMetrics(registry);
  const decisions = new DecisionStore();
  const events = new DecisionEvents({ event: () => undefined }, () => undefined);
  const collector = new MetricCollector();
  const config = parseAutoscalerConfig();
  const sources = { config, progressDeadlineMs: 600_000, serviceAnnotations: {}, trafficPercent: 100 };
  let decided = 0;
  let tickBegunMs = performance.now();
  let slowestTickMs = 0;
  const scaler = new RevisionScaler({
    revisions,
    deployments,
    pods,
    collector,
    board: new ScalingBoard(),
    writer: { applyPart: async desired => desired, patchMetadata: async () => undefined },
    clock: systemClock,
    resolve: (revision, reachable) => resolveScaling(revision, reachable, sources),
    adapted: () => undefined,
    onDecision: (key, revision, decision) => {
      decided++;
      slowestTickMs = Math.max(slowestTickMs, performance.now() - tickBegunMs);
      decisions.record(key, decision);
      metrics.observe(revision.metadata.namespace ?? "", revision.metadata.name ?? "", decision);
      events.observe(key, revision, decision);
    },
    onGone: () => undefined,
  });
  const queue = new WorkQueue({
    name: "autoscaling",
    concurrency: 8,
    clock: systemClock,
    random: Math.random,
    metrics: createWorkQueueMetrics(registry),
    reconcile: (key, signal) => scaler.reconcile(key, signal),
    onFailure: ({ error }) => fail(error),
  });
  const stop = new AbortController();
  const running = queue.run(stop.signal, () => 0);
  for (const revision of revisions.list())
    queue.enqueue({ namespace: revision.metadata.namespace, name: revision.metadata.name ?? "" });

  let scrapes = 0;
  let failedScrapes = 0;
  const overHttp = podScraper(800, STATS_PORT);
  const accept = (report: GatewayReport): void => {
    for (const key of collector.acceptReport(report, Date.now())) {
      const [namespace, name] = key.split("/");
      if (report.poke || !scaler.isActive(key)) queue.enqueue({ namespace, name: name ?? "" });
    }
  };
  let reporting: NodeJS.Timeout | undefined;
  let child: ReturnType<typeof fork> | undefined;
  const intake = await startStatsIntake({
    port: 0,
    isGateway: async token => token === "bench",
    onReport: report => {
      accept(report);
      return { needFull: false, hints: {} };
    },
    onRefused: reason => fail(new Error(reason)),
  });
  if (mode === "whole") {
    // Not our output: whoever reads it would wait for this child too.
    const started = fork(fileURLToPath(import.meta.url), ["cluster", String(intake.port)], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    child = started;
    await new Promise(resolve => started.once("message", resolve));
  } else {
    let sequence = 0;
    reporting = setInterval(() => {
      sequence++;
      for (const gateway of GATEWAYS) accept(gatewayReport(gateway, sequence));
    }, 1000);
  }

  const ticks = {
    isActive: (key: string) => scaler.isActive(key),
    active: () => {
      tickBegunMs = performance.now();
      return scaler.active();
    },
    scrapeTargets: () => scaler.scrapeTargets(),
  };
  const loops = {
    scaler: ticks as RevisionScaler,
    collector,
    queue,
    scrape: async (pod: { name: string; ip: string }, signal: AbortSignal) => {
      scrapes++;
      return mode === "whole" ? overHttp(pod, signal) : stat(pod.name);
    },
    clock: systemClock,
    random: Math.random,
    onScraped: () => undefined,
    nodesCpu: () => undefined,
    onScrapeFailed: () => void failedScrapes++,
  };
  const ticking = Promise.all([runTicks(loops, stop.signal), runScrapes(loops, stop.signal)]);

  const sleep = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms));
  await sleep(WARM_UP_MS);
  decided = 0;
  scrapes = 0;
  failedScrapes = 0;
  slowestTickMs = 0;
  let rss = 0;
  const cpuBefore = process.cpuUsage();
  const begun = performance.now();
  const sampling = setInterval(() => (rss = Math.max(rss, process.memoryUsage.rss())), 250);
  await sleep(MEASURE_MS);
  const cpu = process.cpuUsage(cpuBefore);
  const elapsedMs = performance.now() - begun;
  clearInterval(sampling);
  clearInterval(reporting);
  child?.kill();
  stop.abort();
  await Promise.all([running, ticking, intake.close()]);
  return {
    mode,
    cpuShare: (cpu.user + cpu.system) / 1000 / elapsedMs,
    rssMegabytes: rss / 2 ** 20,
    decisionsPerTick: (decided * TICK_MS) / elapsedMs,
    slowestTickMs,
    scrapesPerSecond: (scrapes * 1000) / elapsedMs,
    failedScrapes,
  };
}

const [role, argument] = process.argv.slice(2);
if (role === "cluster") cluster(Number(argument));
if (role === "operator") {
  const result = await operator(argument as LoadMode);
  console.log(JSON.stringify(result));
  process.exit(0);
}
