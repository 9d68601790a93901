import type { BlockList } from "node:net";
import type { Exchange } from "../../shared/http/exchange.ts";
import { ClientCertificateError } from "../errors.ts";
import { certificateIdentity, type CertificateIdentityOptions } from "./certificate-identity.ts";
import { ANONYMOUS, type Identity } from "./identity.ts";
import { proxyIdentity } from "./proxy-identity.ts";
import type { TokenIdentities, TokenSource } from "./token-identity.ts";

export interface IdentifyOptions {
  /** Whose word about identities counts. */
  readonly proxies: BlockList | undefined;
  readonly certificates: CertificateIdentityOptions;
  /** Absent: bearer tokens are none of the gateway's business. */
  readonly tokens: TokenIdentities | undefined;
}

/**
 * Tells who sends a request: as a trusted proxy says, else as the client's certificate does, else the owner of the bearer
 * token, else nobody in particular. A promise only while a token is looked up. Throws, or rejects with, `ClientCertificateError` for a
 * certificate that does not hold when nothing else says who it is: as upstream, who shows a bad one is not anonymous.
 */
export function identifier({
  proxies,
  certificates,
  tokens,
}: IdentifyOptions): (
  exchange: Pick<Exchange, "remoteAddress" | "header" | "rawHeaders" | "tls">,
) => Identity | Promise<Identity> {
  return exchange => {
    const told = proxies === undefined ? undefined : proxyIdentity(exchange, proxies);
    if (told !== undefined) return told;
    let refused: ClientCertificateError | undefined;
    try {
      const certified = certificateIdentity(exchange, certificates);
      if (certified !== undefined) return certified;
    } catch (error) {
      if (!(error instanceof ClientCertificateError)) throw error;
      refused = error;
    }
    const orAnonymous = (owner: Identity | undefined): Identity => {
      if (owner === undefined && refused !== undefined) throw refused;
      return owner ?? ANONYMOUS;
    };
    const authorization = exchange.header("authorization");
    const owner = authorization === undefined ? undefined : tokens?.of(authorization);
    return owner instanceof Promise ? owner.then(orAnonymous) : orAnonymous(owner);
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
