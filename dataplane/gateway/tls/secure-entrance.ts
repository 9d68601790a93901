import type { Clock, Timer } from "../../shared/clock.ts";
import type { Listener } from "../../shared/http/listener.ts";
import { TlsFront, type TlsKeys } from "../../shared/http/tls-front.ts";
import type { Logger } from "../../shared/logger.ts";
import { readClientCa, readServerPair, TlsFileError, type ServerPair, type TlsFiles } from "./tls-files.ts";
import type { TlsFileKind, TlsMetrics } from "./tls-metrics.ts";

export interface SecureEntranceOptions {
  readonly files: TlsFiles;
  /** How often they are looked at: a mount swaps them without a word, and elsewhere they are written in place. */
  readonly periodMs: number;
  readonly handshakeTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: TlsMetrics;
  /** Opens the port. */
  readonly listen: (tls: TlsFront) => Promise<Listener>;
}

/** Handshakes at a time: an honest one takes milliseconds. */
const MOST_HANDSHAKES = 1_000;

/**
 * The port with TLS. It is closed until there is a certificate, and then follows the files: new keys are for new connections. A pair
 * or a list of authorities that is not good changes nothing; nor does a pair that goes. Authorities that go are believed no
 * longer.
 */
export class SecureEntrance implements Omit<Listener, "port"> {
  readonly #options: SecureEntranceOptions;
  #pair: ServerPair | undefined;
  #clientCa: string | undefined;
  #front: TlsFront | undefined;
  #listener: Listener | undefined;
  /** What was told of each file, to say it once. */
  readonly #told = new Map<TlsFileKind, string>();
  #timer: Timer | undefined;
  #looking: Promise<void> = Promise.resolve();
  #over = false;

  constructor(options: SecureEntranceOptions) {
    this.#options = options;
  }

  /** Resolves when the files were looked at, and the port is open if there is a certificate. Rejects when it is taken. */
  async start(): Promise<void> {
    await this.#look();
    if (this.#listener === undefined) {
      const { certFile, keyFile } = this.#options.files;
      this.#options.logger.info({ certFile, keyFile }, "no certificate yet: the port with TLS opens when there is one");
    }
    this.#later();
  }

  /** Undefined while it is closed. */
  get port(): number | undefined {
    return this.#listener?.port;
  }

  get active(): number {
    return this.#listener?.active ?? 0;
  }

  lastCalls(): void {
    this.#stop();
    this.#listener?.lastCalls();
  }

  async close(): Promise<void> {
    this.#stop();
    await this.#looking;
    await this.#listener?.close();
  }

  destroy(): void {
    this.#listener?.destroy();
  }

  #stop(): void {
    this.#over = true;
    if (this.#timer !== undefined) this.#options.clock.cancel(this.#timer);
  }

  #later(): void {
    if (this.#over) return;
    const { clock, periodMs, logger } = this.#options;
    this.#timer = clock.after(periodMs, () => {
      this.#looking = this.#look()
        // Such as a port that is taken now: the next look tries again.
        .catch((error: unknown) => logger.error({ err: error }, "the port with TLS could not be opened"))
        .then(() => this.#later());
    });
  }

  async #look(): Promise<void> {
    const { files } = this.#options;
    const { clientCaFile } = files;
    const pair = await this.#read("certificate", async () => {
      const found = await readServerPair(files);
      if (found === undefined && this.#pair !== undefined) throw new TlsFileError(files.certFile, "gone, with its key");
      return found;
    });
    const clientCa = await this.#read("client-ca", async () =>
      clientCaFile === undefined ? undefined : readClientCa(clientCaFile),
    );
    this.#pair = pair.isGood ? pair.content : this.#pair;
    this.#clientCa = clientCa.isGood ? clientCa.content : this.#clientCa;
    if (this.#pair !== undefined && !this.#over) await this.#use(this.#pair, this.#clientCa);
  }

  async #read<T>(
    file: TlsFileKind,
    read: () => Promise<T>,
  ): Promise<{ readonly isGood: true; readonly content: T } | { readonly isGood: false }> {
    const { metrics, logger } = this.#options;
    try {
      // Twice: a mount may have swapped the files between the one and the other.
      const content = await read().catch(read);
      this.#told.delete(file);
      return { isGood: true, content };
    } catch (error) {
      if (!(error instanceof TlsFileError)) throw error;
      metrics.fileFailed(file);
      if (this.#told.get(file) !== error.message)
        logger.error({ err: error, file }, "a file of certificates is not good: what was last good stays in use");
      this.#told.set(file, error.message);
      return { isGood: false };
    }
  }

  async #use({ certificate, key, notAfterMs }: ServerPair, clientCa: string | undefined): Promise<void> {
    const { metrics, logger, handshakeTimeoutMs, listen } = this.#options;
    const keys: TlsKeys = { certificate, key, clientCa };
    const state = { certificateEnds: new Date(notAfterMs).toISOString(), asksClients: clientCa !== undefined };
    if (this.#front === undefined || this.#listener === undefined) {
      const onFailure = (error: Error): void => {
        metrics.handshakeFailed();
        logger.debug({ err: error }, "no TLS came of a connection");
      };
      this.#front = new TlsFront({ keys, handshakeTimeoutMs, mostHandshakes: MOST_HANDSHAKES, onFailure });
      this.#listener = await listen(this.#front);
      if (this.#over) this.#listener.lastCalls();
      logger.info({ port: this.#listener.port, ...state }, "the port with TLS is open");
    } else if (this.#front.renew(keys)) logger.info(state, "new certificates are in use");
    metrics.certificateEnds(notAfterMs);
  }
}
