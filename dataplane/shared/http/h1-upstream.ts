import { Client, type Dispatcher } from "undici";
import type { RawHeaders } from "./exchange.ts";
import type { ResponseReceiver, Upstream, UpstreamCall, UpstreamOptions, UpstreamRequest } from "./upstream.ts";

/**
 * HTTP/1.1 connections to one address, one request at a time on each, the last used first. A thin free list over
 * undici's clients: its own pool searches all connections for each request.
 */
export class H1Upstream implements Upstream {
  readonly #origin: string;
  readonly #options: Client.Options;
  readonly #idle: Client[] = [];
  readonly #all = new Set<Client>();
  #closed = false;

  /** @param address `host:port`, an IPv6 host in brackets */
  constructor(address: string, options: UpstreamOptions) {
    this.#origin = `http://${address}`;
    this.#options = {
      pipelining: 1,
      connect: { timeout: options.connectTimeoutMs },
      keepAliveTimeout: options.idleMs,
      keepAliveMaxTimeout: options.idleMs,
      maxHeaderSize: options.maxHeaderBytes,
      // The owner of a request has its own clocks for these.
      headersTimeout: 0,
      bodyTimeout: 0,
    };
  }

  /** Connections open or being opened. */
  get connections(): number {
    return this.#all.size;
  }

  send(request: UpstreamRequest, receiver: ResponseReceiver): UpstreamCall {
    const client = this.#idle.pop() ?? this.#open();
    const call = new Call(receiver, () => this.#release(client));
    try {
      client.dispatch(
        {
          method: request.method as Dispatcher.HttpMethod,
          path: request.target,
          headers: ["host", request.authority, ...request.headers],
          body: request.body ?? null,
          // Answers to HEAD leave the connection usable, as to any other method.
          reset: false,
        },
        call,
      );
    } catch (error) {
      call.fail(error as Error);
    }
    return call;
  }

  close(): void {
    this.#closed = true;
    for (const client of this.#idle.splice(0)) this.#drop(client);
  }

  #open(): Client {
    const client = new Client(this.#origin, this.#options);
    this.#all.add(client);
    // A connection that ended while idle leaves nothing to reuse.
    client.on("disconnect", () => {
      const at = this.#idle.indexOf(client);
      if (at < 0) return;
      this.#idle.splice(at, 1);
      this.#drop(client);
    });
    return client;
  }

  #release(client: Client): void {
    if (this.#closed || client.destroyed || client.closed) this.#drop(client);
    else this.#idle.push(client);
  }

  #drop(client: Client): void {
    this.#all.delete(client);
    client.destroy(() => undefined);
  }
}

class Call implements UpstreamCall, Dispatcher.DispatchHandler {
  readonly #receiver: ResponseReceiver;
  readonly #release: () => void;
  #controller: Dispatcher.DispatchController | undefined;
  #aborted: Error | undefined;
  #over = false;

  constructor(receiver: ResponseReceiver, release: () => void) {
    this.#receiver = receiver;
    this.#release = release;
  }

  resume(): void {
    this.#controller?.resume();
  }

  abort(reason: Error): void {
    if (this.#over || this.#aborted !== undefined) return;
    this.#aborted = reason;
    // Without a controller the request still waits for its connection; it is ended before it is written.
    this.#controller?.abort(reason);
  }

  fail(error: Error): void {
    if (this.#over) return;
    this.#over = true;
    this.#release();
    this.#receiver.onError(this.#aborted ?? error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#aborted !== undefined) controller.abort(this.#aborted);
    else this.#receiver.onSending();
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    const headers = decode(controller.rawHeaders);
    if (status < 200) this.#receiver.onInformational(status, headers);
    else this.#receiver.onResponse(status, headers);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#receiver.onData(chunk)) controller.pause();
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    if (this.#over) return;
    this.#over = true;
    this.#release();
    this.#receiver.onEnd(decode(controller.rawTrailers));
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.fail(error);
  }
}

/** Undici's connections give fields as bytes; header fields are Latin-1. */
function decode(raw: Dispatcher.DispatchController["rawHeaders"]): RawHeaders {
  if (!Array.isArray(raw)) return [];
  const text = new Array<string>(raw.length);
  for (let i = 0; i < raw.length; i++) {
    const item = raw[i]!;
    text[i] = typeof item === "string" ? item : item.toString("latin1");
  }
  return text;
}
