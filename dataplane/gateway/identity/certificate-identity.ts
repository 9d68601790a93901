import type { Exchange } from "../../shared/http/exchange.ts";
import { ClientCertificateError } from "../errors.ts";
import { authenticated, authenticatedOutside, type Identity } from "./identity.ts";

export interface CertificateIdentityOptions {
  /** Milliseconds since the epoch. */
  readonly wallMs: () => number;
  /** Whether names that begin with `system:` are believed: the authority is the cluster's own. */
  readonly systemNames: boolean;
}

/**
 * Who a client's certificate says it is: the subject's `CN` is the user, each `O` a group. Undefined when it shows none, or
 * one that names nobody. Throws `ClientCertificateError` for one that does not hold, now or at the handshake. Source of the rules:
 * Kubernetes' x509 authenticator, which looks at each request anew, so that a connection does not outlive its certificate.
 */
export function certificateIdentity(
  { tls }: Pick<Exchange, "tls">,
  { wallMs, systemNames }: CertificateIdentityOptions,
): Identity | undefined {
  const certificate = tls?.certificate;
  if (certificate === undefined) return undefined;
  const { commonName, organizations, notAfterMs, problem } = certificate;
  if (problem !== undefined) throw new ClientCertificateError(problem);
  if (wallMs() > notAfterMs) throw new ClientCertificateError("CERT_HAS_EXPIRED");
  if (commonName === "") return undefined;
  return systemNames ? authenticated(commonName, organizations) : authenticatedOutside(commonName, organizations);
}
