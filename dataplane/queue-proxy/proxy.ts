import type { Clock } from "../shared/clock.ts";
import type { Exchange } from "../shared/http/exchange.ts";
import {
  ClientGoneError,
  relay,
  type RelayedRequest,
  UpstreamError,
  UpstreamTimeoutError,
} from "../shared/http/relay.ts";
import { tunnel } from "../shared/http/tunnel.ts";
import type { Upstream } from "../shared/http/upstream.ts";
import { appHeaders, KUBELET_PROBE_HEADER, PROBE_HASH_HEADER, PROBE_HEADER, PROXY_HEADER } from "./app-headers.ts";
import { type Breaker, QueueFullError, WaitTimeoutError } from "./breaker.ts";
import type { QueueProxyConfig } from "./config.ts";
import type { Drain } from "./drain.ts";
import type { QueueProxyMetrics } from "./metrics.ts";
import type { PodStats } from "./pod-stats.ts";
import type { Readiness } from "./readiness.ts";
import type { RequestLog } from "./request-log.ts";

export interface ProxyParts {
  readonly config: QueueProxyConfig;
  readonly clock: Clock;
  readonly app: Upstream;
  readonly breaker: Breaker;
  readonly stats: PodStats;
  readonly readiness: Readiness;
  readonly drain: Drain;
  readonly metrics: QueueProxyMetrics;
  readonly requestLog: RequestLog;
}

/** How a request ended. `status` 499 is nginx's for a client that left. */
interface Outcome {
  readonly status: number;
  readonly responseBytes: number;
  /** Absent: the answer is the app's own. */
  readonly error?: { readonly code: string };
}

const CLIENT_GONE = 499;
const CONNECT_TIMEOUT_MS = 1_500;
/** How long a connection that the app refuses is tried again: an app that crashed is back within moments, or not soon. */
const RECONNECT_WINDOW_MS = 1_000;
const RECONNECT_INTERVAL_MS = 25;
const TEXT = ["content-type", "text/plain; charset=utf-8"];

/** What becomes of each request that reaches the pod. */
export function createProxy(parts: ProxyParts): (exchange: Exchange) => void {
  const { config, clock, drain, stats, metrics, requestLog } = parts;

  return exchange => {
    const startMs = clock.nowMs();
    if (isProbe(exchange)) {
      void answerProbe(exchange, parts).then(status => {
        if (config.requestLog.probes) requestLog(exchange, { status, responseBytes: 0, ms: clock.nowMs() - startMs });
      });
      return;
    }
    const proxied = exchange.header(PROXY_HEADER) !== undefined;
    drain.noteRequest();
    stats.enter(proxied);
    void serve(exchange, parts).then(outcome => {
      stats.leave(proxied);
      const ms = clock.nowMs() - startMs;
      if (outcome.error instanceof QueueFullError || outcome.error instanceof WaitTimeoutError)
        metrics.refused(outcome.error.code);
      else metrics.answered(outcome.status, ms / 1000);
      if (config.requestLog.enabled) requestLog(exchange, { ...outcome, ms });
    });
  };
}

function isProbe(exchange: Exchange): boolean {
  return (
    exchange.header(PROBE_HEADER) !== undefined ||
    exchange.header(KUBELET_PROBE_HEADER) !== undefined ||
    exchange.header("user-agent")?.startsWith("kube-probe/") === true
  );
}

/** Answers the kubelet's and the gateways' probes; they never reach the app as they are, and count nowhere. */
async function answerProbe(exchange: Exchange, { drain, readiness }: ProxyParts): Promise<number> {
  const answer = (status: number, body: string, headers: readonly string[] = []): number => {
    exchange.answer(status, [...TEXT, ...headers], body);
    return status;
  };
  if (drain.state.phase !== "serving") return answer(503, "shutting down\n");
  const hash = exchange.header(PROBE_HASH_HEADER);
  if (exchange.header(PROBE_HEADER) === "probe" && hash !== undefined)
    return answer(200, "", [PROBE_HASH_HEADER, hash]);
  const problem = await readiness.ask();
  // The drain may have begun while the app was asked.
  if (drain.state.phase !== "serving") return answer(503, "shutting down\n");
  return problem === undefined ? answer(200, "queue") : answer(503, `${problem}\n`);
}

