import { startAdminServer, type AdminServer } from "../shared/admin-server.ts";
import type { Clock } from "../shared/clock.ts";
import { type Listener, startListener } from "../shared/http/listener.ts";
import type { Upstream, UpstreamOptions } from "../shared/http/upstream.ts";
import type { Logger } from "../shared/logger.ts";
import { Breaker } from "./breaker.ts";
import type { QueueProxyConfig } from "./config.ts";
import { type ControlServer, startControlServer } from "./control-server.ts";
import { createCpuReader } from "./cpu-usage.ts";
import { Drain } from "./drain.ts";
import { HttpUpstream } from "./http-upstream.ts";
import { createMetrics } from "./metrics.ts";
import { PodStats } from "./pod-stats.ts";
import { createProxy } from "./proxy.ts";
import { Readiness } from "./readiness.ts";
import { createRequestLog } from "./request-log.ts";

/**
 * Connections to the app. Idle ones are kept for a moment only: a new one on the loopback costs little, and many servers
 * end idle connections after two to five seconds, at which a request must not be on its way.
 */
const APP_CONNECTIONS: UpstreamOptions = { connectTimeoutMs: 1_500, idleMs: 1_000, maxHeaderBytes: 1_048_576 };
/** After the drain: how long answers on their way may take to leave. */
const CLOSE_TIMEOUT_MS = 1_000;

export interface QueueProxy {
  readonly ports: QueueProxyConfig["ports"];
  /** Requests at the app now. */
  readonly inside: number;
  /** Requests that wait for a place at the app now. */
  readonly waiting: number;
  /** The pod leaves: its end was announced by the preStop hook, or SIGTERM came. Repeatable. */
  drain(): void;
  /** Resolves when the pod has left and everything is closed; `complete` false: requests were still here at the limit. */
  readonly ended: Promise<{ readonly complete: boolean }>;
}

/** Everything of a queue-proxy, on the ports of the configuration (0: any). Requests are served when this resolves. */
export async function startQueueProxy(config: QueueProxyConfig, clock: Clock, log: Logger): Promise<QueueProxy> {
  const listeners: Listener[] = [];
  const readiness = new Readiness({ probes: config.readinessProbes, holdMs: config.probeHoldMs }, clock);
  const breaker = new Breaker(
    { limit: config.containerConcurrency, queueDepth: config.queueDepth, maxWaitMs: config.timeouts.wholeMs },
    clock,
  );
  const stats = new PodStats(
    config.identity.pod,
    clock,
    config.measureCpu ? createCpuReader(clock.nowMs()) : undefined,
  );
  const drain = new Drain(
    { ...config.drain, active: () => listeners.reduce((sum, listener) => sum + listener.active, 0) },
    clock,
  );
  const ready = (): boolean => drain.state.phase === "serving" && readiness.state.problem === undefined;
  const metrics = createMetrics(config.identity, {
    inside: () => breaker.inside,
    waiting: () => breaker.waiting,
    ready,
  });
  readiness.onStarted = afterMs => {
    metrics.appStarted(afterMs / 1000);
    log.info({ afterMs: Math.round(afterMs) }, "the app is ready");
  };
  readiness.start();

  const app = await connectionsTo(config.app);
  const onExchange = createProxy({
    config,
    clock,
    app,
    breaker,
    stats,
    readiness,
    drain,
    metrics,
    requestLog: createRequestLog(log),
  });
  const open = (port: number): Promise<Listener> => startListener({ port, onExchange });
  // The first of these is where the kubelet's first probe comes.
  listeners.push(...(await Promise.all([open(config.ports.http), open(config.ports.h2c)])));
  const { promise, resolve, reject } = Promise.withResolvers<{ readonly complete: boolean }>();
  let draining = false;
  const leave = (): void => {
    if (draining) return;
    draining = true;
    log.info({ inFlight: breaker.inside, waiting: breaker.waiting }, "draining");
    drain.begin("SIGTERM");
    for (const listener of listeners) listener.lastCalls();
    drain
      .whenOver()
      .then(async state => {
        readiness.stop();
        stats.stop();
        app.close();
        await closeAll(listeners, control, admin, clock);
        return { complete: state.phase === "drained" && state.complete };
      })
      .then(resolve, reject);
  };
  const [control, admin] = await Promise.all([
    startControlServer(config.ports.admin, { drain, readiness, onTerminate: () => leave() }),
    startAdminServer({
      port: config.ports.metrics,
      registry: metrics.registry,
      unhealthy: () => undefined,
      unready: () => (ready() ? undefined : (readiness.state.problem ?? drain.state.phase)),
      json: { "/stats": () => stats.last },
    }),
  ]);
  stats.start();
  const [http, h2c] = listeners.map(listener => listener.port);
  return {
    ports: { http: http ?? 0, h2c: h2c ?? 0, admin: control.port, metrics: admin.port },
    get inside() {
      return breaker.inside;
    },
    get waiting() {
      return breaker.waiting;
    },
    drain: leave,
    ended: promise,
  };
}

async function connectionsTo(app: QueueProxyConfig["app"]): Promise<Upstream> {
  if (app.protocol === "http1") return new HttpUpstream(app.host, app.port, APP_CONNECTIONS);
  // Loaded only where it is used: it takes a while, and this process starts in every pod.
  const { H2Upstream } = await import("../shared/http/h2-upstream.ts");
  return new H2Upstream(`${app.host}:${app.port}`, APP_CONNECTIONS);
}

/** The traffic's ports first; who asks for state has an answer to the last. */
async function closeAll(
  listeners: readonly Listener[],
  control: ControlServer,
  admin: AdminServer,
  clock: Clock,
): Promise<void> {
  const timer = clock.after(CLOSE_TIMEOUT_MS, () => {
    for (const listener of listeners) listener.destroy();
  });
  await Promise.all(listeners.map(listener => listener.close()));
  clock.cancel(timer);
  await control.close();
  await admin.close();
}
