import { randomUUID } from "node:crypto";
import type { Registry } from "prom-client";
import { normalizeHost } from "../../api/hosts.ts";
import type { PlaceLevel } from "../../core/flowcontrol/place-queue.ts";
import { startAdminServer, type AdminServer } from "../shared/admin-server.ts";
import type { Clock } from "../shared/clock.ts";
import { H1Upstream } from "../shared/http/h1-upstream.ts";
import { H2Upstream } from "../shared/http/h2-upstream.ts";
import { startListener, type Listener } from "../shared/http/listener.ts";
import type { TlsFront } from "../shared/http/tls-front.ts";
import { DEFAULT_UPSTREAM, type Upstream, type UpstreamOptions } from "../shared/http/upstream.ts";
import type { Logger } from "../shared/logger.ts";
import { createAccessLog, noAccessLog } from "./chain/access-log.ts";
import { createChain } from "./chain/chain.ts";
import type { GatewayConfig } from "./config.ts";
import { debugRevisions, debugRoutes } from "./debug.ts";
import { dumpPages } from "./flow-control/dumps.ts";
import { FlowControl } from "./flow-control/flow-control.ts";
import { flowMetrics } from "./flow-control/flow-metrics.ts";
import { flowControlViews } from "./flow-control/flow-views.ts";
import { firstOf, identifier } from "./identity/identify.ts";
import { oidcTokens } from "./identity/oidc.ts";
import { TokenIdentities, type TokenSource } from "./identity/token-identity.ts";
import { reviewedTokens } from "./identity/token-review.ts";
import { GatewayMetrics } from "./metrics.ts";
import { Peers } from "./peers/peers.ts";
import { AutoscalerClient } from "./report/autoscaler-client.ts";
import { Reporter } from "./report/reporter.ts";
import { EarlyReadiness, type ReadinessProbe } from "./revisions/early-readiness.ts";
import type { Pod } from "./revisions/pod.ts";
import type { RevisionBackend } from "./revisions/revision-backend.ts";
import type { RevisionSettings } from "./revisions/revision-settings.ts";
import { RevisionRegistry } from "./revisions/revision-registry.ts";
import { revisionTargets } from "./routing/revision-target.ts";
import { RoutingTable } from "./routing/routing-table.ts";
import { SecureEntrance } from "./tls/secure-entrance.ts";
import { tlsMetrics } from "./tls/tls-metrics.ts";
import { ClusterView } from "./watch/cluster-view.ts";
import { flowControlObjects } from "./watch/flow-control-objects.ts";
import type { KubeClient } from "./watch/kube-client.ts";
import { reflect } from "./watch/reflector.ts";

export interface GatewayParts {
  readonly config: GatewayConfig;
  readonly kube: KubeClient;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly probe: ReadinessProbe;
  readonly http1Port: (pod: Pod) => number;
}

export interface Gateway {
  readonly externalPort: number;
  readonly internalPort: number;
  /** Absent while there is no certificate. */
  readonly tlsPort: number | undefined;
  readonly adminPort: number;
  /** Lets running requests end, within bounds, and stops; the admin server last. Repeatable. */
  stop(): Promise<void>;
  /** Resolves when it has stopped, whoever asked for it. */
  readonly stopped: Promise<void>;
}

/**
 * `syncing` (nothing is accepted) -> `serving` -> `leaving` (still accepted, readiness says no, so that endpoints and load
 * balancers take it out) -> `draining` (nothing new) -> `stopped`.
 */
type Stage = "syncing" | "serving" | "leaving" | "draining" | "stopped";

const EARLY_READINESS_PERIOD_MS = 25;
const TOKEN_FAILURE_PERIOD_MS = 10_000;