/** Never rejects: whatever happens, the client has its answer, or is gone, when this resolves. */
async function serve(exchange: Exchange, parts: ProxyParts): Promise<Outcome> {
  const { breaker } = parts;
  try {
    if (!breaker.tryEnter()) await waitForPlace(exchange, breaker);
    try {
      return await forward(exchange, parts);
    } finally {
      breaker.release();
    }
  } catch (error) {
    return answerError(exchange, error, parts.config);
  }
}

async function waitForPlace(exchange: Exchange, breaker: Breaker): Promise<void> {
  const controller = new AbortController();
  exchange.onGone(() => controller.abort(new ClientGoneError()));
  await breaker.wait(controller.signal);
  exchange.onGone(undefined);
}

/** To the app and back. What provably never left this process is sent again for a moment; nothing else ever is. */
async function forward(exchange: Exchange, parts: ProxyParts): Promise<Outcome> {
  const { clock, config } = parts;
  const request = { authority: exchange.authority, headers: appHeaders(exchange, config.app.protocol) };
  const untilMs = clock.nowMs() + RECONNECT_WINDOW_MS;
  for (;;) {
    try {
      return await sendOnce(exchange, request, parts);
    } catch (error) {
      const retry = error instanceof UpstreamError && !error.sent && !exchange.gone && clock.nowMs() < untilMs;
      if (!retry) throw error;
      await new Promise<void>(resolve => clock.after(RECONNECT_INTERVAL_MS, resolve));
    }
  }
}

function sendOnce(exchange: Exchange, request: RelayedRequest, parts: ProxyParts): Promise<Outcome> {
  const { app, clock, config } = parts;
  const { timeouts } = config;
  if (exchange.upgrade && config.app.protocol === "http1") {
    // Only until the app agrees: what follows lives as long as it lives.
    const responseStartMs = timeouts.responseStartMs || timeouts.wholeMs;
    const { host, port } = config.app;
    return tunnel(exchange, request, { clock, host, port, connectTimeoutMs: CONNECT_TIMEOUT_MS, responseStartMs });
  }
  // As Knative: an answer that has begun when its time is up ends there, as if it were complete.
  return relay(exchange, app, request, { clock, timeouts, whenLate: "end" });
}

function answerError(exchange: Exchange, error: unknown, config: QueueProxyConfig): Outcome {
  if (error instanceof ClientGoneError) return { status: CLIENT_GONE, responseBytes: 0, error };
  const { status, code, message, headers } = describeError(error, config);
  const body = `${message}\n`;
  exchange.answer(status, [...TEXT, "x-fairway-error", code, ...headers], body);
  const failed = error instanceof Error && "code" in error ? (error as Error & { code: string }) : { code };
  return { status, responseBytes: Buffer.byteLength(body), error: failed };
}

/** The one place where errors become answers. */
function describeError(
  error: unknown,
  { app }: QueueProxyConfig,
): { readonly status: number; readonly code: string; readonly message: string; readonly headers: readonly string[] } {
  if (error instanceof QueueFullError || error instanceof WaitTimeoutError)
    return { status: 503, code: error.code, message: error.message, headers: ["retry-after", "1"] };
  if (error instanceof UpstreamTimeoutError)
    return { status: 504, code: error.code, message: `request timeout: ${error.message}`, headers: [] };
  if (error instanceof UpstreamError) {
    const cause = error.cause instanceof Error ? error.cause.message : String(error.cause);
    const message = error.sent
      ? `the app ended the connection before it answered: ${cause}`
      : `the app does not accept connections on port ${app.port}: ${cause}`;
    return { status: 502, code: error.code, message, headers: [] };
  }
  return { status: 500, code: "INTERNAL", message: `queue-proxy: ${String(error)}`, headers: [] };
}
