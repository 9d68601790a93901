import type { Exchange, RawHeaders } from "../shared/http/exchange.ts";
import { endToEndHeaders } from "../shared/http/hop-by-hop.ts";

/** Marks a request that a gateway sent and has counted. */
export const PROXY_HEADER = "k-proxy-request";
/** Marks a probe; its value says who is asked: `queue` (this program and the app) or `probe` (the way here). */
export const PROBE_HEADER = "k-network-probe";
export const KUBELET_PROBE_HEADER = "k-kubelet-probe";
/** Sent back as it came by who answers a `probe`. */
export const PROBE_HASH_HEADER = "k-network-hash";

/** Fields between the parts of the system, and those that this hop answers itself. `Host` is passed on by other means. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  PROXY_HEADER,
  PROBE_HEADER,
  KUBELET_PROBE_HEADER,
  PROBE_HASH_HEADER,
  "k-original-host",
  "k-passthrough-lb",
  "knative-serving-namespace",
  "knative-serving-revision",
  "expect",
  "host",
]);

const FORWARDED_FOR = "x-forwarded-for";
const FORWARDED_HEADERS: ReadonlySet<string> = new Set([FORWARDED_FOR, "x-forwarded-proto", "forwarded"]);

/**
 * The fields of a request as the app gets them. A gateway has written who the client is; of a request that came another
 * way, this hop adds its peer to `X-Forwarded-For`. `Forwarded` (RFC 7239) is made from the `X-Forwarded-` fields where absent.
 */
export function appHeaders(exchange: Exchange, protocol: "http1" | "h2c"): RawHeaders {
  const byGateway = exchange.header(PROXY_HEADER) !== undefined;
  const kept = endToEndHeaders(exchange.rawHeaders, byGateway ? OWN_HEADERS : DIRECT_DROPPED);
  let forwardedFor = exchange.header(FORWARDED_FOR);
  let proto = exchange.header("x-forwarded-proto");
  let forwarded = exchange.header("forwarded");
  if (!byGateway) {
    forwardedFor = forwardedFor === undefined ? exchange.remoteAddress : `${forwardedFor}, ${exchange.remoteAddress}`;
    proto ??= "http";
    kept.push("x-forwarded-for", forwardedFor, "x-forwarded-proto", proto);
    if (forwarded !== undefined) forwarded = `${forwarded}, for=${node(exchange.remoteAddress)}`;
  }
  forwarded ??= makeForwarded(forwardedFor, exchange.header("x-forwarded-host"), proto);
  if (forwarded !== undefined && (!byGateway || exchange.header("forwarded") === undefined))
    kept.push("forwarded", forwarded);
  // Of the hop-by-hop fields HTTP/2 allows this one, and gRPC servers look for it.
  if (protocol === "h2c" && exchange.header("te")?.toLowerCase().includes("trailers") === true)
    kept.push("te", "trailers");
  return kept;
}

const DIRECT_DROPPED: ReadonlySet<string> = new Set([...OWN_HEADERS, ...FORWARDED_HEADERS]);

function makeForwarded(
  forwardedFor: string | undefined,
  host: string | undefined,
  proto: string | undefined,
): string | undefined {
  const [first, ...others] = (forwardedFor ?? "")
    .split(",")
    .map(address => address.trim())
    .filter(address => address !== "");
  const parts = [
    ...(first === undefined ? [] : [`for=${node(first)}`]),
    ...(host === undefined ? [] : [`host=${quoted(host)}`]),
    ...(proto === undefined ? [] : [`proto=${quoted(proto)}`]),
  ];
  if (parts.length === 0) return undefined;
  return [parts.join(";"), ...others.map(address => `for=${node(address)}`)].join(", ");
}

/** An IPv6 address stands in brackets and quotes (RFC 7239 section 6). */
function node(address: string): string {
  return address.includes(":") && !address.startsWith("[") && !address.includes(".")
    ? `"[${address}]"`
    : quoted(address);
}

/** A value as it is where it is a token (RFC 9110 section 5.6.2), else a quoted string. */
function quoted(value: string): string {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;
}
