import { request as httpRequest, type ClientRequest, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import type { Clock } from "../clock.ts";
import type { Exchange, RawHeaders } from "./exchange.ts";
import { endToEndHeaders } from "./hop-by-hop.ts";
import { ClientGoneError, type RelayedRequest, UpstreamError, UpstreamTimeoutError } from "./relay.ts";

export interface TunnelOptions {
  readonly clock: Clock;
  readonly host: string;
  readonly port: number;
  readonly connectTimeoutMs: number;
  /** From the connection to the answer's status; 0 is no limit. An upgraded connection has no limit. */
  readonly responseStartMs: number;
  /** Called when both sides have agreed to leave HTTP. */
  readonly onUpgraded?: () => void;
  /** Fields (lower case) of the answer that are kept from the client. */
  readonly dropResponseHeaders?: ReadonlySet<string>;
  /** Fields added to the answer. */
  readonly addResponseHeaders?: RawHeaders;
}

const MOST_LISTENERS = 20;

/** How a request to leave HTTP ended. */
export interface TunnelResult {
  /** 101 when the upstream agreed, else what it answered instead. */
  readonly status: number;
  /** Of the tunnel or the body, towards the client. */
  readonly responseBytes: number;
}

/**
 * Passes on a request to leave HTTP (`exchange.upgrade`) and, when the upstream agrees, every byte after that, both ways
 * until both sides have ended. Another answer is relayed as it is. Rejects as `relay` does, and never after an upgrade: however such a
 * connection ends, it has ended.
 */
export function tunnel(exchange: Exchange, request: RelayedRequest, options: TunnelOptions): Promise<TunnelResult> {
  const { promise, resolve, reject } = Promise.withResolvers<TunnelResult>();
  const { clock } = options;
  let connected = false;
  let over = false;
  const upgrade = exchange.header("upgrade") ?? "";
  const sent: ClientRequest = httpRequest({
    host: options.host,
    port: options.port,
    method: exchange.method,
    path: exchange.target,
    headers: ["host", request.authority, "connection", "upgrade", "upgrade", upgrade, ...request.headers],
    setHost: false,
    agent: false,
  });
  let timer = clock.after(options.connectTimeoutMs, () =>
    fail(new UpstreamError(false, new Error(`no connection within ${options.connectTimeoutMs} ms`))),
  );
  const settle = (): boolean => {
    if (over) return false;
    over = true;
    clock.cancel(timer);
    exchange.onGone(undefined);
    return true;
  };
  const fail = (error: Error): void => {
    if (!settle()) return;
    sent.destroy();
    reject(error);
  };
  exchange.onGone(() => fail(new ClientGoneError()));
  sent.on("error", error => fail(new UpstreamError(connected, error)));
  sent.on("socket", socket =>
    socket.once("connect", () => {
      connected = true;
      clock.cancel(timer);
      const { responseStartMs } = options;
      if (responseStartMs > 0 && !over)
        timer = clock.after(responseStartMs, () => fail(new UpstreamTimeoutError("responseStart", responseStartMs)));
    }),
  );
  sent.on("response", (response: IncomingMessage) => {
    if (!settle()) return;
    answerInstead(exchange, response, options).then(resolve, reject);
  });
  sent.on("upgrade", (response: IncomingMessage, upstream: Socket, head: Buffer) => {
    if (!settle()) return upstream.destroy();
    const client = exchange.takeOver();
    if (client === undefined) {
      upstream.destroy();
      return reject(new ClientGoneError());
    }
    client.socket.write(switchingProtocols(response, options));
    client.socket.write(head);
    upstream.write(client.head);
    const before = client.socket.bytesWritten;
    options.onUpgraded?.();
    // With TLS its own and those of two pipelines are more than Node takes for no leak.
    client.socket.setMaxListeners(MOST_LISTENERS);
    // An end by error is an end: neither side can be told more than that.
    void Promise.allSettled([pipeline(client.socket, upstream), pipeline(upstream, client.socket)]).then(() =>
      resolve({ status: 101, responseBytes: client.socket.bytesWritten - before }),
    );
  });
  sent.end();
  return promise;
}

function answerInstead(
  exchange: Exchange,
  response: IncomingMessage,
  { dropResponseHeaders, addResponseHeaders = [] }: TunnelOptions,
): Promise<TunnelResult> {
  const { promise, resolve, reject } = Promise.withResolvers<TunnelResult>();
  const status = response.statusCode ?? 502;
  let responseBytes = 0;
  exchange.onGone(() => response.destroy(new ClientGoneError()));
  exchange.respond(status, [...endToEndHeaders(response.rawHeaders, dropResponseHeaders), ...addResponseHeaders]);
  response.on("data", (chunk: Buffer) => {
    responseBytes += chunk.length;
    if (exchange.write(chunk)) return;
    response.pause();
    exchange.onDrain(() => response.resume());
  });
  response.on("end", () => {
    exchange.onGone(undefined);
    exchange.end();
    resolve({ status, responseBytes });
  });
  response.on("error", error => {
    exchange.onGone(undefined);
    if (error instanceof ClientGoneError) return reject(error);
    exchange.abort();
    reject(new UpstreamError(true, error));
  });
  return promise;
}

function switchingProtocols(
  { rawHeaders, statusMessage = "Switching Protocols" }: IncomingMessage,
  { dropResponseHeaders, addResponseHeaders = [] }: TunnelOptions,
): string {
  const lines = [`HTTP/1.1 101 ${statusMessage}`];
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (dropResponseHeaders?.has(rawHeaders[i]!.toLowerCase()) !== true)
      lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  for (let i = 0; i < addResponseHeaders.length; i += 2)
    lines.push(`${addResponseHeaders[i]}: ${addResponseHeaders[i + 1]}`);
  return `${lines.join("\r\n")}\r\n\r\n`;
}
