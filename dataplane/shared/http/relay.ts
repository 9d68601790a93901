import type { Clock, Timer } from "../clock.ts";
import type { Exchange, RawHeaders } from "./exchange.ts";
import { endToEndHeaders } from "./hop-by-hop.ts";
import { RequestBodyError } from "./request-body.ts";
import type { ResponseReceiver, Upstream, UpstreamCall } from "./upstream.ts";

/** Clocks of a request, from when it goes to the upstream. 0: none. */
export interface RelayTimeouts {
  /** Until the answer is complete. */
  readonly wholeMs: number;
  /** Until the answer begins. */
  readonly responseStartMs: number;
  /** Between two parts of the answer. */
  readonly idleMs: number;
}

export const NO_TIMEOUTS: RelayTimeouts = { wholeMs: 0, responseStartMs: 0, idleMs: 0 };

export interface RelayOptions {
  readonly clock: Clock;
  readonly timeouts: RelayTimeouts;
  /**
   * What becomes of an answer that has begun when a timeout comes: cut off visibly, or ended as if complete. One that
   * said its length cannot be ended before it.
   */
  readonly whenLate: "abort" | "end";
  /** Fields (lower case) of the answer that are kept from the client. */
  readonly dropResponseHeaders?: ReadonlySet<string>;
  /** Fields added to the answer. */
  readonly addResponseHeaders?: RawHeaders;
}

/** The request as it goes on; the body is the exchange's. */
export interface RelayedRequest {
  readonly authority: string;
  readonly headers: RawHeaders;
}

/** The upstream failed. `sent` false: nothing of the request left this process, so it may go elsewhere. */
export class UpstreamError extends Error {
  readonly code = "UPSTREAM_FAILED";
  readonly sent: boolean;
  constructor(sent: boolean, cause: Error) {
    super(`${sent ? "the upstream failed" : "no connection to the upstream"}: ${cause.message}`, { cause });
    this.name = "UpstreamError";
    this.sent = sent;
  }
}

export type TimeoutKind = "whole" | "responseStart" | "idle";

/** The upstream took too long. */
export class UpstreamTimeoutError extends Error {
  readonly code = "UPSTREAM_TIMEOUT";
  readonly kind: TimeoutKind;
  readonly limitMs: number;
  constructor(kind: TimeoutKind, limitMs: number) {
    super(`${kind} timeout: no ${kind === "responseStart" ? "response" : "complete response"} after ${limitMs} ms`);
    this.name = "UpstreamTimeoutError";
    this.kind = kind;
    this.limitMs = limitMs;
  }
}

/** The client left before its answer was complete. */
export class ClientGoneError extends Error {
  readonly code = "CLIENT_GONE";
  constructor() {
    super("the client left");
    this.name = "ClientGoneError";
  }
}

/** How a relayed request ended, when its answer reached the client whole. */
export interface RelayResult {
  readonly status: number;
  readonly responseBytes: number;
  /** From sending to the first part of the answer. */
  readonly responseStartMs: number;
}

/**
 * Sends an exchange's request to an upstream and its answer back, streaming both ways with back-pressure. Rejects with
 * `UpstreamError`, `UpstreamTimeoutError` or `ClientGoneError`; where `exchange.responded` is still false the
 * caller may answer (or, for `sent` false, try another upstream), else the answer has been cut off.
 */
export function relay(
  exchange: Exchange,
  upstream: Upstream,
  request: RelayedRequest,
  options: RelayOptions,
): Promise<RelayResult> {
  return new Promise((resolve, reject) => {
    new Relay(exchange, options, resolve, reject).start(upstream, request);
  });
}

class Relay implements ResponseReceiver {
  readonly #exchange: Exchange;
  readonly #options: RelayOptions;
  readonly #resolve: (result: RelayResult) => void;
  readonly #reject: (error: Error) => void;
  #call: UpstreamCall | undefined;
  #timer: Timer | undefined;
  #sent = false;
  #over = false;
  #status = 0;
  #sized = false;
  #bytes = 0;
  #sentMs = 0;
  #startedMs = 0;
  /** Last sign of life of the answer. */
  #activeMs = 0;

