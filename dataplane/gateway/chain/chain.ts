import type { BlockList } from "node:net";
import type { Clock } from "../../shared/clock.ts";
import type { Exchange } from "../../shared/http/exchange.ts";
import { relay, UpstreamError, type RelayResult } from "../../shared/http/relay.ts";
import { tunnel } from "../../shared/http/tunnel.ts";
import type { Logger } from "../../shared/logger.ts";
import { BadRequestError, RouteNotFoundError } from "../errors.ts";
import type { GatewayMetrics, RevisionMetrics } from "../metrics.ts";
import type { Pod } from "../revisions/pod.ts";
import type { FlowPlace, RevisionBackend } from "../revisions/revision-backend.ts";
import type { RouteTarget } from "../routing/compiled-route.ts";
import { normalizeHost, type ListenerName } from "../routing/hosts.ts";
import type { RoutingTable } from "../routing/routing-table.ts";
import type { AccessLog } from "./access-log.ts";
import { answerError, errorAnswer } from "./answer-error.ts";
import { requestFields } from "./request-fields.ts";

export interface ChainParts {
  readonly clock: Clock;
  /** The routing table of this moment. */
  readonly routes: () => RoutingTable<RevisionBackend>;
  /** Where the host of a revision's own Service leads, which ends here while the gateway is in its path. */
  readonly revisionTarget: (host: string) => RouteTarget<RevisionBackend> | undefined;
  /** Which priority level and flow a request belongs to. */
  readonly classify: (exchange: Exchange, target: RouteTarget<RevisionBackend>) => FlowPlace;
  readonly trustedProxies: BlockList;
  readonly connectTimeoutMs: number;
  /** Where a pod takes upgrades, whatever its requests come by. */
  readonly http1Port: (pod: Pod) => number;
  readonly metrics: GatewayMetrics;
  readonly accessLog: AccessLog;
  readonly logger: Logger;
}

/** Attempts at pods for one request; each after the first only because nothing of the one before was sent. */
const MOST_ATTEMPTS = 5;

/** What became of a request so far. */
interface Progress {
  revision: RevisionBackend | undefined;
  pod: Pod | undefined;
  waitedMs: number;
}

/**
 * What happens to a request, in this order:
 *
 *     route       the host names a route, the route's percents a revision        404
 *     count       from here on the autoscaler sees it
 *     classify    priority level and flow
 *     place       wait until a pod of the revision has room                      429, 503
 *     forward     to that pod, and its answer back                               502, 504
 *     again       at another pod, only if nothing was sent
 *
 * A request asks for its place first and for nothing else while it waits.
 */
export function createChain(parts: ChainParts): (exchange: Exchange, listener: ListenerName) => void {
  const { clock, metrics, accessLog, logger } = parts;

  const serve = async (exchange: Exchange, listener: ListenerName): Promise<void> => {
    const startMs = clock.nowMs();
    const progress: Progress = { revision: undefined, pod: undefined, waitedMs: 0 };
    let status: number;
    let responseBytes = 0;
    let errorCode: string | undefined;
    try {
      const target = route(parts, exchange, listener);
      const revision = pick(target);
      progress.revision = revision;
      revision.meter.enter(startMs);
      try {
        const result = await placeAndForward(
          parts,
          exchange,
          revision,
          parts.classify(exchange, target),
          progress,
          startMs,
        );
        ({ status, responseBytes } = result);
      } finally {
        revision.meter.leave(clock.nowMs());
      }
    } catch (error) {
      const answer = errorAnswer(error);
      answerError(exchange, answer);
      status = answer.status;
      errorCode = answer.code;
      metrics.answeredError(answer.code);
      if (error instanceof RouteNotFoundError) metrics.unrouted(listener);
      else if (status >= 500)
        logger.warn({ err: error, host: exchange.authority, revision: progress.revision?.key }, "request failed");
    }
    const durationMs = clock.nowMs() - startMs;
    const { revision, pod, waitedMs } = progress;
    if (revision !== undefined) metrics.of(revision).ended(status, durationMs / 1000);
    accessLog(exchange, {
      listener,
      revision: revision?.key,
      pod: pod?.name,
      status,
      responseBytes,
      waitedMs,
      durationMs,
      error: errorCode,
    });
  };

  return (exchange, listener) => {
    serve(exchange, listener).catch((error: unknown) => {
      logger.error({ err: error }, "a request was left without an end");
      exchange.abort();
    });
  };
}

function route(parts: ChainParts, exchange: Exchange, listener: ListenerName): RouteTarget<RevisionBackend> {
  if (!exchange.target.startsWith("/")) throw new BadRequestError("only requests for a path are forwarded");
  const { authority } = exchange;
  const target =
    parts.routes().find(listener, authority) ??
    (listener === "internal" ? parts.revisionTarget(normalizeHost(authority)) : undefined);
  if (target === undefined) throw new RouteNotFoundError(authority);
  return target;
}

function pick(target: RouteTarget<RevisionBackend>): RevisionBackend {
  const revision = target.deck.draw();
  if (revision === undefined) throw new RouteNotFoundError(`${target.route}.${target.namespace}`);
  return revision;
}

async function placeAndForward(
  parts: ChainParts,
  exchange: Exchange,
  revision: RevisionBackend,
  flow: FlowPlace,
  progress: Progress,
  startMs: number,
): Promise<{ readonly status: number; readonly responseBytes: number }> {
  const revisionMetrics: RevisionMetrics = parts.metrics.of(revision);
  for (let attempt = 1; ; attempt++) {
    const acquired = revision.acquire(exchange, flow, startMs);
    const place = acquired instanceof Promise ? await acquired : acquired;
    const { pod, waitedMs } = place;
    progress.pod = pod;
    progress.waitedMs = waitedMs;
    if (acquired instanceof Promise) revisionMetrics.waited(waitedMs / 1000);
    try {
      const result = await forward(parts, exchange, revision, pod);
      pod.accepted();
      return result;
    } catch (error) {
      if (!(error instanceof UpstreamError) || error.sent) throw error;
      revisionMetrics.connectFailed();
      parts.logger.warn(
        { err: error, revision: revision.key, pod: pod.name, address: pod.address, attempt },
        "no connection to pod",
      );
      // Before the place is free again, so that nobody else is sent to this pod.
      revision.refusedBy(pod);
      if (attempt === MOST_ATTEMPTS) throw error;
    } finally {
      place.release();
    }
  }
}

function forward(
  parts: ChainParts,
  exchange: Exchange,
  revision: RevisionBackend,
  pod: Pod,
): Promise<Pick<RelayResult, "status" | "responseBytes">> {
  const { clock, connectTimeoutMs, trustedProxies } = parts;
  const { protocol, backstop: timeouts } = revision.settings;
  const isTunnel = exchange.upgrade;
  const request = {
    authority: exchange.authority,
    headers: requestFields(exchange, trustedProxies, protocol === "h2c" && !isTunnel),
  };
  if (!isTunnel) return relay(exchange, pod.upstream, request, { clock, timeouts, whenLate: "abort" });
  const host = pod.address.slice(0, pod.address.lastIndexOf(":")).replace(/^\[(.*)\]$/, "$1");
  const responseStartMs = timeouts.responseStartMs > 0 ? timeouts.responseStartMs : timeouts.wholeMs;
  return tunnel(exchange, request, { clock, host, port: parts.http1Port(pod), connectTimeoutMs, responseStartMs });
}
