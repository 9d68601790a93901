import { Readable } from "node:stream";

/** The client left, or broke the protocol, before its body was complete. */
export class RequestBodyError extends Error {
  readonly code = "REQUEST_BODY_INCOMPLETE";
  constructor(cause?: Error) {
    super("the client ended before the request body was complete", { cause });
    this.name = "RequestBodyError";
  }
}

/**
 * A request's body as a stream of its own. Destroying it leaves the source alone, so that an answer can still be sent;
 * nothing is taken from the source before the first read, so that it can be made anew for another attempt.
 */
export class RequestBody extends Readable {
  readonly #source: Readable;
  readonly #onFirstRead: () => void;
  #started = false;
  #ended = false;

  constructor(source: Readable, onFirstRead: () => void) {
    super({ highWaterMark: 65_536 });
    this.#source = source;
    this.#onFirstRead = onFirstRead;
  }

  override _read(): void {
    if (this.#started) {
      this.#source.resume();
      return;
    }
    this.#started = true;
    this.#source.on("data", this.#onData);
    this.#source.on("end", this.#onEnd);
    this.#source.on("close", this.#onClose);
    this.#source.on("error", this.#onError);
    this.#onFirstRead();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (this.#started) {
      this.#source.pause();
      this.#source.off("data", this.#onData);
      this.#source.off("end", this.#onEnd);
      this.#source.off("close", this.#onClose);
      this.#source.off("error", this.#onError);
    }
    callback(error);
  }

  readonly #onData = (chunk: Buffer): void => {
    if (!this.push(chunk)) this.#source.pause();
  };

  readonly #onEnd = (): void => {
    this.#ended = true;
    this.push(null);
  };

  readonly #onClose = (): void => {
    if (!this.#ended) this.destroy(new RequestBodyError());
  };

  readonly #onError = (error: Error): void => {
    this.destroy(new RequestBodyError(error));
  };
}
