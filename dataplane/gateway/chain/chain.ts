import { normalizeHost } from "../../../api/hosts.ts";
import { hashFlow } from "../../../core/flowcontrol/flow-hash.ts";
import type { Classification } from "../../../core/flowcontrol/flow-controller.ts";
import { serviceRequestAttributes, type RequestedService } from "../../../core/flowcontrol/service-request.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Exchange, RawHeaders } from "../../shared/http/exchange.ts";
import { relay, UpstreamError } from "../../shared/http/relay.ts";
import { tunnel } from "../../shared/http/tunnel.ts";
import type { Logger } from "../../shared/logger.ts";
import { BadRequestError, HomeMovedError, RevisionGoneError, RouteNotFoundError } from "../errors.ts";
import { FLOW_FIELDS, type FlowControl, type Seat } from "../flow-control/flow-control.ts";
import { ANONYMOUS, type Identity } from "../identity/identity.ts";
import type { GatewayMetrics } from "../metrics.ts";
import { formatPassed, PASSED_FIELD, type PassedRequest } from "../peers/passed-request.ts";
import type { Peer, Peers } from "../peers/peers.ts";
import type { Pod } from "../revisions/pod.ts";
import type { FlowPlace, Place, RevisionBackend } from "../revisions/revision-backend.ts";
import { backstopOf } from "../revisions/revision-settings.ts";
import type { RouteTarget } from "../routing/compiled-route.ts";
import type { ListenerName } from "../routing/hosts.ts";
import type { RoutingTable } from "../routing/routing-table.ts";
import type { AccessLog } from "./access-log.ts";
import { answerError, errorAnswer } from "./answer-error.ts";
import { passedFields, requestFields, type TrustedProxies } from "./request-fields.ts";

export interface ChainParts {
  readonly clock: Clock;
  /** The routing table of this moment. */
  readonly routes: () => RoutingTable<RevisionBackend>;
  /** Where the host of a revision's own Service leads, which ends here while the gateway is in its path. */
  readonly revisionTarget: (host: string) => RouteTarget<RevisionBackend> | undefined;
  readonly findRevision: (key: string) => RevisionBackend | undefined;
  readonly identify: (exchange: Exchange) => Identity | Promise<Identity>;
  readonly peers: Peers;
  /** Absent: everybody is one flow, and there are seats for all. */
  readonly flowControl: FlowControl | undefined;
  readonly trustedProxies: TrustedProxies;
  readonly connectTimeoutMs: number;
  /** Where a pod takes upgrades, whatever its requests come by. */
  readonly http1Port: (pod: Pod) => number;
  readonly metrics: GatewayMetrics;
  readonly accessLog: AccessLog;
  readonly logger: Logger;
}

/** Attempts at pods for one request; each after the first only because nothing of the one before was sent. */
const MOST_ATTEMPTS = 5;
/** How often a request is sent for another gateway while those come and go; then it is served here. */
const MOST_DEPARTURES = 5;

/** Without flow control. */
const EVERYBODY: FlowPlace = { level: "", flow: hashFlow("", "") };

/** One request on its way, and what is known of it so far. */
interface Visit {
  readonly exchange: Exchange;
  readonly listener: ListenerName;
  readonly startMs: number;
  /** Set when another gateway passed it on. */
  readonly passed: PassedRequest | undefined;
  revision: RevisionBackend | undefined;
  identity: Identity | undefined;
  classification: Classification | undefined;
  /** The gateway that it was passed on to: that one counts it, and tells of it. */
  passedTo: string | undefined;
  pod: Pod | undefined;
  waitedMs: number;
}

