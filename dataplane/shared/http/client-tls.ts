import type { DetailedPeerCertificate, TLSSocket } from "node:tls";

/** What is known of a connection's client by TLS. */
export interface ClientTls {
  /** Absent: the client showed none, or was not asked for one. */
  readonly certificate: ClientCertificate | undefined;
}

/** A certificate whose key the client holds; whether its issuer is believed is another matter. */
export interface ClientCertificate {
  /** `CN` of the subject, the last one where it has several; empty where it has none. */
  readonly commonName: string;
  /** Every `O` of the subject, in its order. */
  readonly organizations: readonly string[];
  /** When it, or the first of those it was issued by, ends; milliseconds since the epoch. */
  readonly notAfterMs: number;
  /** Why it did not hold at the handshake, as OpenSSL calls it (`CERT_HAS_EXPIRED`, `INVALID_PURPOSE`, ...); absent: it did. */
  readonly problem: string | undefined;
}

/** Reads what the handshake of a server's connection has found out. */
export function clientTlsOf(socket: TLSSocket): ClientTls {
  // Empty without a certificate, null when the connection is gone; the types know of neither.
  const shown = socket.getPeerCertificate(true) as Partial<DetailedPeerCertificate> | null;
  if (shown?.raw === undefined) return { certificate: undefined };
  const { CN, O } = (shown.subject ?? {}) as Readonly<Record<string, string | string[] | undefined>>;
  return {
    certificate: {
      commonName: listOf(CN).at(-1) ?? "",
      organizations: listOf(O),
      notAfterMs: firstEnd(shown as DetailedPeerCertificate),
      problem: socket.authorized ? undefined : String(socket.authorizationError),
    },
  };
}

const listOf = (value: string | string[] | undefined): readonly string[] =>
  value === undefined ? [] : typeof value === "string" ? [value] : value;

function firstEnd(leaf: DetailedPeerCertificate): number {
  let first = Infinity;
  const seen = new Set<string>();
  // A root names itself as its issuer.
  for (
    let certificate: DetailedPeerCertificate | undefined = leaf;
    certificate?.valid_to !== undefined && !seen.has(certificate.fingerprint256);
    certificate = certificate.issuerCertificate
  ) {
    seen.add(certificate.fingerprint256);
    const end = Date.parse(certificate.valid_to);
    // A date that cannot be read is no reason to believe for ever.
    first = Math.min(first, Number.isNaN(end) ? -Infinity : end);
  }
  return first;
}