/** Puts a gateway together and starts it. Resolves when it serves; rejects when a port is taken. */
export async function startGateway(parts: GatewayParts): Promise<Gateway> {
  const { config, kube, clock, random, logger, registry } = parts;
  let stage: Stage = "syncing";
  const unsynced = new Set<string>();
  const following = new AbortController();
  let unusedFlowObjects = "";
  let placeLevels: ReadonlyMap<string, PlaceLevel> = new Map();
  let table = new RoutingTable<RevisionBackend>();

  const metrics = new GatewayMetrics({ registry, backends: () => revisions.all() });
  const upstream: UpstreamOptions = {
    ...DEFAULT_UPSTREAM,
    connectTimeoutMs: config.connectTimeoutMs,
    maxHeaderBytes: config.maxHeaderBytes,
  };
  const early = new EarlyReadiness({ clock, probe: parts.probe, periodMs: EARLY_READINESS_PERIOD_MS });
  const connect = (address: string, protocol: RevisionSettings["protocol"]): Upstream =>
    protocol === "h2c" ? new H2Upstream(address, upstream) : new H1Upstream(address, upstream);
  const peers = new Peers({ self: config.podName, clock, connect, onChange: () => revisions.gatewaysChanged() });
  const revisions: RevisionRegistry = new RevisionRegistry({
    clock,
    random,
    defaults: config,
    failedWaitMs: config.failedRevisionWaitMs,
    levels: () => placeLevels,
    gateways: () => peers.set,
    connect,
    onNeedsPod: backend => reporter.poke(backend),
    onWaiting: backend => early.watch(backend),
    onRemoved: backend => metrics.forget(backend),
  });

  const flowControl: FlowControl | undefined = config.flowControl
    ? new FlowControl({
        clock,
        totalSeats: config.totalSeats,
        debug: config.flowControlDebug,
        observer: flowMetrics(registry, () => flowControl),
        onLevels: (levels, { dangling, broken }) => {
          placeLevels = levels;
          for (const backend of revisions.all()) backend.levelsChanged();
          const unused = JSON.stringify({ dangling, broken });
          if (unused !== unusedFlowObjects && dangling.length + broken.length > 0)
            logger.warn({ dangling, broken }, "flow-control objects that are not used");
          unusedFlowObjects = unused;
        },
      })
    : undefined;

  const autoscaler = new AutoscalerClient({ url: config.autoscalerUrl, tokenFile: config.reportTokenFile });
  const reporter: Reporter = new Reporter({
    gateway: config.podName,
    instance: randomUUID(),
    clock,
    send: report => autoscaler.send(report),
    backends: () => revisions.all(),
    onHints: hints => revisions.advise(hints),
    logger,
    onAccepted: kind => metrics.reports.inc({ kind }),
    onFailed: requests => {
      metrics.reportFailures.inc();
      metrics.unreportedRequests.inc(requests);
    },
  });

  const programmed = (): void => {
    // Before its revisions are known a route would let requests wait by the wrong settings.
    const isKnown = (namespace: string, name: string) => revisions.find(`${namespace}/${name}`)?.known === true;
    const fingerprints = table.routes
      .filter(route => [...route.revisions].every(name => isKnown(route.namespace, name)))
      .map(route => [route.key, route.fingerprint] as const);
    reporter.programmed(new Map(fingerprints));
  };
  const view = new ClusterView({
    registry: revisions,
    clock,
    random,
    clusterDomain: config.clusterDomain,
    systemNamespace: config.systemNamespace,
    defaults: config,
    onTable: next => {
      table = next;
      metrics.routes.set(next.routes.length);
      // Not before requests are taken: what is reported as programmed may be asked for at once.
      if (stage !== "syncing") programmed();
    },
    onAutoscaler: addresses => autoscaler.setAddresses(addresses),
    onGateways: gateways => {
      peers.setEndpoints(gateways);
      const self = gateways.find(endpoint => endpoint.podName === config.podName);
      if (self?.terminating !== true || stage !== "serving") return;
      logger.warn("this pod is being deleted, and no signal said so");
      void gateway.stop();
    },
  });

  const revisionTarget = revisionTargets({
    clusterDomain: config.clusterDomain,
    find: (namespace, name) => {
      const revision = revisions.find(`${namespace}/${name}`);
      return revision?.known === true ? { revision, service: revision.settings.service } : undefined;
    },
  });
  const admin: AdminServer = await startAdminServer({
    port: config.adminPort,
    ...(config.listenHost === undefined ? {} : { host: config.listenHost }),
    registry,
    unhealthy: () => undefined,
    unready: () => {
      if (stage === "serving") return undefined;
      return stage === "syncing" ? `not listed yet: ${[...unsynced].join(", ")}` : stage;
    },
    json: {
      "/debug/routes": () => debugRoutes(table),
      "/debug/revisions": () => debugRevisions(revisions.all()),
      ...(flowControl === undefined
        ? {}
        : flowControlViews(
            flowControl,
            host => table.find("internal", host) ?? revisionTarget(normalizeHost(host)),
            () => clock.nowMs(),
          )),
    },
    ...(flowControl === undefined ? {} : { text: dumpPages(flowControl, () => clock.wallMs() - clock.nowMs()) }),
  });

  const collections = [...view.collections, ...(flowControl === undefined ? [] : flowControlObjects(flowControl))];
  await Promise.all(
    collections.map(({ collection, handler }) => {
      unsynced.add(collection.kind);
      return new Promise<void>(resolve => {
        const onSynced = (): void => {
          unsynced.delete(collection.kind);
          resolve();
        };
        const onFailure = (): void => metrics.watchFailures.inc({ kind: collection.kind });
        void reflect(
          { client: kube, clock, random, logger, collection, handler, onFailure },
          onSynced,
          following.signal,
        );
      });
    }),
  );
  view.flush();
  flowControl?.flush();

  const chain = createChain({
    clock,
    routes: () => table,
    revisionTarget,
    findRevision: key => revisions.find(key),
    identify: identifier({
      proxies: config.identityProxies,
      certificates: { wallMs: () => clock.wallMs(), systemNames: config.clientSystemNames },
      tokens: tokenIdentities(parts, metrics),
    }),
    peers,
    flowControl,
    trustedProxies: { clients: config.trustedProxies, identities: config.identityProxies },
    connectTimeoutMs: config.connectTimeoutMs,
    http1Port: parts.http1Port,
    metrics,
    accessLog: config.accessLog ? createAccessLog(logger) : noAccessLog,
    logger,
  });
  const listen = (name: "external" | "internal", port: number, tls?: TlsFront): Promise<Listener> =>
    startListener({
      port,
      ...(tls === undefined ? {} : { tls }),
      ...(config.listenHost === undefined ? {} : { host: config.listenHost }),
      limits: {
        headersTimeoutMs: config.headersTimeoutMs,
        keepAliveMs: config.clientKeepAliveMs,
        maxHeaderBytes: config.maxHeaderBytes,
      },
      onExchange: exchange => chain(exchange, name),
    });
  const [external, internal, secure] = await Promise.all([
    listen("external", config.externalPort),
    listen("internal", config.internalPort),
    openSecureEntrance(parts, (port, tls) => listen("external", port, tls)),
  ]);
  const listeners = [external, internal, ...(secure === undefined ? [] : [secure])];
  stage = "serving";
  reporter.start();
  programmed();
  const ports = { externalPort: external.port, internalPort: internal.port, tlsPort: secure?.port };
  logger.info({ ...ports, routes: table.routes.length }, "serving");

  const wait = (ms: number): Promise<void> => new Promise(resolve => clock.after(ms, resolve));
  const stop = async (): Promise<void> => {
    stage = "leaving";
    logger.info({ delayMs: config.shutdownDelayMs }, "leaving: no longer ready");
    for (const listener of listeners) listener.lastCalls();
    await wait(config.shutdownDelayMs);
    stage = "draining";
    const active = () => listeners.reduce((sum, listener) => sum + listener.active, 0);
    logger.info({ active: active(), timeoutMs: config.drainTimeoutMs }, "draining");
    const closed = Promise.all(listeners.map(listener => listener.close()));
    await Promise.race([closed, wait(config.drainTimeoutMs)]);
    if (active() > 0) logger.warn({ active: active() }, "requests are cut off at the end of the drain");
    for (const listener of listeners) listener.destroy();
    await closed;
    await reporter.stop();
    following.abort();
    flowControl?.stop();
    for (const backend of revisions.all()) backend.remove();
    peers.close();
    await Promise.all([autoscaler.close(), kube.close()]);
    stage = "stopped";
    logger.info("stopped");
    await admin.close();
  };
  const stopped = Promise.withResolvers<void>();
  let isStopping = false;
  const gateway: Gateway = {
    externalPort: external.port,
    internalPort: internal.port,
    get tlsPort() {
      return secure?.port;
    },
    adminPort: admin.port,
    stopped: stopped.promise,
    stop() {
      if (!isStopping) stop().then(stopped.resolve, stopped.reject);
      isStopping = true;
      return stopped.promise;
    },
  };
  return gateway;
}

