import { Agent, type ClientRequest, type IncomingMessage, request as httpRequest } from "node:http";
import type { Socket } from "node:net";
import type { RawHeaders } from "../shared/http/exchange.ts";
import type {
  ResponseReceiver,
  Upstream,
  UpstreamCall,
  UpstreamOptions,
  UpstreamRequest,
} from "../shared/http/upstream.ts";

/** Methods to which Node gives a body of unknown length unless told otherwise. */
const BODY_EXPECTED: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"]);

/**
 * HTTP/1.1 connections to the app by Node's own client. It is slower per request than `H1Upstream`, and there as soon as
 * the server is: nothing more is loaded or compiled before the first request of a cold start.
 */
export class HttpUpstream implements Upstream {
  readonly #host: string;
  readonly #port: number;
  readonly #options: UpstreamOptions;
  readonly #agent: Agent;

  constructor(host: string, port: number, options: UpstreamOptions) {
    this.#host = host;
    this.#port = port;
    this.#options = options;
    // The time is that of idle connections; one in use only hears of it.
    this.#agent = new Agent({ keepAlive: true, scheduling: "lifo", timeout: options.idleMs });
  }

  send(request: UpstreamRequest, receiver: ResponseReceiver): UpstreamCall {
    const call = new Call(request, receiver);
    try {
      call.start(
        httpRequest({
          host: this.#host,
          port: this.#port,
          agent: this.#agent,
          method: request.method,
          path: request.target,
          headers: framed(request),
          setHost: false,
          maxHeaderSize: this.#options.maxHeaderBytes,
        }),
        this.#options.connectTimeoutMs,
      );
    } catch (error) {
      // Never before the caller has the call.
      queueMicrotask(() => call.fail(error as Error));
    }
    return call;
  }

  close(): void {
    // Those in use end by themselves soon after their requests.
    for (const sockets of Object.values(this.#agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }
}

/** The fields with those that say where the body ends: the incoming message's way of saying it was its connection's own. */
function framed({ authority, headers, body, method }: UpstreamRequest): string[] {
  const all = ["host", authority, ...headers];
  const sized = headers.some((name, i) => i % 2 === 0 && name.toLowerCase() === "content-length");
  if (sized) return all;
  if (body !== undefined) all.push("transfer-encoding", "chunked");
  else if (BODY_EXPECTED.has(method)) all.push("content-length", "0");
  return all;
}

class Call implements UpstreamCall {
  readonly #request: UpstreamRequest;
  readonly #receiver: ResponseReceiver;
  #sent: ClientRequest | undefined;
  #response: IncomingMessage | undefined;
  #connectTimer: NodeJS.Timeout | undefined;
  #over = false;

  constructor(request: UpstreamRequest, receiver: ResponseReceiver) {
    this.#request = request;
    this.#receiver = receiver;
  }

  start(sent: ClientRequest, connectTimeoutMs: number): void {
    this.#sent = sent;
    sent.on("error", error => this.fail(error));
    sent.on("socket", socket => this.#onSocket(socket, connectTimeoutMs));
    sent.on("information", info => this.#receiver.onInformational(info.statusCode, info.rawHeaders));
    sent.on("response", response => this.#onResponse(response));
    const { body } = this.#request;
    if (body === undefined) sent.end();
    else body.on("error", error => this.abort(error));
  }

  resume(): void {
    this.#response?.resume();
  }

  abort(reason: Error): void {
    if (this.#over) return;
    this.fail(reason);
    this.#sent?.destroy();
  }

  fail(error: Error): void {
    if (this.#over) return;
    this.#settle();
    this.#receiver.onError(error);
  }

  #onSocket(socket: Socket, connectTimeoutMs: number): void {
    if (this.#over) return;
    if (!socket.connecting) return this.#onConnected();
    this.#connectTimer = setTimeout(
      () => this.abort(new Error(`no connection within ${connectTimeoutMs} ms`)),
      connectTimeoutMs,
    ).unref();
    socket.once("connect", () => {
      clearTimeout(this.#connectTimer);
      if (!this.#over) this.#onConnected();
    });
  }

  /** The body is not touched before this, so that it is still there for another attempt when no connection is made. */
  #onConnected(): void {
    this.#receiver.onSending();
    if (this.#request.body === undefined || this.#sent === undefined) return;
    this.#sent.flushHeaders();
    this.#request.body.pipe(this.#sent);
  }

  #onResponse(response: IncomingMessage): void {
    if (this.#over) {
      response.destroy();
      return;
    }
    this.#response = response;
    this.#receiver.onResponse(response.statusCode ?? 502, response.rawHeaders);
    response.on("data", (chunk: Buffer) => {
      if (!this.#over && !this.#receiver.onData(chunk)) response.pause();
    });
    response.on("end", () => this.#finish(response.rawTrailers));
    response.on("error", error => this.fail(error));
  }

  #finish(trailers: RawHeaders): void {
    if (this.#over) return;
    this.#settle();
    // The answer is complete though the request may not be: the rest of it is not wanted, nor can its connection be used.
    if (this.#sent?.writableFinished === false) this.#sent.destroy();
    this.#receiver.onEnd(trailers);
  }

  #settle(): void {
    this.#over = true;
    clearTimeout(this.#connectTimer);
    this.#request.body?.destroy();
  }
}
