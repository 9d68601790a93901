import { Log as PeprLog, metricsCollector as peprMetrics } from "pepr";
import { collectDefaultMetrics, Registry } from "prom-client";
import { isNotFound } from "./api-error.ts";
import { watching, type CapabilityModule, type DebugAnswer, type OperatorRuntime } from "./capability.ts";
import { pause, systemClock, type Clock } from "./clock.ts";
import { parseConfig, type OperatorConfig } from "./config.ts";
import { Controllers } from "./controllers.ts";
import { createEventRecorder } from "./event-recorder.ts";
import { createHealthServer } from "./health-server.ts";
import { SharedInformers } from "./informers.ts";
import { createKubeApi, type KubeApi } from "./kube-api.ts";
import { systemEndpointSlices } from "./kinds.ts";
import { LeaderElection } from "./leader-election.ts";
import { createLogging, type ComponentLogger, type LoggerFor } from "./logging.ts";
import { startPepr, type PeprHost } from "./pepr-host.ts";
import { takeWatchBindings } from "./pepr-watches.ts";
import { resourcePath } from "./resource.ts";
import { createStatsEndpointReconciler, STATS_SERVICE } from "./stats-endpoint.ts";
import type { KubeObject } from "./types.ts";
import {
  createWebhookCaReconciler,
  mutatingWebhooks,
  trustsBundle,
  validatingWebhooks,
  WEBHOOK_CONFIGURATION,
} from "./webhook-ca.ts";
import { CertificateKeeper, WEBHOOK_SECRET, webhookSecrets, type WebhookCertificates } from "./webhook-certificates.ts";
import { createWebhookFront } from "./webhook-front.ts";
import { createWorkQueueMetrics } from "./work-queue.ts";
import { createWriter } from "./writer.ts";

const LEASE = "fairway-operator";
const PEPR_READY_TIMEOUT_MS = 30_000;
/** How long open admission requests may take to end at shutdown. */
const WEBHOOK_DRAIN_MS = 5_000;
/** After the lease is lost, what still runs has this long: others wait longer before they take over. */
const LOST_LEASE_GRACE_MS = 4_000;
/** Below the pod's terminationGracePeriodSeconds (30). */
const SHUTDOWN_LIMIT_MS = 25_000;

/** The operator's process: never returns to its caller's control; ends the process when it is told to, or when it cannot go on. */
export function runOperator(modules: readonly CapabilityModule[]): void {
  const { config, loggerFor } = configure();
  const log = loggerFor("operator");
  const die = (error: unknown, message: string): never => {
    log.error({ error }, message);
    process.exit(1);
  };
  process.on("uncaughtException", error => die(error, "uncaught exception"));
  process.on("unhandledRejection", error => die(error, "unhandled rejection"));
  const stop = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      if (stop.signal.aborted) die(undefined, `second ${signal}`);
      log.info({ signal }, "stopping");
      stop.abort();
      setTimeout(() => die(undefined, `not stopped within ${SHUTDOWN_LIMIT_MS} ms`), SHUTDOWN_LIMIT_MS).unref();
    });
  }
  const options = { config, loggerFor, clock: systemClock, random: Math.random, api: createKubeApi(), modules };
  operate(options, stop.signal).then(
    () => {
      log.info("stopped");
      process.exit(0);
    },
    (error: unknown) => die(error, "cannot go on"),
  );
}

function configure(): { readonly config: OperatorConfig; readonly loggerFor: LoggerFor } {
  try {
    const config = parseConfig(process.env);
    return { config, loggerFor: createLogging(config.logLevel) };
  } catch (error) {
    createLogging("error")("operator").error({ error }, "cannot start");
    process.exit(2);
  }
}

export interface OperateOptions {
  readonly config: OperatorConfig;
  readonly loggerFor: LoggerFor;
  readonly clock: Clock;
  readonly random: () => number;
  readonly api: KubeApi;
  readonly modules: readonly CapabilityModule[];
}

/**
 * Starts everything in order, runs until `stop` aborts, and stops in order. All replicas serve admission; one leads and
 * reconciles. Rejects when something that cannot be retried fails.
 */