/** Undefined where nothing names a certificate. */
async function openSecureEntrance(
  { config, clock, logger, registry }: GatewayParts,
  listen: (port: number, tls: TlsFront) => Promise<Listener>,
): Promise<SecureEntrance | undefined> {
  if (config.tls === undefined) return undefined;
  const { port, files, handshakeTimeoutMs, reloadPeriodMs: periodMs } = config.tls;
  const entrance = new SecureEntrance({
    files,
    periodMs,
    handshakeTimeoutMs,
    clock,
    logger,
    metrics: tlsMetrics(registry),
    listen: tls => listen(port, tls),
  });
  await entrance.start();
  return entrance;
}

/** Undefined where nobody's tokens are believed. */
function tokenIdentities(
  { config, kube, clock, logger }: GatewayParts,
  metrics: GatewayMetrics,
): TokenIdentities | undefined {
  const sources: TokenSource[] = [];
  if (config.oidcIssuers.length > 0) sources.push(oidcTokens(config.oidcIssuers));
  if (config.tokenReview !== "off")
    sources.push(reviewedTokens({ kube, mode: config.tokenReview, ownTokenFile: config.reportTokenFile }));
  if (sources.length === 0) return undefined;
  let toldMs = -Infinity;
  const onFailure = (error: unknown): void => {
    metrics.tokenFailures.inc();
    // A flood of tokens is no reason for a flood of lines.
    if (clock.nowMs() - toldMs < TOKEN_FAILURE_PERIOD_MS) return;
    toldMs = clock.nowMs();
    logger.warn({ err: error }, "a token could not be judged: its request goes on as anonymous");
  };
  return new TokenIdentities({ clock, source: firstOf(sources), onFailure });
}
