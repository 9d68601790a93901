import type { Readable } from "node:stream";
import type { RawHeaders } from "./exchange.ts";

/** A request as it goes to an upstream: hop-by-hop fields removed, `Host` not among the fields. */
export interface UpstreamRequest {
  readonly method: string;
  readonly target: string;
  readonly authority: string;
  readonly headers: RawHeaders;
  /** Absent: the request has no body. The upstream destroys it when it needs no more of it. */
  readonly body?: Readable;
}

/** What an upstream tells about one request, in this order; after `onEnd` or `onError` nothing more. Must not throw. */
export interface ResponseReceiver {
  /** From here on bytes may be on their way: before it the request was provably not sent. */
  onSending(): void;
  onInformational(status: number, headers: RawHeaders): void;
  onResponse(status: number, headers: RawHeaders): void;
  /** False: no more until `resume` of the call. */
  onData(chunk: Buffer): boolean;
  onEnd(trailers: RawHeaders): void;
  onError(error: Error): void;
}

/** A request under way. */
export interface UpstreamCall {
  resume(): void;
  /** Cancels the request at the upstream; `onError` follows with `reason` unless the call is over. */
  abort(reason: Error): void;
}

/** Connections to one address. Never retries by itself. */
export interface Upstream {
  send(request: UpstreamRequest, receiver: ResponseReceiver): UpstreamCall;
  /** Ends idle connections; those in use end with their requests. Repeatable. */
  close(): void;
}

export interface UpstreamOptions {
  readonly connectTimeoutMs: number;
  /** How long an idle connection is kept; shorter than the other side keeps it, so that none is used as it closes. */
  readonly idleMs: number;
  readonly maxHeaderBytes: number;
}

export const DEFAULT_UPSTREAM: UpstreamOptions = { connectTimeoutMs: 1_500, idleMs: 30_000, maxHeaderBytes: 65_536 };

/** A connection could not be made in time. */
export class ConnectTimeoutError extends Error {
  readonly code = "CONNECT_TIMEOUT";
  constructor(address: string, timeoutMs: number) {
    super(`no connection to ${address} within ${timeoutMs} ms`);
    this.name = "ConnectTimeoutError";
  }
}
