import type { BlockList } from "node:net";
import { hashFlow } from "../../../core/flowcontrol/flow-hash.ts";
import type { Classification } from "../../../core/flowcontrol/flow-controller.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Exchange, RawHeaders } from "../../shared/http/exchange.ts";
import { relay, UpstreamError } from "../../shared/http/relay.ts";
import { tunnel } from "../../shared/http/tunnel.ts";
import type { Logger } from "../../shared/logger.ts";
import { BadRequestError, RouteNotFoundError } from "../errors.ts";
import type { FlowControl, Seat } from "../flow-control/flow-control.ts";
import type { Identity } from "../identity/identity.ts";
import { requestAttributes } from "../flow-control/request-attributes.ts";
import type { GatewayMetrics } from "../metrics.ts";
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
  readonly identify: (exchange: Exchange) => Identity | Promise<Identity>;
  /** Absent: everybody is one flow, and there are seats for all. */
  readonly flowControl: FlowControl | undefined;
  /** Whose word about the client counts; absent: nobody's. */
  readonly trustedProxies: BlockList | undefined;
  readonly connectTimeoutMs: number;
  /** Where a pod takes upgrades, whatever its requests come by. */
  readonly http1Port: (pod: Pod) => number;
  readonly metrics: GatewayMetrics;
  readonly accessLog: AccessLog;
  readonly logger: Logger;
}

/** Attempts at pods for one request; each after the first only because nothing of the one before was sent. */
const MOST_ATTEMPTS = 5;

/** Without flow control. */
const EVERYBODY: FlowPlace = { level: "", flow: hashFlow("", "") };

/** One request on its way, and what is known of it so far. */
interface Visit {
  readonly exchange: Exchange;
  readonly listener: ListenerName;
  readonly startMs: number;
  revision: RevisionBackend | undefined;
  classification: Classification | undefined;
  pod: Pod | undefined;
  waitedMs: number;
}

interface Outcome {
  readonly status: number;
  readonly responseBytes: number;
  readonly errorCode?: string;
}

/**
 * What happens to a request, in this order:
 *
 *     route       the host names a route, the route's percents a revision        404
 *     count       from here on the autoscaler sees it
 *     classify    who it is; priority level and flow
 *     place       wait until a pod of the revision has room                      429, 503
 *     seat        wait until the priority level has one at this gateway          429
 *     forward     to that pod, and its answer back                               502, 504
 *     again       at another pod, only if nothing was sent
 *
 * A request asks for its place first and its seat second, so one that waits for a cold or slow service never holds the
 * seat of another.
 */
export function createChain(parts: ChainParts): (exchange: Exchange, listener: ListenerName) => void {
  const { clock, logger } = parts;

  const serve = async (visit: Visit): Promise<void> => {
    let outcome: Outcome;
    try {
      const target = route(parts, visit);
      const revision = pick(target);
      visit.revision = revision;
      revision.meter.enter(visit.startMs);
      try {
        const flow = await classify(parts, visit, target);
        outcome = await placeAndForward(parts, visit, revision, flow);
      } finally {
        revision.meter.leave(clock.nowMs());
      }
    } catch (error) {
      outcome = fail(parts, visit, error);
    }
    observe(parts, visit, outcome);
  };

  return (exchange, listener) => {
    const visit: Visit = {
      exchange,
      listener,
      startMs: clock.nowMs(),
      revision: undefined,
      classification: undefined,
      pod: undefined,
      waitedMs: 0,
    };
    serve(visit).catch((error: unknown) => {
      logger.error({ err: error }, "a request was left without an end");
      exchange.abort();
    });
  };
}

