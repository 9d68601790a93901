import { Counter, Gauge, type Registry } from "prom-client";

/** Which of the files. */
export type TlsFileKind = "certificate" | "client-ca";

/** What is seen of the entrance with TLS. */
export interface TlsMetrics {
  /** The certificate that is shown ends then, milliseconds since the epoch. */
  certificateEnds(atMs: number): void;
  fileFailed(file: TlsFileKind): void;
  handshakeFailed(): void;
}

export function tlsMetrics(registry: Registry): TlsMetrics {
  const registers = [registry];
  const fileFailures = new Counter({
    name: "fairway_gateway_tls_file_failures_total",
    help: "Looks at the files of certificates that found something wrong; what was last good stays in use",
    labelNames: ["file"],
    registers,
  });
  for (const file of ["certificate", "client-ca"] satisfies TlsFileKind[]) fileFailures.inc({ file }, 0);
  const handshakeFailures = new Counter({
    name: "fairway_gateway_tls_handshake_failures_total",
    help: "Connections that came to nothing: no TLS, no common version, too slow, too many at a time",
    registers,
  });
  let end: Gauge | undefined;
  return {
    certificateEnds(atMs) {
      // Not there without a certificate: 0 would be one that has ended.
      end ??= new Gauge({
        name: "fairway_gateway_tls_certificate_expiry_timestamp_seconds",
        help: "When the certificate that is shown to clients ends",
        registers,
      });
      end.set(Math.floor(atMs / 1_000));
    },
    fileFailed: file => fileFailures.inc({ file }),
    handshakeFailed: () => handshakeFailures.inc(),
  };
}
