import type { BlockList } from "node:net";
import type { Exchange } from "../../shared/http/exchange.ts";
import { ANONYMOUS, type Identity } from "./identity.ts";
import { proxyIdentity } from "./proxy-identity.ts";
import type { TokenIdentities, TokenSource } from "./token-identity.ts";

export interface IdentifyOptions {
  /** Whose word about identities counts. */
  readonly proxies: BlockList | undefined;
  /** Absent: bearer tokens are none of the gateway's business. */
  readonly tokens: TokenIdentities | undefined;
}

const BEARER = /^bearer +(\S+) *$/i;

/**
 * Tells who sends a request: as a trusted proxy says, else the owner of the bearer token, else nobody in particular. Never
 * refuses and never rejects. A promise only while a token is looked up.
 */
export function identifier({
  proxies,
  tokens,
}: IdentifyOptions): (
  exchange: Pick<Exchange, "remoteAddress" | "header" | "rawHeaders">,
) => Identity | Promise<Identity> {
  return exchange => {
    const told = proxies === undefined ? undefined : proxyIdentity(exchange, proxies);
    if (told !== undefined) return told;
    const token = tokens === undefined ? undefined : BEARER.exec(exchange.header("authorization") ?? "")?.[1];
    if (tokens === undefined || token === undefined) return ANONYMOUS;
    const owner = tokens.of(token);
    return owner instanceof Promise ? owner.then(found => found ?? ANONYMOUS) : (owner ?? ANONYMOUS);
  };
}

/** The first verdict of several sources, asked in turn. */
export function firstOf(sources: readonly TokenSource[]): TokenSource {
  return async (token, signal) => {
    for (const source of sources) {
      const owner = await source(token, signal);
      if (owner !== undefined) return owner;
    }
    return undefined;
  };
}
