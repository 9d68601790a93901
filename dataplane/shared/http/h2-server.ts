import { createServer, type Http2Server, type ServerHttp2Session } from "node:http2";
import type { TLSSocket } from "node:tls";
import { clientTlsOf, type ClientTls } from "./client-tls.ts";
import type { Exchange } from "./exchange.ts";
import { H2Exchange } from "./h2-exchange.ts";
import type { ListenerLimits } from "./listener.ts";

export interface H2ServerOptions {
  readonly limits: ListenerLimits;
  readonly onSession: (session: ServerHttp2Session) => void;
  readonly onExchange: (exchange: Exchange) => void;
}

/** A server of HTTP/2 that has no port of its own: connections, with TLS or without, come to it by its event `connection`. */
export function makeH2Server({ limits, onSession, onExchange }: H2ServerOptions): Http2Server {
  const server = createServer({
    settings: {
      maxConcurrentStreams: limits.maxStreamsPerConnection,
      maxHeaderListSize: limits.maxHeaderBytes,
      enablePush: false,
    },
    maxHeaderListPairs: 2_000,
  });
  const secured = new WeakMap<object, ClientTls>();
  server.on("session", session => {
    if (session.encrypted === true) secured.set(session, clientTlsOf(session.socket as TLSSocket));
    session.on("error", () => session.destroy());
    session.setTimeout(limits.keepAliveMs, () => session.close());
    onSession(session);
  });
  server.on("stream", (stream, headers, flags, rawHeaders) => {
    if (headers[":method"] === "CONNECT") {
      stream.respond({ ":status": 405 }, { endStream: true });
      return;
    }
    const { session } = stream;
    const tls = session === undefined ? undefined : secured.get(session);
    onExchange(new H2Exchange(stream, headers, flags, rawHeaders, tls));
  });
  return server;
}
