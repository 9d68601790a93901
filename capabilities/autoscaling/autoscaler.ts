import type { V1TokenReview } from "@kubernetes/client-node";
import { Counter } from "prom-client";
import { LABEL } from "../../api/labels.ts";
import type { Revision, Service } from "../../api/serving/v1/types.ts";
import { REPORT_AUDIENCE, type GatewayReply, type GatewayReport } from "../../api/wire/stats.ts";
import type { CloudRunLoad } from "../../core/autoscaling/cloud-run-drivers.ts";
import { MetricCollector, revisionKey } from "../../core/autoscaling/collector.ts";
import { explain } from "../../core/autoscaling/explain.ts";
import { instanceSeconds } from "../../core/autoscaling/observe-revision.ts";
import { labelledWith, watching, type Controller, type OperatorRuntime } from "../runtime/capability.ts";
import { configMaps, deployments, pods, revisions, services, systemEndpointSlices } from "../runtime/kinds.ts";
import { keyOf } from "../runtime/resource.ts";
import type { KubeObject } from "../runtime/types.ts";
import { SettingsStore } from "../services/settings.ts";
import { DecisionEvents } from "./decision-events.ts";
import type { DecisionStore } from "./decision-store.ts";
import { GatewayHints, type InstanceMaxima } from "./gateway-hints.ts";
import type { GatewayRegistry } from "./gateway-registry.ts";
import { GATEWAY_SERVICE, gatewaySet } from "./gateway-set.ts";
import { gatewayTokens, type ReviewToken } from "./gateway-tokens.ts";
import { KubeletCpu, kubeletReader } from "./kubelet-cpu.ts";
import { podScraper } from "./pod-scraper.ts";
import { resolveScaling } from "./resolve.ts";
import { RevisionScaler, type Decision, type ResolvedScaling } from "./revision-scaler.ts";
import { rolloutOf, withRolloutCapacity } from "./rollout.ts";
import type { ScalingBoard } from "./scaling-board.ts";
import { runScrapes, runTicks, type ScalingLoops } from "./scaling-loops.ts";
import { ScalingMetrics } from "./scaling-metrics.ts";
import { startStatsIntake } from "./stats-intake.ts";

const SCRAPE_TIMEOUT_MS = 800;
const TOKEN_REVIEW_TIMEOUT_MS = 5000;

export interface AutoscalerParts {
  readonly board: ScalingBoard;
  readonly registry: GatewayRegistry;
  readonly decisions: DecisionStore;
  /** Hears the pod names of the gateways that take requests, each time they change. */
  readonly onReadyGateways: (ready: readonly string[]) => void;
}

