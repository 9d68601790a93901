import type { BlockList } from "node:net";
import type { Exchange } from "../../shared/http/exchange.ts";
import { connectionOptions, isHopByHop } from "../../shared/http/hop-by-hop.ts";
import { isIdentityField } from "../../../core/flowcontrol/service-request.ts";
import { speaksForOthers } from "../identity/proxy-identity.ts";
import { PASSED_FIELD } from "../peers/passed-request.ts";

/** Tells queue-proxy that a gateway has counted the request. */
export const PROXY_MARK = "K-Proxy-Request";
const PROXY_MARK_VALUE = "gateway";

/** Fields that parts of the system tell each other by; from a client they mean nothing. */
const CONTROL: ReadonlySet<string> = new Set([
  PASSED_FIELD,
  "k-kubelet-probe",
  "k-network-hash",
  "k-network-probe",
  "k-original-host",
  "k-passthrough-lb",
  "k-proxy-request",
  "knative-serving-namespace",
  "knative-serving-revision",
]);

/** Written anew here; what the client sent is believed from trusted proxies only. */
const FORWARDED: ReadonlySet<string> = new Set([
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
]);

/** Say the same by other names, and cannot be extended: dropped unless from a trusted proxy. */
const FORWARDED_BY_OTHERS: ReadonlySet<string> = new Set(["x-forwarded-port", "x-forwarded-server", "x-real-ip"]);

/** Whose word counts; absent: nobody's. */
export interface TrustedProxies {
  /** About where a request comes from: `X-Forwarded-*`, `Forwarded`. */
  readonly clients: BlockList | undefined;
  /** About who sends it: `X-Remote-User` and the like. */
  readonly identities: BlockList | undefined;
}

/**
 * The fields of a request as the pod gets them: without those that end here, with those that say who the client is
 * (`X-Forwarded-*` and RFC 7239 `Forwarded`), and marked as counted. `Host` goes by another way.
 *
 * @param toHttp2 whether the pod is spoken to over HTTP/2
 */
export function requestFields(exchange: Exchange, { clients, identities }: TrustedProxies, toHttp2: boolean): string[] {
  const { rawHeaders, remoteAddress, tls } = exchange;
  const isTrusted = clients !== undefined && speaksForOthers(exchange, clients);
  const isAuthenticator = identities !== undefined && speaksForOthers(exchange, identities);
  const options = connectionOptions(rawHeaders);
  const fields: string[] = [];
  let cookies: string | undefined;
  let takesTrailers = false;
  let before: Map<string, string> | undefined;

  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    const value = rawHeaders[i + 1]!;
    const lower = name.toLowerCase();
    switch (lower) {
      case "host":
      case "expect":
        continue;
      case "te":
        takesTrailers ||= value.toLowerCase().includes("trailers");
        continue;
      case "cookie":
        // HTTP/2 may split it; for HTTP/1.1 it is one field (RFC 9113 section 8.2.3).
        cookies = cookies === undefined ? value : `${cookies}; ${value}`;
        continue;
    }
    if (isHopByHop(lower, options) || CONTROL.has(lower)) continue;
    if (FORWARDED.has(lower)) {
      if (!isTrusted) continue;
      before ??= new Map();
      const earlier = before.get(lower);
      before.set(lower, earlier === undefined ? value : `${earlier}, ${value}`);
      continue;
    }
    if (!isTrusted && FORWARDED_BY_OTHERS.has(lower)) continue;
    if (!isAuthenticator && isIdentityField(lower)) continue;
    fields.push(name, value);
  }

  if (cookies !== undefined) fields.push("Cookie", cookies);
  if (takesTrailers && toHttp2) fields.push("TE", "trailers");
  const proto = before?.get("x-forwarded-proto") ?? (tls === undefined ? "http" : "https");
  const host = before?.get("x-forwarded-host") ?? exchange.authority;
  const earlierFor = before?.get("x-forwarded-for");
  const earlierForwarded = before?.get("forwarded");
  const element = `for=${forwardedNode(remoteAddress)};host=${quoted(host)};proto=${quoted(proto)}`;
  fields.push(
    "X-Forwarded-For",
    earlierFor === undefined ? remoteAddress : `${earlierFor}, ${remoteAddress}`,
    "X-Forwarded-Host",
    host,
    "X-Forwarded-Proto",
    proto,
    "Forwarded",
    earlierForwarded === undefined ? element : `${earlierForwarded}, ${element}`,
    PROXY_MARK,
    PROXY_MARK_VALUE,
  );
  return fields;
}

/**
 * The fields of a request that another gateway has passed on. That one has written them as the pod is to get them; only what is
 * of the connection between the two ends here.
 */
export function passedFields({ rawHeaders }: Pick<Exchange, "rawHeaders">, toHttp2: boolean): string[] {
  const options = connectionOptions(rawHeaders);
  const fields: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    const value = rawHeaders[i + 1]!;
    const lower = name.toLowerCase();
    if (lower === "te" && toHttp2 && value.toLowerCase().includes("trailers")) fields.push("TE", "trailers");
    if (lower === "host" || lower === PASSED_FIELD || isHopByHop(lower, options)) continue;
    fields.push(name, value);
  }
  return fields;
}

/** RFC 7239 section 6: an IPv6 address stands in brackets and quotes. */
function forwardedNode(address: string): string {
  if (address === "") return "unknown";
  return address.includes(":") ? `"[${address}]"` : address;
}

const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;

function quoted(value: string): string {
  return TOKEN.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;
}
