import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import type { ClientTls } from "./client-tls.ts";

/** Names and values alternately, duplicates kept. */
export type RawHeaders = readonly string[];

/**
 * One request and its answer, whichever HTTP version it came by. The server makes it; one owner at a time uses it.
 * Nothing here throws because the client is gone: what is written then goes nowhere, and `onGone` tells.
 */
export interface Exchange {
  readonly protocol: "h1" | "h2";
  readonly method: string;
  /** Path and query as received, beginning with `/` (or `*`). */
  readonly target: string;
  /** Host the client asked for, as received, with its port if any. Empty when it named none (HTTP/1.0). */
  readonly authority: string;
  /** As received, without pseudo headers. */
  readonly rawHeaders: RawHeaders;
  /** Address of the peer without an IPv4-in-IPv6 prefix. */
  readonly remoteAddress: string;
  /** Absent: it came in the clear. */
  readonly tls: ClientTls | undefined;
  /** False when the message says that it has no body. */
  readonly hasBody: boolean;
  /** The client wants to leave HTTP (`Upgrade: websocket`); then `takeOver` is there. */
  readonly upgrade: boolean;
  /** True once `respond` was called. */
  readonly responded: boolean;
  /** The client left before its answer was complete. */
  readonly gone: boolean;

  /** First value of a field, `name` in lower case. */
  header(name: string): string | undefined;

  /**
   * The request's body. Reading begins (and `100 Continue` is sent to who waits for it) with the first read, so a body that was
   * never read can be asked for again. Destroying it does not end the client's connection.
   */
  body(): Readable;

  /** A 1xx answer. Dropped where the protocol or the client does not take it. */
  informational(status: number, headers: RawHeaders): void;
  /** Status and fields, once. The caller has removed the hop-by-hop ones. */
  respond(status: number, headers: RawHeaders): void;
  /** False: wait for `onDrain`. */
  write(chunk: Uint8Array): boolean;
  /** Calls once, when writing may go on. */
  onDrain(callback: () => void): void;
  end(trailers?: RawHeaders): void;
  /** A whole answer. */
  answer(status: number, headers: RawHeaders, body: string): void;
  /** Cuts the answer off so that the client sees that it is incomplete. */
  abort(): void;
  /** Calls once, when the client leaves before the answer is complete; at once if it has left. Replaces an earlier one. */
  onGone(callback: (() => void) | undefined): void;
  /** Calls once, when all of the answer was handed to the operating system or the client is gone. */
  onFinished(callback: () => void): void;

  /** The bare connection, with bytes that were read beyond the request. Only for `upgrade`, at most once. */
  takeOver(): { readonly socket: Socket; readonly head: Buffer } | undefined;
}

/** `::ffff:10.0.0.1` is `10.0.0.1`. */
export function plainAddress(address: string | undefined): string {
  if (address === undefined) return "";
  return address.startsWith("::ffff:") ? address.slice(7) : address;
}
