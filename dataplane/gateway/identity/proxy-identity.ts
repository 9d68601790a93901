import type { BlockList } from "node:net";
import type { Exchange } from "../../shared/http/exchange.ts";
import { authenticated, type Identity } from "./identity.ts";

/** Fields in which an authenticating proxy says who the client is, those of Kubernetes' request-header scheme; see `isIdentityField`. */
const USER = "x-remote-user";
const GROUP = "x-remote-group";

/** Whether the peer's word about identities counts. */
export function speaksForOthers({ remoteAddress }: Pick<Exchange, "remoteAddress">, proxies: BlockList): boolean {
  return remoteAddress !== "" && proxies.check(remoteAddress, remoteAddress.includes(":") ? "ipv6" : "ipv4");
}

/** Who a trusted proxy says the client is; undefined when it says nothing or is not trusted. Groups: one field each. */
export function proxyIdentity(
  exchange: Pick<Exchange, "remoteAddress" | "header" | "rawHeaders">,
  proxies: BlockList,
): Identity | undefined {
  if (!speaksForOthers(exchange, proxies)) return undefined;
  const user = exchange.header(USER);
  if (user === undefined || user === "") return undefined;
  const groups: string[] = [];
  const { rawHeaders } = exchange;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const value = rawHeaders[i + 1];
    if (rawHeaders[i]?.toLowerCase() === GROUP && value !== undefined && value !== "") groups.push(value);
  }
  return authenticated(user, groups);
}
