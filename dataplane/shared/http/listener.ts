import { createServer as createH1Server, ServerResponse, type IncomingMessage, type Server } from "node:http";
import type { Http2Server, ServerHttp2Session } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { clientTlsOf } from "./client-tls.ts";
import type { Exchange } from "./exchange.ts";
import { H1Exchange, type H1Extras } from "./h1-exchange.ts";
import type { TlsFront } from "./tls-front.ts";

/** Bounds of what a client may do before its request is understood. */
export interface ListenerLimits {
  /** From the first byte of a request to the end of its header fields (and, for a new connection, from its start). */
  readonly headersTimeoutMs: number;
  /** How long a connection without a request stays open. */
  readonly keepAliveMs: number;
  /** All header fields of a request together. */
  readonly maxHeaderBytes: number;
  /** Requests at a time on one HTTP/2 connection. */
  readonly maxStreamsPerConnection: number;
}

export const DEFAULT_LIMITS: ListenerLimits = {
  headersTimeoutMs: 15_000,
  keepAliveMs: 75_000,
  maxHeaderBytes: 65_536,
  maxStreamsPerConnection: 250,
};

export interface ListenerOptions {
  /** 0: any free port. */
  readonly port: number;
  readonly host?: string;
  readonly limits?: Partial<ListenerLimits>;
  /** Absent: in the clear. Serves this listener alone. */
  readonly tls?: TlsFront;
  /** Called for each request. Must answer, and must not throw. */
  readonly onExchange: (exchange: Exchange) => void;
}

/**
 * `open` -> `lastCalls` (each answer tells its client to open no further request on its connection) -> `closing` (nothing new is
 * accepted, idle connections end) -> `closed`.
 */
export interface Listener {
  readonly port: number;
  /** Requests whose answer is not complete, upgraded connections included. */
  readonly active: number;
  lastCalls(): void;
  /** Resolves when the last exchange ended and every connection is closed. Repeatable. */
  close(): Promise<void>;
  /** Ends whatever is left. */
  destroy(): void;
}

const H2_PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/**
 * A port for HTTP/1.1, upgrades, and HTTP/2. With TLS they are told apart by ALPN, without it (HTTP/2 by prior knowledge) by the
 * first bytes. Parsing is strict (llhttp, nghttp2): conflicting lengths, bad field names and obsolete folding end in 400.
 */
