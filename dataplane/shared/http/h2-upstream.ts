import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import type { RawHeaders } from "./exchange.ts";
import { toObject } from "./h2-exchange.ts";
import {
  ConnectTimeoutError,
  type ResponseReceiver,
  type Upstream,
  type UpstreamCall,
  type UpstreamOptions,
  type UpstreamRequest,
} from "./upstream.ts";

/** HTTP/2 without TLS to one address: streams share a connection until its limit, then another one is opened. */
export class H2Upstream implements Upstream {
  readonly #address: string;
  readonly #options: UpstreamOptions;
  readonly #sessions: Session[] = [];
  #closed = false;

  /** @param address `host:port`, an IPv6 host in brackets */
  constructor(address: string, options: UpstreamOptions) {
    this.#address = address;
    this.#options = options;
  }

  /** Connections open or being opened. */
  get connections(): number {
    return this.#sessions.length;
  }

  send(request: UpstreamRequest, receiver: ResponseReceiver): UpstreamCall {
    const session = this.#sessions.find(candidate => candidate.hasRoom) ?? this.#open();
    return new Call(session, request, receiver);
  }

  close(): void {
    this.#closed = true;
    for (const session of [...this.#sessions]) session.retire();
  }

  #open(): Session {
    const session = new Session(this.#address, this.#options, () => {
      const at = this.#sessions.indexOf(session);
      if (at >= 0) this.#sessions.splice(at, 1);
    });
    if (this.#closed) session.retire();
    else this.#sessions.push(session);
    return session;
  }
}

/** Streams that a server allows before it has said how many. */
const STREAMS_AT_FIRST = 100;

class Session {
  readonly http2: ClientHttp2Session;
  readonly #onGone: () => void;
  readonly #waiting = new Set<(error: Error | undefined) => void>();
  #state: "connecting" | "open" | "retired" = "connecting";
  streams = 0;

  constructor(address: string, options: UpstreamOptions, onGone: () => void) {
    this.#onGone = onGone;
    this.http2 = connect(`http://${address}`, { settings: { enablePush: false }, maxHeaderListPairs: 2_000 });
    const timer = setTimeout(
      () => this.http2.destroy(new ConnectTimeoutError(address, options.connectTimeoutMs)),
      options.connectTimeoutMs,
    ).unref();
    this.http2.once("connect", () => {
      clearTimeout(timer);
      if (this.#state === "connecting") this.#state = "open";
      this.#tell(undefined);
    });
    this.http2.on("error", (error: Error) => {
      this.retire();
      this.#tell(error);
    });
    this.http2.on("goaway", () => this.retire());
    this.http2.once("close", () => {
      clearTimeout(timer);
      this.retire();
      this.#tell(new Error(`connection to ${address} closed`));
    });
    this.http2.setTimeout(options.idleMs, () => {
      if (this.streams === 0) this.retire();
    });
  }

  get hasRoom(): boolean {
    if (this.#state === "retired") return false;
    const limit = this.http2.remoteSettings?.maxConcurrentStreams ?? STREAMS_AT_FIRST;
    return this.streams < (this.#state === "connecting" ? Math.min(limit, STREAMS_AT_FIRST) : limit);
  }

  /** Calls at once when connected, else when that is settled. */
  whenConnected(callback: (error: Error | undefined) => void): void {
    if (this.http2.destroyed) callback(new Error("connection closed"));
    else if (this.http2.connecting) this.#waiting.add(callback);
    else callback(undefined);
  }

  /** Takes no new streams; the connection ends with the last of its own. */
  retire(): void {
    if (this.#state !== "retired") {
      this.#state = "retired";
      this.#onGone();
    }
    if (!this.http2.closed && !this.http2.destroyed && !this.http2.connecting) this.http2.close();
  }

  #tell(error: Error | undefined): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const callback of waiting) callback(error);
    if (this.#state === "retired" && !this.http2.closed && !this.http2.destroyed) this.http2.close();
  }
}

class Call implements UpstreamCall {
  readonly #session: Session;
  readonly #request: UpstreamRequest;
  readonly #receiver: ResponseReceiver;
  #stream: ClientHttp2Stream | undefined;
  #trailers: RawHeaders = [];
  #aborted: Error | undefined;
  #responded = false;
  #over = false;

  constructor(session: Session, request: UpstreamRequest, receiver: ResponseReceiver) {
    this.#session = session;
    this.#request = request;
    this.#receiver = receiver;
    session.streams++;
    // Never before the caller has this object.
    queueMicrotask(() => session.whenConnected(error => this.#start(error)));
  }

  resume(): void {
    this.#stream?.resume();
  }

  abort(reason: Error): void {
    if (this.#over || this.#aborted !== undefined) return;
    this.#aborted = reason;
    if (this.#stream === undefined) this.#fail(reason);
    else this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  #start(error: Error | undefined): void {
    if (this.#over) return;
    if (error !== undefined) return this.#fail(error);
    const { body } = this.#request;
    try {
      this.#receiver.onSending();
      this.#stream = this.#session.http2.request(
        {
          ...toObject(this.#request.headers),
          ":method": this.#request.method,
          ":path": this.#request.target,
          ":authority": this.#request.authority,
          ":scheme": "http",
        },
        { endStream: body === undefined },
      );
    } catch (thrown) {
      return this.#fail(thrown as Error);
    }
    const stream = this.#stream;
    stream.on("headers", (headers, _flags, raw) => {
      const status = headers[":status"];
      if (typeof status === "number") this.#receiver.onInformational(status, fields(raw));
    });
    stream.on("response", (headers, _flags, raw) => {
      this.#responded = true;
      this.#receiver.onResponse(headers[":status"] ?? 502, fields(raw));
    });
    stream.on("trailers", (_trailers: unknown, _flags: number, raw: string[]) => (this.#trailers = fields(raw)));
    stream.on("data", (chunk: Buffer) => {
      if (!this.#receiver.onData(chunk)) stream.pause();
    });
    stream.on("error", (failure: Error) => this.#fail(failure));
    stream.on("end", () => {
      if (this.#responded && stream.rstCode === constants.NGHTTP2_NO_ERROR && !stream.aborted) this.#finish();
    });
    stream.on("close", () => {
      if (this.#over) return;
      this.#fail(new Error(`stream closed with HTTP/2 code ${stream.rstCode}`));
    });
    if (body !== undefined) {
      body.on("error", failure => this.abort(failure));
      body.pipe(stream);
    }
  }

  #finish(): void {
    if (this.#over) return;
    this.#over = true;
    this.#session.streams--;
    this.#request.body?.destroy();
    // The answer is complete though the request may not be: the rest of it is not wanted.
    if (this.#stream?.writableFinished === false) this.#stream.close(constants.NGHTTP2_NO_ERROR);
    this.#receiver.onEnd(this.#trailers);
  }

  #fail(error: Error): void {
    if (this.#over) return;
    this.#over = true;
    this.#session.streams--;
    this.#request.body?.destroy();
    this.#receiver.onError(this.#aborted ?? error);
  }
}

function fields(raw: readonly string[] | undefined): RawHeaders {
  if (raw === undefined) return [];
  const kept: string[] = [];
  for (let i = 0; i < raw.length; i += 2) if (!raw[i]!.startsWith(":")) kept.push(raw[i]!, raw[i + 1]!);
  return kept;
}