export async function operate(options: OperateOptions, stop: AbortSignal): Promise<void> {
  const { config, loggerFor, clock, random, api, modules } = options;
  const log = loggerFor("operator");
  const metrics = new Registry();
  collectDefaultMetrics({ register: metrics });
  // Pepr logs each request, with the object, at the level info.
  PeprLog.level = "warn";

  /** Ends after `stop`: what has to go on while the replica stops. */
  const ended = new AbortController();
  const informers = new SharedInformers({
    api,
    systemNamespace: config.systemNamespace,
    clock,
    random,
    log: loggerFor("informers"),
    metrics,
  });
  const controllers = new Controllers({
    informers,
    clock,
    random,
    log: loggerFor("work-queue"),
    metrics: createWorkQueueMetrics(metrics),
  });
  const writer = createWriter({
    api,
    metrics,
    cached: (apiVersion, kind, key) => informers.cached(apiVersion, kind, key),
  });
  const events = createEventRecorder({
    api,
    clock,
    log: loggerFor("events"),
    metrics,
    instance: config.identity,
    signal: ended.signal,
  });
  const election = new LeaderElection({
    api,
    namespace: config.systemNamespace,
    name: LEASE,
    identity: config.identity,
    leaseDurationMs: config.leaseDurationMs,
    renewDeadlineMs: config.leaseRenewDeadlineMs,
    retryPeriodMs: config.leaseRetryPeriodMs,
    clock,
    random,
    log: loggerFor("leader-election"),
    metrics,
    lead: signal => leadFenced(controllers, signal, stop, config, log),
  });
  const debug = new Map<string, DebugAnswer>();
  const runtime: OperatorRuntime = {
    config,
    clock,
    random,
    metrics,
    writer,
    events,
    logger: loggerFor,
    lister: kind => informers.lister(kind),
    find: (ref, signal) => find(api, ref, signal),
    onChange: (kind, handler) => informers.onChange(kind, handler),
    registerController: registration => controllers.register(registration),
    whileLeading: (name, task) => controllers.task(name, task),
    serveDebug: (name, answer) => void debug.set(name, answer),
    isLeader: () => election.isLeader,
  };

  const capabilities = modules.map(module => module(runtime));
  for (const capability of capabilities) {
    for (const { kind, handler } of takeWatchBindings(capability, log)) controllers.watch(kind, handler);
  }
  const certificates = keepCertificates(options, runtime, controllers, metrics);
  const { podIp, statsPort: port, systemNamespace: namespace, identity: podName } = config;
  if (podIp !== undefined) {
    const key = { namespace, name: STATS_SERVICE };
    controllers.register({
      name: "stats-endpoint",
      concurrency: 1,
      reconciler: createStatsEndpointReconciler(writer, { namespace, podIp, podName, port }),
      watches: [watching(systemEndpointSlices, slice => (slice.metadata?.name === STATS_SERVICE ? [key] : []))],
      initialKeys: [key],
    });
  }

  let admission: PeprHost | undefined;
  let admissionListens = false;
  let wasReady = false;
  const notReady = (): readonly string[] => {
    if (stop.aborted) return ["stopping"];
    if (wasReady) return [];
    const missing = [
      ...informers.unsynced().map(path => `no list yet of ${path}`),
      ...(admissionListens ? [] : ["webhooks are not served yet"]),
      ...certificates.untrusted().map(name => `${name} does not trust the webhook certificate yet`),
    ];
    wasReady = missing.length === 0;
    if (wasReady) log.info("ready");
    return missing;
  };
  const health = createHealthServer({
    metrics: async () => `${await metrics.metrics()}\n${await peprMetrics.getMetrics()}`,
    notReady,
    debug,
    log,
  });
  const front = createWebhookFront({
    pepr: {
      review: (kind, body, signal) =>
        admission === undefined
          ? Promise.reject(new Error("pepr has not started"))
          : admission.review(kind, body, signal),
    },
    log: loggerFor("admission"),
    metrics,
  });

  const serveAdmission = async (): Promise<void> => {
    // Not before the API server has answered: Pepr reads its store once, and does not try again.
    admission = await startPepr(capabilities, clock);
    await admission.whenReady(PEPR_READY_TIMEOUT_MS, stop);
    const current = await certificates.whenLoaded(stop);
    if (current === undefined) return;
    await front.listen(config.webhookPort, current.serving);
    certificates.onChange(({ serving }) => front.useCertificate(serving));
    admissionListens = true;
    log.info({ port: config.webhookPort }, "webhooks are served");
  };
  const lead = async (): Promise<void> => {
    await informers.whenSynced(stop);
    if (stop.aborted) return;
    log.info("caches are complete");
    await election.run(AbortSignal.any([stop, ended.signal]));
  };
  /** Readiness fails at once; requests still come until everyone has heard of it. */
  const lastRequests = async (): Promise<void> => {
    await aborted(stop);
    front.retire();
    await pause(clock, config.shutdownDelayMs, ended.signal);
  };

  try {
    await health.listen(config.metricsPort);
    await certificates.keeper.ensure(stop);
    informers.start(ended.signal);
    await Promise.all([lead(), serveAdmission(), lastRequests()]);
  } finally {
    ended.abort();
    await front.close(WEBHOOK_DRAIN_MS);
    await admission?.close();
    await api.close();
    await health.close();
  }
}