/** Builds the autoscaler on the runtime; its loops run while this replica leads. Returns the controller of revisions. */
export function buildAutoscaler(runtime: OperatorRuntime, parts: AutoscalerParts): Controller {
  const { board, registry, decisions } = parts;
  const { clock, config } = runtime;
  const log = runtime.logger("autoscaling");
  const collector = new MetricCollector();
  const metrics = new ScalingMetrics(runtime.metrics);
  const serviceLister = runtime.lister(services);
  const serviceOf = (revision: Pick<KubeObject, "metadata">): Service | undefined => {
    const { namespace, labels } = revision.metadata ?? {};
    const name = labels?.[LABEL.service];
    return name === undefined ? undefined : serviceLister.get({ namespace, name });
  };
  const events = new DecisionEvents(runtime.events, serviceOf);
  const refused = new Counter({
    name: "autoscaler_refused_reports_total",
    help: "Gateway reports that were not taken",
    registers: [runtime.metrics],
  });
  const failedScrapes = new Counter({
    name: "autoscaler_failed_scrapes_total",
    help: "Pods that did not tell their numbers",
    registers: [runtime.metrics],
  });

  const hints = new GatewayHints();
  const settings = new SettingsStore({ ...config });
  const revisionLister = runtime.lister(revisions);
  const loadOf = (key: string): CloudRunLoad | undefined => {
    const nowMs = clock.nowMs();
    const { load } = collector.instancesLoad(key, nowMs);
    if (load !== undefined) return load;
    const windowed = collector.load(key, "concurrency", nowMs);
    return windowed.kind === "measured"
      ? { concurrency1m: windowed.stable, concurrency10m: windowed.stable, cpu1m: undefined }
      : undefined;
  };
  const resolve = serviceAwareResolve(settings, serviceOf, loadOf);

  const scaler = new RevisionScaler({
    revisions: revisionLister,
    deployments: runtime.lister(deployments),
    pods: runtime.lister(pods),
    collector,
    board,
    writer: runtime.writer,
    clock,
    resolve,
    adapted: key => hints.adapted(key),
    onDecision: (key, revision, decision) => {
      decisions.record(key, decision);
      hints.decided(key, decision.outcome.decision, maximaOf(revision, decision));
      metrics.observe(revision.metadata.namespace ?? "", revision.metadata.name ?? "", decision);
      events.observe(key, revision, decision);
    },
    onGone: (key, { namespace, name }) => {
      decisions.forget(key);
      hints.forget(key);
      metrics.forget(namespace ?? "", name);
      events.forget(key);
    },
  });

  const controller = runtime.registerController({
    name: "autoscaling",
    concurrency: 8,
    reconciler: scaler,
    watches: [
      labelledWith(deployments, LABEL.revision),
      labelledWith(pods, LABEL.revision),
      // Bounds set on the Service itself hold for its revisions at once.
      watching(services, service =>
        revisionLister
          .list({ namespace: service.metadata.namespace, labels: { [LABEL.service]: service.metadata.name ?? "" } })
          .map(keyOf),
      ),
    ],
  });

  runtime.onChange(configMaps, (configMap, phase) => {
    const name = configMap.metadata?.name ?? "";
    try {
      if (!settings.update(name, phase === "deleted" ? undefined : (configMap.data ?? {}))) return;
    } catch (error) {
      log.error({ error, configMap: name }, "configuration not taken; the last good one stays");
      return;
    }
    for (const revision of revisionLister.list()) controller.enqueue(keyOf(revision));
  });

  const slices = runtime.lister(systemEndpointSlices);
  runtime.onChange(systemEndpointSlices, () => {
    const { existing, ready } = gatewaySet(slices.list());
    registry.retain(existing);
    collector.retainGateways(existing);
    parts.onReadyGateways(ready);
    registry.readyGatewaysChanged();
  });

  const onReport = (report: GatewayReport): GatewayReply => {
    for (const key of collector.acceptReport(report, clock.nowMs())) {
      if (report.poke) scaler.poked(key);
      if (report.poke || !scaler.isActive(key)) controller.enqueue(objectKey(key));
    }
    return { ...registry.accept(report), hints: hints.all() };
  };

  runtime.serveDebug("scaling", query => {
    const namespace = query.get("namespace") ?? "";
    const revision = query.get("revision") ?? "";
    const key = revisionKey(namespace, revision);
    const decision = decisions.get(key);
    if (decision === undefined || !runtime.isLeader()) return undefined;
    const explanation = explain(decision.spec, decision.outcome);
    const lastChange = decisions.lastChange(key);
    return {
      namespace,
      revision,
      decision,
      explanation,
      lastChange,
      sources: collector.sources(key),
      adaptations: hints.adaptations(key),
    } satisfies object;
  });

  runtime.whileLeading("autoscaling", async signal => {
    scaler.reset();
    registry.clear();
    decisions.clear();
    hints.clear();
    const intake = await startStatsIntake({
      port: config.statsPort,
      isGateway: gatewayTokens({
        review: reviewBy(runtime, signal),
        username: `system:serviceaccount:${config.systemNamespace}:${GATEWAY_SERVICE}`,
        now: () => clock.elapsedMs(),
      }),
      onReport,
      onRefused: reason => {
        refused.inc();
        log.warn({ reason }, "gateway report refused");
      },
    });
    const kubelets = new KubeletCpu({
      pods: () => scaler.measuredPods(),
      read: kubeletReader(),
      clock,
      onFailed: (hostIp, error) => log.debug({ hostIp, error }, "kubelet did not tell the CPU use of pods"),
    });
    const loops: ScalingLoops = {
      scaler,
      collector,
      queue: controller,
      scrape: podScraper(SCRAPE_TIMEOUT_MS),
      nodesCpu: pod => kubelets.usage(pod),
      clock,
      random: runtime.random,
      onScraped: key => {
        const policy = scaler.policyOf(key);
        if (policy?.kind !== "cloud-run") return;
        const seen = collector.instancesLoad(key, clock.nowMs());
        hints.second(key, policy.cloudRun, instanceSeconds(policy.cloudRun, seen));
      },
      onScrapeFailed: (pod, error) => {
        failedScrapes.inc();
        log.debug({ pod: pod.name, error }, "pod did not tell its numbers");
      },
    };
    try {
      await Promise.all([runTicks(loops, signal), runScrapes(loops, signal), kubelets.run(signal)]);
    } finally {
      await intake.close();
    }
  });
  return controller;
}

/** Numbers of a revision, with its Service's own bounds, its part of the traffic, and what a rollout asks of it. */
function serviceAwareResolve(
  settings: SettingsStore,
  serviceOf: (revision: Revision) => Service | undefined,
  loadOf: (key: string) => CloudRunLoad | undefined,
): (revision: Revision, reachable: boolean, replicas: number) => ResolvedScaling {
  return (revision, reachable, replicas) => {
    const { namespace = "", name } = revision.metadata;
    const service = serviceOf(revision);
    const { autoscaler, pods: podSettings } = settings.current;
    const rollout = rolloutOf(service, revision);
    const traffic = service?.status?.traffic;
    const resolved = resolveScaling(revision, reachable, {
      config: autoscaler,
      progressDeadlineMs: podSettings.deployment.progressDeadlineMs,
      serviceAnnotations: service?.metadata.annotations,
      trafficPercent:
        rollout?.percent ??
        traffic?.filter(target => target.revisionName === name).reduce((sum, target) => sum + (target.percent ?? 0), 0),
    });
    if (rollout === undefined) return resolved;
    const loads = rollout.from.map(old => loadOf(revisionKey(namespace, old)));
    return withRolloutCapacity(resolved, rollout.percent, loads, replicas);
  };
}

function maximaOf(revision: Revision, { spec, observation }: Decision): InstanceMaxima | undefined {
  if (spec.policy.kind !== "cloud-run" || (revision.spec.containerConcurrency ?? 0) > 0) return undefined;
  return {
    instances: observation.cloudRun?.instances.map(({ name }) => name) ?? [],
    maxConcurrency: spec.policy.cloudRun.maxConcurrency,
  };
}

function reviewBy(runtime: OperatorRuntime, signal: AbortSignal): ReviewToken {
  const audiences = [REPORT_AUDIENCE];
  return async token => {
    const spec = { token, audiences };
    const review: V1TokenReview = await runtime.writer.create<V1TokenReview>(
      { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", metadata: {}, spec },
      AbortSignal.any([signal, AbortSignal.timeout(TOKEN_REVIEW_TIMEOUT_MS)]),
    );
    const { authenticated, audiences: meantFor, user } = review.status ?? {};
    return authenticated === true && meantFor?.includes(REPORT_AUDIENCE) === true ? user?.username : undefined;
  };
}

function objectKey(key: string): { namespace: string; name: string } {
  const slash = key.indexOf("/");
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
