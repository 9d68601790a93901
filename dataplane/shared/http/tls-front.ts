import { constants } from "node:crypto";
import type { Socket } from "node:net";
import { createServer, type Server, type TLSSocket } from "node:tls";

/** What a server shows and asks for; PEM. */
export interface TlsKeys {
  /** The server's certificate, and those of its issuers that clients may lack. */
  readonly certificate: string;
  readonly key: string;
  /** Roots: clients are asked for certificates by these authorities. Absent: they are not asked. */
  readonly clientCa: string | undefined;
}

export interface TlsFrontOptions {
  readonly keys: TlsKeys;
  /** From the connection to the end of its handshake. */
  readonly handshakeTimeoutMs: number;
  /** Handshakes at a time; further connections are closed. */
  readonly mostHandshakes: number;
  /** Hears of connections that came to nothing: no TLS, no common version, too slow, too many. */
  readonly onFailure: (error: Error) => void;
}

/** A connection whose handshake is done. */
export interface SecureConnection {
  readonly socket: TLSSocket;
  readonly isH2: boolean;
  /** False once other authorities are believed than those that its client's certificate was held against. */
  readonly isTrusted: () => boolean;
}

/** The listener behind it. */
export interface TlsFrontOwner {
  onSecure(connection: SecureConnection): void;
  /** Connections from before are no longer trusted. */
  onDistrust(): void;
}

const H2 = "h2";
const H1 = "http/1.1";

/**
 * TLS in front of a listener: versions 1.2 and 1.3; HTTP/2 and HTTP/1.1 by ALPN, HTTP/1.1 for who does not use it. A client
 * certificate is asked for and not required, and one that does not hold does not end the connection: what that means
 * is for who looks at `clientTlsOf`. Keys are changed while it runs.
 */
export class TlsFront {
  readonly #options: TlsFrontOptions;
  #owner: TlsFrontOwner | undefined;
  #keys: TlsKeys;
  /** Of these keys; others get another one, so that no session is resumed that began with earlier ones. */
  #server: Server;
  /** Counts the changes of whom client certificates are believed from. */
  #trust = 0;
  #handshakes = 0;

  /** Throws when the key is not the certificate's, or what is given is neither. */
  constructor(options: TlsFrontOptions) {
    this.#options = options;
    this.#keys = options.keys;
    this.#server = this.#serverOf(options.keys, this.#trust);
  }

  /** The listener calls it once, before the first connection. */
  attach(owner: TlsFrontOwner): void {
    this.#owner = owner;
  }

  /** New connections get these. False: they are the same. Throws as the constructor does, and then nothing has changed. */
  renew(keys: TlsKeys): boolean {
    const { certificate, key, clientCa } = this.#keys;
    if (keys.certificate === certificate && keys.key === key && keys.clientCa === clientCa) return false;
    const distrusts = keys.clientCa !== clientCa;
    const trust = distrusts ? this.#trust + 1 : this.#trust;
    this.#server = this.#serverOf(keys, trust);
    this.#keys = keys;
    this.#trust = trust;
    if (distrusts) this.#owner?.onDistrust();
    return true;
  }

  /** Shakes hands on a new connection and gives it to the owner; where that fails it is closed. */
  accept(socket: Socket): void {
    const { mostHandshakes, onFailure } = this.#options;
    if (this.#handshakes >= mostHandshakes) {
      socket.destroy();
      onFailure(new HandshakeLimitError(mostHandshakes));
      return;
    }
    this.#handshakes++;
    this.#server.emit("connection", socket);
  }

  #serverOf({ certificate, key, clientCa }: TlsKeys, trust: number): Server {
    const server = createServer({
      cert: certificate,
      key,
      ...(clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: false }),
      minVersion: "TLSv1.2",
      // Who a client is must not change within a connection.
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
      ALPNProtocols: [H2, H1],
      handshakeTimeout: this.#options.handshakeTimeoutMs,
    });
    const isTrusted = (): boolean => trust === this.#trust;
    // Each connection comes to one of the two, once.
    server.on("secureConnection", socket => {
      this.#handshakes--;
      if (isTrusted()) this.#owner?.onSecure({ socket, isH2: socket.alpnProtocol === H2, isTrusted });
      else socket.destroy();
    });
    server.on("tlsClientError", (error, socket) => {
      this.#handshakes--;
      socket.destroy();
      this.#options.onFailure(error);
    });
    return server;
  }
}

export class HandshakeLimitError extends Error {
  readonly code = "TLS_HANDSHAKE_LIMIT";
  constructor(limit: number) {
    super(`too many TLS handshakes at a time: limit ${limit}`);
  }
}