  constructor(
    exchange: Exchange,
    options: RelayOptions,
    resolve: (result: RelayResult) => void,
    reject: (error: Error) => void,
  ) {
    this.#exchange = exchange;
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  start(upstream: Upstream, request: RelayedRequest): void {
    const exchange = this.#exchange;
    if (exchange.gone) return this.#fail(new ClientGoneError());
    exchange.onGone(() => this.#abort(new ClientGoneError()));
    this.#call = upstream.send(
      {
        method: exchange.method,
        target: exchange.target,
        authority: request.authority,
        headers: request.headers,
        ...(exchange.hasBody ? { body: exchange.body() } : undefined),
      },
      this,
    );
  }

  onSending(): void {
    this.#sent = true;
    this.#sentMs = this.#activeMs = this.#options.clock.nowMs();
    this.#arm();
  }

  onInformational(status: number, headers: RawHeaders): void {
    this.#exchange.informational(status, endToEndHeaders(headers));
  }

  onResponse(status: number, headers: RawHeaders): void {
    this.#status = status;
    this.#startedMs = this.#activeMs = this.#options.clock.nowMs();
    const { dropResponseHeaders, addResponseHeaders } = this.#options;
    const kept = endToEndHeaders(headers, dropResponseHeaders);
    if (addResponseHeaders !== undefined) kept.push(...addResponseHeaders);
    this.#sized = kept.some((name, i) => i % 2 === 0 && name.toLowerCase() === "content-length");
    this.#exchange.respond(status, kept);
  }

  onData(chunk: Buffer): boolean {
    this.#bytes += chunk.length;
    if (this.#options.timeouts.idleMs > 0) this.#activeMs = this.#options.clock.nowMs();
    if (this.#exchange.write(chunk)) return true;
    this.#exchange.onDrain(this.#resume);
    return false;
  }

  onEnd(trailers: RawHeaders): void {
    if (this.#over) return;
    this.#settle();
    this.#exchange.end(trailers);
    this.#resolve({
      status: this.#status,
      responseBytes: this.#bytes,
      responseStartMs: this.#startedMs - this.#sentMs,
    });
  }

  onError(error: Error): void {
    if (this.#over) return;
    // A body that broke off is the client's doing, whoever noticed it first.
    if (error instanceof ClientGoneError || error instanceof UpstreamTimeoutError) this.#fail(error);
    else if (error instanceof RequestBodyError || this.#exchange.gone) this.#fail(new ClientGoneError());
    else this.#fail(new UpstreamError(this.#sent, error));
  }

  readonly #resume = (): void => {
    this.#call?.resume();
  };

  #abort(reason: Error): void {
    if (this.#over) return;
    this.#call?.abort(reason);
    this.#fail(reason);
  }

  #fail(error: Error): void {
    this.#settle();
    const late = error instanceof UpstreamTimeoutError && this.#options.whenLate === "end" && !this.#sized;
    if (this.#exchange.responded && !this.#exchange.gone) {
      if (late) this.#exchange.end();
      else this.#exchange.abort();
    }
    this.#reject(error);
  }

  #settle(): void {
    this.#over = true;
    if (this.#timer !== undefined) this.#options.clock.cancel(this.#timer);
    this.#exchange.onGone(undefined);
  }

  /** One timer for the next of the clocks; it looks again when it fires, so that traffic costs no timer. */
  #arm(): void {
    const next = this.#nextTimeout();
    if (next === undefined) return;
    const { clock } = this.#options;
    this.#timer = clock.after(next.dueMs - clock.nowMs(), this.#look);
  }

  readonly #look = (): void => {
    if (this.#over) return;
    const next = this.#nextTimeout();
    if (next === undefined) return;
    if (next.dueMs > this.#options.clock.nowMs()) this.#arm();
    else this.#abort(new UpstreamTimeoutError(next.kind, next.limitMs));
  };

  #nextTimeout(): { readonly kind: TimeoutKind; readonly dueMs: number; readonly limitMs: number } | undefined {
    const { wholeMs, responseStartMs, idleMs } = this.#options.timeouts;
    let kind: TimeoutKind | undefined;
    let dueMs = Infinity;
    let limitMs = 0;
    if (wholeMs > 0) [kind, dueMs, limitMs] = ["whole", this.#sentMs + wholeMs, wholeMs];
    if (responseStartMs > 0 && this.#status === 0 && this.#sentMs + responseStartMs < dueMs)
      [kind, dueMs, limitMs] = ["responseStart", this.#sentMs + responseStartMs, responseStartMs];
    if (idleMs > 0 && this.#activeMs + idleMs < dueMs)
      [kind, dueMs, limitMs] = ["idle", this.#activeMs + idleMs, idleMs];
    return kind === undefined ? undefined : { kind, dueMs, limitMs };
  }
}