function route(parts: ChainParts, { exchange, listener }: Visit): RouteTarget<RevisionBackend> {
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

/** Not a promise unless who it is must be asked for. */
function classify(
  { flowControl, identify }: ChainParts,
  visit: Visit,
  target: RouteTarget<RevisionBackend>,
): FlowPlace | Promise<FlowPlace> {
  if (flowControl === undefined) return EVERYBODY;
  const { exchange } = visit;
  const as = (identity: Identity): FlowPlace => {
    visit.classification = flowControl.classify(requestAttributes(exchange, target, identity));
    return { level: visit.classification.level.name, flow: visit.classification.hash };
  };
  const identity = identify(exchange);
  return identity instanceof Promise ? identity.then(as) : as(identity);
}

async function placeAndForward(
  parts: ChainParts,
  visit: Visit,
  revision: RevisionBackend,
  flow: FlowPlace,
): Promise<Outcome> {
  const { exchange, startMs } = visit;
  const metrics = parts.metrics.of(revision);
  for (let attempt = 1; ; attempt++) {
    const acquired = revision.acquire(exchange, flow, startMs);
    const place = acquired instanceof Promise ? await acquired : acquired;
    const { pod } = place;
    visit.pod = pod;
    visit.waitedMs = place.waitedMs;
    if (acquired instanceof Promise) metrics.waited(place.waitedMs / 1000);
    try {
      const outcome = await seatAndForward(parts, visit, revision, pod);
      pod.accepted();
      return outcome;
    } catch (error) {
      if (!(error instanceof UpstreamError) || error.sent) throw error;
      metrics.connectFailed();
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

async function seatAndForward(parts: ChainParts, visit: Visit, revision: RevisionBackend, pod: Pod): Promise<Outcome> {
  const { classification, exchange } = visit;
  if (classification === undefined || parts.flowControl === undefined)
    return forward(parts, visit, revision, pod, undefined);
  const acquired = parts.flowControl.acquire(exchange, classification, revision.settings.width);
  const seat = acquired instanceof Promise ? await acquired : acquired;
  try {
    return await forward(parts, visit, revision, pod, seat);
  } finally {
    seat.release();
  }
}

function forward(
  parts: ChainParts,
  visit: Visit,
  revision: RevisionBackend,
  pod: Pod,
  seat: Seat | undefined,
): Promise<Outcome> {
  const { clock, connectTimeoutMs, trustedProxies } = parts;
  const { exchange } = visit;
  const { protocol, backstop: timeouts } = revision.settings;
  const isTunnel = exchange.upgrade;
  const request = {
    authority: exchange.authority,
    headers: requestFields(exchange, trustedProxies, protocol === "h2c" && !isTunnel),
  };
  if (!isTunnel) {
    const addResponseHeaders = flowFields(parts, visit);
    return relay(exchange, pod.upstream, request, { clock, timeouts, whenLate: "abort", addResponseHeaders });
  }
  const host = pod.address.slice(0, pod.address.lastIndexOf(":")).replace(/^\[(.*)\]$/, "$1");
  return tunnel(exchange, request, {
    clock,
    host,
    port: parts.http1Port(pod),
    connectTimeoutMs,
    responseStartMs: timeouts.responseStartMs > 0 ? timeouts.responseStartMs : timeouts.wholeMs,
    // What lives as long as its client wishes is no burst to protect from, as a watch is none upstream.
    onUpgraded: () => seat?.release(),
  });
}

/** The fields of every answer that say by which schema and level the request went. */
function flowFields({ flowControl }: ChainParts, { classification }: Visit): RawHeaders {
  return classification === undefined || flowControl === undefined ? [] : flowControl.responseFields(classification);
}

function fail(parts: ChainParts, visit: Visit, error: unknown): Outcome {
  const { exchange, listener, revision } = visit;
  const answer = errorAnswer(error);
  answerError(exchange, answer, flowFields(parts, visit));
  parts.metrics.answeredError(answer.code);
  if (error instanceof RouteNotFoundError) parts.metrics.unrouted(listener);
  else if (answer.status >= 500)
    parts.logger.warn({ err: error, host: exchange.authority, revision: revision?.key }, "request failed");
  return { status: answer.status, responseBytes: 0, errorCode: answer.code };
}

function observe(parts: ChainParts, visit: Visit, { status, responseBytes, errorCode }: Outcome): void {
  const { exchange, listener, startMs, revision, classification, pod, waitedMs } = visit;
  const durationMs = parts.clock.nowMs() - startMs;
  if (revision !== undefined) parts.metrics.of(revision).ended(status, durationMs / 1000);
  parts.accessLog(exchange, {
    listener,
    revision: revision?.key,
    pod: pod?.name,
    flowSchema: classification?.schema.name,
    priorityLevel: classification?.level.name,
    status,
    responseBytes,
    waitedMs,
    durationMs,
    error: errorCode,
  });
}