export async function startListener(options: ListenerOptions): Promise<Listener> {
  const limits: ListenerLimits = { ...DEFAULT_LIMITS, ...options.limits };
  const sockets = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  let stage: "open" | "lastCalls" | "closing" | "closed" = "open";
  let active = 0;
  let closing: Promise<void> | undefined;

  const isLast = (): boolean => stage !== "open";
  const plain: H1Extras = { isLast, tls: undefined };
  /** Connections with TLS that speak HTTP/1. */
  const secured = new WeakMap<Socket, { readonly extras: H1Extras; readonly isTrusted: () => boolean }>();
  const exchange = (made: Exchange): void => {
    active++;
    made.onFinished(() => active--);
    options.onExchange(made);
  };

  /** Only one transfer coding is undone here; what is left of others must not be taken for the body. */
  const hasKnownCoding = (req: IncomingMessage, res: ServerResponse): boolean => {
    const coding = req.headers["transfer-encoding"];
    if (coding === undefined || coding.toLowerCase() === "chunked") return true;
    res.shouldKeepAlive = false;
    res.writeHead(501, { "content-length": "0" }).end();
    return false;
  };

  /** Undefined, and answered, on a connection that is no longer trusted: the client may ask again on another. */
  const extrasOf = (req: IncomingMessage, res: ServerResponse): H1Extras | undefined => {
    if (options.tls === undefined) return plain;
    const connection = secured.get(req.socket);
    if (connection?.isTrusted() === true) return connection.extras;
    res.shouldKeepAlive = false;
    res.writeHead(421, { "content-length": "0" }).end();
    return undefined;
  };

  const h1: Server = createH1Server({
    headersTimeout: limits.headersTimeoutMs,
    // An upload may last as long as it makes progress; its bounds are those of the request's own timeouts.
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(1_000, limits.headersTimeoutMs),
    keepAliveTimeout: limits.keepAliveMs,
    maxHeaderSize: limits.maxHeaderBytes,
    insecureHTTPParser: false,
    requireHostHeader: true,
    noDelay: true,
    // Some clients offer h2c on each request; that is declined by answering it as an ordinary one.
    shouldUpgradeCallback: req => req.headers.upgrade?.toLowerCase() === "websocket" || !isH2c(req),
  });
  h1.maxHeadersCount = 0;
  h1.on("request", (req, res) => {
    const extras = extrasOf(req, res);
    if (extras !== undefined && hasKnownCoding(req, res)) exchange(new H1Exchange(req, res, extras));
  });
  h1.on("checkContinue", (req: IncomingMessage, res: ServerResponse) => {
    const extras = extrasOf(req, res);
    if (extras !== undefined && hasKnownCoding(req, res))
      exchange(new H1Exchange(req, res, { ...extras, expectsContinue: true }));
  });
  h1.on("connect", (_req, socket: Duplex) =>
    socket.end("HTTP/1.1 405 Method Not Allowed\r\nConnection: close\r\n\r\n"),
  );
  h1.on("upgrade", (req: IncomingMessage, socket: Socket, head: Buffer) => {
    const res = new ServerResponse(req);
    res.shouldKeepAlive = false;
    res.assignSocket(socket);
    // The server lets go of an upgraded connection: without these nobody would see it fail or end.
    socket.on("error", () => socket.destroy());
    res.on("finish", () => socket.end());
    const extras = extrasOf(req, res);
    if (extras === undefined) return;
    const made = new H1Exchange(req, res, { ...extras, upgrade: true, head });
    active++;
    socket.once("close", () => active--);
    options.onExchange(made);
  });

  const onSession = (session: ServerHttp2Session): void => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    if (stage !== "open") session.goaway();
  };
  // HTTP/2 is loaded for the first who speaks it: that takes a while, which a program that starts in a hurry has not.
  let h2: Promise<Http2Server> | undefined;
  const serveH2 = async (socket: Socket, isTrusted: () => boolean = () => true): Promise<void> => {
    h2 ??= import("./h2-server.ts").then(({ makeH2Server }) =>
      makeH2Server({ limits, onSession, onExchange: exchange }),
    );
    // Who leaves meanwhile has left; without a listener the error would end the process.
    const giveUp = (): void => void socket.destroy();
    socket.once("error", giveUp);
    const server = await h2;
    socket.off("error", giveUp);
    if (socket.destroyed) return;
    if (isTrusted()) server.emit("connection", socket);
    else socket.destroy();
  };

  // The HTTP/1 server owns the port; its own connection handler runs for what is not HTTP/2.
  const h1Connection = h1.listeners("connection") as ((socket: Socket) => void)[];
  const serveH1 = (socket: Socket): void => {
    for (const listener of h1Connection) listener.call(h1, socket);
  };
  h1.removeAllListeners("connection");
  h1.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    if (options.tls !== undefined) options.tls.accept(socket);
    else tellApart(socket, limits.headersTimeoutMs, isH2 => (isH2 ? void serveH2(socket) : serveH1(socket)));
  });
  options.tls?.attach({
    onSecure: ({ socket, isH2, isTrusted }) => {
      if (isH2) return void serveH2(socket, isTrusted);
      const extras: H1Extras = { isLast: () => isLast() || !isTrusted(), tls: clientTlsOf(socket) };
      secured.set(socket, { extras, isTrusted });
      serveH1(socket);
    },
    onDistrust: () => {
      h1.closeIdleConnections();
      for (const session of sessions) session.close();
    },
  });

  await new Promise<void>((resolve, reject) => {
    h1.once("error", reject);
    h1.listen(options.port, options.host, () => resolve());
  });

  return {
    port: (h1.address() as AddressInfo).port,
    get active() {
      return active;
    },
    lastCalls() {
      if (stage !== "open") return;
      stage = "lastCalls";
      for (const session of sessions) session.goaway();
    },
    close() {
      if (stage !== "closed") stage = "closing";
      closing ??= new Promise<void>(resolve => {
        h1.close(() => {
          stage = "closed";
          resolve();
        });
        h1.closeIdleConnections();
        for (const session of sessions) session.close();
      });
      return closing;
    },
    destroy() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

function isH2c(req: IncomingMessage): boolean {
  return (req.headers.upgrade ?? "")
    .split(",")
    .map(token => token.trim().toLowerCase())
    .every(token => token === "h2c" || token === "");
}

/** Reads as many bytes as are needed to know the protocol, and puts them back. */
function tellApart(socket: Socket, timeoutMs: number, decide: (isH2: boolean) => void): void {
  let seen: Buffer = Buffer.alloc(0);
  const giveUp = (): void => {
    socket.destroy();
  };
  const timer = setTimeout(giveUp, timeoutMs).unref();
  const done = (): void => {
    clearTimeout(timer);
    socket.off("readable", look);
    socket.off("error", giveUp);
    socket.off("end", giveUp);
    socket.off("close", done);
  };
  const look = (): void => {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) return;
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const compared = Math.min(seen.length, H2_PREFACE.length);
    const matches = seen.subarray(0, compared).equals(H2_PREFACE.subarray(0, compared));
    if (matches && compared < H2_PREFACE.length) return;
    done();
    socket.unshift(seen);
    decide(matches);
  };
  socket.on("readable", look);
  socket.once("error", giveUp);
  socket.once("end", giveUp);
  socket.once("close", done);
}