/** Leads, and ends the process when something goes on although the lease is lost. */
async function leadFenced(
  controllers: Controllers,
  signal: AbortSignal,
  stop: AbortSignal,
  config: OperatorConfig,
  log: ComponentLogger,
): Promise<void> {
  let watchdog: NodeJS.Timeout | undefined;
  signal.addEventListener("abort", () => {
    if (stop.aborted) return;
    watchdog = setTimeout(() => {
      log.error(`still working ${LOST_LEASE_GRACE_MS} ms after the lease was lost: ending the process`);
      process.exit(1);
    }, LOST_LEASE_GRACE_MS);
  });
  try {
    await controllers.lead(signal, () => (stop.aborted ? config.drainTimeoutMs : 0));
  } finally {
    clearTimeout(watchdog);
  }
}

/** The certificates of this replica: shared by a Secret, renewed by the leader, trusted by the webhook configurations. */
function keepCertificates(
  { config, loggerFor, clock, random, api }: OperateOptions,
  runtime: OperatorRuntime,
  controllers: Controllers,
  metrics: Registry,
) {
  const log = loggerFor("webhook-certificates");
  const { webhookService: service, systemNamespace: namespace, clusterDomain, webhookExtraHosts } = config;
  const keeper = new CertificateKeeper({
    api,
    namespace,
    hosts: [`${service}.${namespace}.svc`, `${service}.${namespace}.svc.${clusterDomain}`, ...webhookExtraHosts],
    clock,
    random,
    log,
    metrics,
  });
  let current: WebhookCertificates | undefined;
  const listeners: ((certificates: WebhookCertificates) => void)[] = [];
  runtime.onChange(webhookSecrets, (secret, phase) => {
    const next = phase === "deleted" ? undefined : keeper.read(secret);
    if (next === undefined) {
      log.warn({ phase }, "webhook Secret is gone or damaged: serving with the last good certificate");
      return;
    }
    if (next.serving.certificate !== current?.serving.certificate) log.info("webhook certificate loaded");
    current = next;
    for (const listener of listeners) listener(next);
  });
  const secretKey = { namespace, name: WEBHOOK_SECRET };
  controllers.register({
    name: "webhook-certificates",
    concurrency: 1,
    reconciler: {
      name: "webhook-certificates",
      reconcile: async (_key, signal) => ({ requeueAfterMs: await keeper.step(signal) }),
    },
    watches: [watching(webhookSecrets, () => [secretKey])],
    initialKeys: [secretKey],
  });
  const configurationKey = { name: WEBHOOK_CONFIGURATION };
  const listers = [mutatingWebhooks, validatingWebhooks].map(kind => {
    const configurations = runtime.lister(kind);
    const controller = controllers.register({
      name: `webhook-ca-${kind.plural}`,
      concurrency: 1,
      reconciler: createWebhookCaReconciler({
        kind,
        configurations,
        certificates: () => current,
        writer: runtime.writer,
      }),
      watches: [watching<KubeObject>(kind, () => [configurationKey])],
    });
    listeners.push(() => controller.enqueue(configurationKey));
    return { kind, configurations };
  });
  return {
    keeper,
    onChange: (listener: (certificates: WebhookCertificates) => void) => void listeners.push(listener),
    /** The first certificates, once the cache has them; `undefined` when the signal aborts before. */
    async whenLoaded(signal: AbortSignal): Promise<WebhookCertificates | undefined> {
      while (current === undefined && !signal.aborted) await pause(clock, 50, signal);
      return current;
    },
    /** Installed webhook configurations that do not trust the current certificate. */
    untrusted: (): readonly string[] =>
      listers
        .map(({ kind, configurations }) => ({ kind, configuration: configurations.get(configurationKey) }))
        .filter(({ configuration }) => configuration !== undefined && !trustsBundle(configuration, current))
        .map(({ kind }) => `${kind.kind} ${WEBHOOK_CONFIGURATION}`),
  };
}

async function find(
  api: KubeApi,
  ref: Parameters<OperatorRuntime["find"]>[0],
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  try {
    const kind = await api.discover(ref.apiVersion, ref.kind, signal);
    return (await api.call("GET", resourcePath(kind, ref.namespace, ref.name), { signal })) as KubeObject;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise(resolve => signal.addEventListener("abort", () => resolve(), { once: true }));
}
