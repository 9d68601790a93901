import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import type { ClientTls } from "./client-tls.ts";
import { plainAddress, type Exchange, type RawHeaders } from "./exchange.ts";
import { RequestBody } from "./request-body.ts";

export interface H1Extras {
  /** True when no further request should come on this connection; asked when the answer begins. */
  readonly isLast: () => boolean;
  readonly tls: ClientTls | undefined;
  readonly upgrade?: boolean;
  readonly head?: Buffer;
  /** The client waits for `100 Continue` before it sends the body. */
  readonly expectsContinue?: boolean;
}

/** An `Exchange` over HTTP/1.x. */
export class H1Exchange implements Exchange {
  readonly protocol = "h1";
  readonly upgrade: boolean;
  readonly hasBody: boolean;
  readonly target: string;
  readonly authority: string;
  readonly remoteAddress: string;
  readonly tls: ClientTls | undefined;
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #extras: H1Extras;
  #gone = false;
  #onGone: (() => void) | undefined;
  #onFinished: (() => void) | undefined;
  #tookOver = false;
  #continued = false;

  constructor(req: IncomingMessage, res: ServerResponse, extras: H1Extras) {
    this.#req = req;
    this.#res = res;
    this.#extras = extras;
    this.tls = extras.tls;
    this.upgrade = extras.upgrade === true;
    const { headers } = req;
    const length = headers["content-length"];
    this.hasBody = (length !== undefined && Number(length) !== 0) || headers["transfer-encoding"] !== undefined;
    const url = req.url ?? "/";
    if (url.startsWith("/") || url === "*") {
      this.target = url;
      this.authority = headers.host ?? "";
    } else {
      // The absolute form: its authority goes before the Host field (RFC 9112 section 3.2.2).
      const rest = url.slice(url.indexOf("://") + 3);
      const slash = rest.search(/[/?]/);
      this.authority = slash < 0 ? rest : rest.slice(0, slash);
      const path = slash < 0 ? "/" : rest.slice(slash);
      this.target = path.startsWith("/") ? path : `/${path}`;
    }
    this.remoteAddress = plainAddress(req.socket.remoteAddress);
    res.on("close", this.#onClose);
    // A request that fails says so by "close" as well; without a listener the error would end the process.
    req.on("error", ignore);
    res.on("error", ignore);
    if (this.upgrade) {
      req.socket.on("readable", this.#watch);
      req.socket.once("end", this.#onEarlyEnd);
    }
  }

  get method(): string {
    return this.#req.method ?? "GET";
  }

  get rawHeaders(): RawHeaders {
    return this.#req.rawHeaders;
  }

  get responded(): boolean {
    return this.#res.headersSent || this.#tookOver;
  }

  get gone(): boolean {
    return this.#gone;
  }

  header(name: string): string | undefined {
    const value = this.#req.headers[name];
    return typeof value === "string" ? value : value?.[0];
  }

  body(): Readable {
    return new RequestBody(this.#req, this.#onFirstRead);
  }

  informational(status: number, headers: RawHeaders): void {
    const old = this.#req.httpVersionMajor === 1 && this.#req.httpVersionMinor === 0;
    if (old || this.responded || this.#gone || status === 100 || status === 101) return;
    let head = `HTTP/1.1 ${status} ${status === 103 ? "Early Hints" : "Informational"}\r\n`;
    for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
    this.#req.socket.write(`${head}\r\n`, "latin1");
  }

  respond(status: number, headers: RawHeaders): void {
    if (this.responded || this.#gone) return;
    // Whether a client that was never told to continue sends its body now is unknown, so nothing can follow it.
    const isUnsure = this.#extras.expectsContinue === true && !this.#continued;
    if (isUnsure || this.#extras.isLast()) this.#res.shouldKeepAlive = false;
    this.#res.writeHead(status, headers as string[]);
  }

  write(chunk: Uint8Array): boolean {
    return this.#gone || this.#res.write(chunk);
  }

  onDrain(callback: () => void): void {
    if (this.#gone) return;
    this.#res.once("drain", callback);
  }

  end(trailers?: RawHeaders): void {
    if (this.#gone) return;
    if (trailers !== undefined && trailers.length > 0 && this.#res.chunkedEncoding) {
      const pairs: [string, string][] = [];
      for (let i = 0; i < trailers.length; i += 2) pairs.push([trailers[i]!, trailers[i + 1]!]);
      this.#res.addTrailers(pairs);
    }
    this.#res.end();
  }

  answer(status: number, headers: RawHeaders, body: string): void {
    if (this.responded || this.#gone) return;
    this.respond(status, [...headers, "content-length", String(Buffer.byteLength(body))]);
    this.#res.end(this.method === "HEAD" ? undefined : body);
  }

  abort(): void {
    this.#res.destroy();
    this.#req.socket.destroy();
  }

  onGone(callback: (() => void) | undefined): void {
    if (this.#gone) callback?.();
    else this.#onGone = callback;
  }

  onFinished(callback: () => void): void {
    if (this.#gone || this.#res.closed) callback();
    else this.#onFinished = callback;
  }

  takeOver(): { readonly socket: Socket; readonly head: Buffer } | undefined {
    if (!this.upgrade || this.#tookOver || this.responded || this.#gone) return undefined;
    this.#tookOver = true;
    const { socket } = this.#req;
    socket.off("readable", this.#watch);
    socket.off("end", this.#onEarlyEnd);
    this.#res.detachSocket(socket);
    return { socket, head: this.#extras.head ?? Buffer.alloc(0) };
  }

  /** Only who reads from a connection sees its end. What has come stays in the connection's buffer. */
  readonly #watch = (): void => {
    const { socket } = this.#req;
    if (socket.readableLength === 0) socket.read();
  };

  readonly #onEarlyEnd = (): void => {
    if (!this.responded) this.#req.socket.destroy();
  };

  readonly #onFirstRead = (): void => {
    if (this.#extras.expectsContinue !== true || this.responded || this.#continued) return;
    this.#continued = true;
    this.#res.writeContinue();
  };

  readonly #onClose = (): void => {
    if (this.#tookOver) return;
    if (!this.#res.writableFinished) {
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

function ignore(): void {
  // The "close" event that follows is what is acted upon.
}
