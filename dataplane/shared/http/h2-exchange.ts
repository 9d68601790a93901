import { constants, type IncomingHttpHeaders, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Readable } from "node:stream";
import type { ClientTls } from "./client-tls.ts";
import { plainAddress, type Exchange, type RawHeaders } from "./exchange.ts";
import { RequestBody } from "./request-body.ts";

const END_STREAM = 0x1;

/** An `Exchange` over one HTTP/2 stream. */
export class H2Exchange implements Exchange {
  readonly protocol = "h2";
  readonly upgrade = false;
  readonly method: string;
  readonly target: string;
  readonly authority: string;
  readonly rawHeaders: RawHeaders;
  readonly remoteAddress: string;
  readonly tls: ClientTls | undefined;
  readonly hasBody: boolean;
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  #ended = false;
  #gone = false;
  #trailers: RawHeaders | undefined;
  #onGone: (() => void) | undefined;
  #onFinished: (() => void) | undefined;

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    flags: number,
    rawHeaders: RawHeaders,
    tls: ClientTls | undefined,
  ) {
    this.#stream = stream;
    this.tls = tls;
    this.#headers = headers;
    this.method = text(headers[":method"]) ?? "GET";
    this.target = text(headers[":path"]) ?? "/";
    this.authority = text(headers[":authority"]) ?? headers.host ?? "";
    this.rawHeaders = withoutPseudo(rawHeaders);
    this.remoteAddress = plainAddress(stream.session?.socket.remoteAddress);
    this.hasBody = (flags & END_STREAM) === 0;
    stream.on("close", this.#onClose);
    // A reset stream says so by "close" as well; without a listener the error would end the process.
    stream.on("error", ignore);
  }

  get responded(): boolean {
    return this.#stream.headersSent;
  }

  get gone(): boolean {
    return this.#gone;
  }

  header(name: string): string | undefined {
    return text(this.#headers[name]);
  }

  body(): Readable {
    return new RequestBody(this.#stream, this.#onFirstRead);
  }

  informational(status: number, headers: RawHeaders): void {
    if (this.#closed || this.responded || status === 100 || status === 101) return;
    this.#stream.additionalHeaders({ ...toObject(headers), ":status": status });
  }

  respond(status: number, headers: RawHeaders): void {
    if (this.#closed || this.responded) return;
    const fields = toObject(headers);
    fields[":status"] = status;
    this.#stream.once("wantTrailers", this.#onWantTrailers);
    this.#stream.respond(fields, { waitForTrailers: true });
  }

  write(chunk: Uint8Array): boolean {
    return this.#closed || this.#stream.write(chunk);
  }

  onDrain(callback: () => void): void {
    if (this.#closed) return;
    this.#stream.once("drain", callback);
  }

  end(trailers?: RawHeaders): void {
    if (this.#closed) return;
    this.#ended = true;
    this.#trailers = trailers;
    this.#stream.end();
  }

  answer(status: number, headers: RawHeaders, body: string): void {
    if (this.#closed || this.responded) return;
    this.respond(status, [...headers, "content-length", String(Buffer.byteLength(body))]);
    this.#ended = true;
    this.#stream.end(this.method === "HEAD" ? undefined : body);
  }

  abort(): void {
    this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  }

  onGone(callback: (() => void) | undefined): void {
    if (this.#gone) callback?.();
    else this.#onGone = callback;
  }

  onFinished(callback: () => void): void {
    if (this.#gone || this.#stream.closed) callback();
    else this.#onFinished = callback;
  }

  takeOver(): undefined {
    return undefined;
  }

  get #closed(): boolean {
    return this.#gone || this.#stream.destroyed || this.#stream.closed;
  }

  readonly #onFirstRead = (): void => {
    const expects = this.#headers.expect?.toLowerCase() === "100-continue";
    if (expects && !this.responded && !this.#closed) this.#stream.additionalHeaders({ ":status": 100 });
  };

  readonly #onWantTrailers = (): void => {
    // Also without any: this is what ends a stream that waits for trailers.
    if (!this.#stream.destroyed && !this.#stream.closed) this.#stream.sendTrailers(toObject(this.#trailers ?? []));
  };

  readonly #onClose = (): void => {
    if (!this.#ended || this.#stream.rstCode !== constants.NGHTTP2_NO_ERROR) {
      this.#gone = true;
      const callback = this.#onGone;
      this.#onGone = undefined;
      callback?.();
    }
    const finished = this.#onFinished;
    this.#onFinished = undefined;
    finished?.();
  };
}

function text(value: string | string[] | undefined): string | undefined {
  return typeof value === "string" ? value : value?.[0];
}

function withoutPseudo(raw: RawHeaders): string[] {
  const fields: string[] = [];
  for (let i = 0; i < raw.length; i += 2) if (!raw[i]!.startsWith(":")) fields.push(raw[i]!, raw[i + 1]!);
  return fields;
}

/** Names in lower case, duplicates gathered, without what HTTP/2 forbids. */
export function toObject(headers: RawHeaders): OutgoingHttpHeaders {
  const fields: OutgoingHttpHeaders = {};
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!.toLowerCase();
    const value = headers[i + 1]!;
    const before = fields[name];
    if (before === undefined) fields[name] = value;
    else if (Array.isArray(before)) before.push(value);
    else if (!SINGLE_VALUED.has(name)) fields[name] = [String(before), value];
  }
  return fields;
}

/** Node refuses to send these twice over HTTP/2; the first one counts. */
const SINGLE_VALUED: ReadonlySet<string> = new Set([
  "access-control-allow-credentials",
  "access-control-max-age",
  "access-control-request-method",
  "age",
  "authorization",
  "content-encoding",
  "content-language",
  "content-length",
  "content-location",
  "content-md5",
  "content-range",
  "content-type",
  "date",
  "dnt",
  "etag",
  "expires",
  "from",
  "host",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "last-modified",
  "location",
  "max-forwards",
  "proxy-authorization",
  "range",
  "referer",
  "retry-after",
  "tk",
  "upgrade-insecure-requests",
  "user-agent",
  "x-content-type-options",
]);

function ignore(): void {
  // The "close" event that follows is what is acted upon.
}