/** What a request is for, and who sends it. */
interface Call {
  readonly revision: RevisionBackend;
  readonly service: RequestedService;
  readonly identity: Identity;
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
 *     identify    who sends it                                                   401
 *     home        a revision with few places has one gateway where all wait for them: on to that, once
 *     count       from here on the autoscaler sees it
 *     classify    priority level and flow
 *     place       wait until a pod of the revision has room                      429, 503
 *     seat        wait until the priority level has one at this gateway          429
 *     forward     to that pod, and its answer back                               502, 504
 *     again       at another pod or gateway, only if nothing was sent
 *
 * A request asks for its place first and its seat second, so one that waits for a cold or slow service never holds the
 * seat of another.
 */
export function createChain(parts: ChainParts): (exchange: Exchange, listener: ListenerName) => void {
  const { clock, logger } = parts;

  const serve = async (visit: Visit): Promise<void> => {
    let outcome: Outcome;
    try {
      const { revision, service } = route(parts, visit);
      visit.revision = revision;
      const identified = identify(parts, visit);
      const identity = identified instanceof Promise ? await identified : identified;
      visit.identity = identity;
      outcome = await serveAtHome(parts, visit, { revision, service, identity });
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
      passed: listener === "internal" ? parts.peers.passedBy(exchange) : undefined,
      revision: undefined,
      identity: undefined,
      classification: undefined,
      passedTo: undefined,
      pod: undefined,
      waitedMs: 0,
    };
    serve(visit).catch((error: unknown) => {
      logger.error({ err: error }, "a request was left without an end");
      exchange.abort();
    });
  };
}

function route(parts: ChainParts, { exchange, listener, passed }: Visit): Omit<Call, "identity"> {
  if (passed !== undefined) return passedRoute(parts, passed);
  if (!exchange.target.startsWith("/")) throw new BadRequestError("only requests for a path are forwarded");
  const { authority } = exchange;
  const target =
    parts.routes().find(listener, authority) ??
    (listener === "internal" ? parts.revisionTarget(normalizeHost(authority)) : undefined);
  if (target === undefined) throw new RouteNotFoundError(authority);
  return { revision: pick(target), service: target };
}

/** The gateway that passed it on has drawn the revision. */
function passedRoute(parts: ChainParts, { revision: key, service, tag }: PassedRequest): Omit<Call, "identity"> {
  const revision = parts.findRevision(key);
  if (revision === undefined) throw new RevisionGoneError(key);
  return { revision, service: { namespace: revision.namespace, service, tag } };
}

function pick(target: RouteTarget<RevisionBackend>): RevisionBackend {
  const revision = target.deck.draw();
  if (revision === undefined) throw new RouteNotFoundError(`${target.route}.${target.namespace}`);
  return revision;
}

function identify(parts: ChainParts, { exchange, passed }: Visit): Identity | Promise<Identity> {
  if (passed !== undefined) return passed.identity;
  // Nobody looks at it.
  if (parts.flowControl === undefined) return ANONYMOUS;
  return parts.identify(exchange);
}

/** At the revision's home gateway if that is another one and takes it, else here. */
async function serveAtHome(parts: ChainParts, visit: Visit, call: Call): Promise<Outcome> {
  const { revision } = call;
  for (let departures = 0; ; departures++) {
    const mayLeave = visit.passed === undefined && departures < MOST_DEPARTURES;
    const home = mayLeave && revision.home !== undefined ? parts.peers.find(revision.home) : undefined;
    try {
      if (home === undefined) return await serveHere(parts, visit, call, mayLeave);
      visit.passedTo = home.name;
      return await passOn(parts, visit, call, home);
    } catch (error) {
      if (error instanceof HomeMovedError) continue;
      if (home === undefined || !(error instanceof UpstreamError) || error.sent) throw error;
      visit.passedTo = undefined;
      parts.logger.warn({ err: error, revision: revision.key, gateway: home.name }, "no connection to home gateway");
      parts.peers.refusedBy(home);
    }
  }
}

async function serveHere(parts: ChainParts, visit: Visit, call: Call, mayLeave: boolean): Promise<Outcome> {
  const { meter } = call.revision;
  meter.enter(parts.clock.nowMs());
  try {
    return await placeAndForward(parts, visit, call.revision, classify(parts, visit, call), mayLeave);
  } finally {
    meter.leave(parts.clock.nowMs());
  }
}

function classify({ flowControl }: ChainParts, visit: Visit, { service, identity }: Call): FlowPlace {
  if (flowControl === undefined) return EVERYBODY;
  const attributes = serviceRequestAttributes(visit.exchange, service, identity);
  visit.classification = flowControl.classify(attributes);
  return { level: visit.classification.level.name, flow: visit.classification.hash };
}

/** To another gateway, which waits, serves and answers; its bounds hold, the ones here only come after those. */
function passOn(parts: ChainParts, visit: Visit, { revision, service, identity }: Call, home: Peer): Promise<Outcome> {
  const { clock, connectTimeoutMs } = parts;
  const { exchange } = visit;
  const { protocol, backstop } = revision.settings;
  const toHttp2 = protocol === "h2c" && !exchange.upgrade;
  const passed = formatPassed({ revision: revision.key, service: service.service, tag: service.tag, identity });
  const request = {
    authority: exchange.authority,
    headers: [...requestFields(exchange, parts.trustedProxies, toHttp2), PASSED_FIELD, passed],
  };
  const { wholeMs } = backstopOf(backstop);
  const lastMs = wholeMs > 0 ? revision.maxWaitMs + wholeMs : 0;
  if (!exchange.upgrade) {
    const timeouts = { wholeMs: lastMs, responseStartMs: 0, idleMs: 0 };
    return relay(exchange, home.upstream(protocol), request, { clock, timeouts, whenLate: "abort" });
  }
  const { host, port } = home;
  return tunnel(exchange, request, { clock, host, port, connectTimeoutMs, responseStartMs: lastMs });
}

async function placeAndForward(
  parts: ChainParts,
  visit: Visit,
  revision: RevisionBackend,
  flow: FlowPlace,
  mayLeave: boolean,
): Promise<Outcome> {
  const { exchange, startMs } = visit;
  const metrics = parts.metrics.of(revision);
  for (let attempt = 1; ; attempt++) {
    const acquired = revision.acquire(exchange, flow, startMs, mayLeave);
    const place: Place = acquired instanceof Promise ? await acquired : acquired;
    const { pod } = place;
    visit.pod = pod;
    visit.waitedMs = place.waitedMs;
    if (acquired instanceof Promise) metrics.waited(place.waitedMs / 1000);
    let seat: Seat | undefined;
    try {
      const taken = takeSeat(parts, visit, revision);
      seat = taken instanceof Promise ? await taken : taken;
      const outcome = await forward(parts, visit, revision, pod, seat);
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
      seat?.release();
      place.release();
    }
  }
}

function takeSeat(
  { flowControl }: ChainParts,
  { classification, exchange }: Visit,
  { settings: { width, timeouts } }: RevisionBackend,
): Seat | Promise<Seat> | undefined {
  if (classification === undefined || flowControl === undefined) return undefined;
  return flowControl.acquire(exchange, classification, width, timeouts.wholeMs);
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
  const toHttp2 = protocol === "h2c" && !isTunnel;
  const headers =
    visit.passed === undefined ? requestFields(exchange, trustedProxies, toHttp2) : passedFields(exchange, toHttp2);
  const request = { authority: exchange.authority, headers };
  // An app does not speak for the gateway.
  const answer = { dropResponseHeaders: FLOW_FIELDS, addResponseHeaders: flowFields(parts, visit) };
  if (!isTunnel) return relay(exchange, pod.upstream, request, { clock, timeouts, whenLate: "abort", ...answer });
  const host = pod.address.slice(0, pod.address.lastIndexOf(":")).replace(/^\[(.*)\]$/, "$1");
  return tunnel(exchange, request, {
    clock,
    host,
    port: parts.http1Port(pod),
    connectTimeoutMs,
    responseStartMs: timeouts.responseStartMs > 0 ? timeouts.responseStartMs : timeouts.wholeMs,
    // What lives as long as its client wishes is no burst to protect from, as a watch is none upstream.
    onUpgraded: () => seat?.release(),
    ...answer,
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
  const { exchange, listener, startMs, revision, identity, classification, passedTo, pod, waitedMs } = visit;
  const durationMs = parts.clock.nowMs() - startMs;
  if (passedTo !== undefined) parts.metrics.passedOn.inc();
  else if (revision !== undefined) parts.metrics.of(revision).ended(status, durationMs / 1000);
  parts.accessLog(exchange, {
    listener,
    revision: revision?.key,
    user: identity?.user,
    passedTo,
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
