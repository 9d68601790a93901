import { readFile } from "node:fs/promises";
import { Agent, request } from "undici";
import { GatewayReplySchema, type GatewayReply, type GatewayReport } from "../../../api/wire/stats.ts";

/** A report was not delivered. */
export class ReportError extends Error {
  readonly code = "REPORT_FAILED";
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.name = "ReportError";
  }
}

export interface AutoscalerClientOptions {
  /** Fixed address; else those given to `setAddresses`. */
  readonly url: string | undefined;
  /** Bearer token of this gateway; absent file: none is sent. */
  readonly tokenFile: string;
}

/** Shorter than the period of reports, so that they do not pile up. */
const TIMEOUT_MS = 900;
/** The kubelet renews a token long before it ends. */
const TOKEN_AGE_MS = 60_000;

/** Sends reports to the leading operator. */
export class AutoscalerClient {
  readonly #options: AutoscalerClientOptions;
  readonly #agent = new Agent({ connections: 2, pipelining: 1, connect: { timeout: TIMEOUT_MS } });
  #addresses: readonly string[] = [];
  #token: { readonly value: string | undefined; readonly readAtMs: number } | undefined;

  constructor(options: AutoscalerClientOptions) {
    this.#options = options;
  }

  /** Where the leader takes reports now, as `host:port`. */
  setAddresses(addresses: readonly string[]): void {
    this.#addresses = addresses;
  }

  /** Rejects with ReportError unless the report was accepted. */
  async send(report: GatewayReport): Promise<GatewayReply> {
    const [address] = this.#addresses;
    const base = this.#options.url ?? (address === undefined ? undefined : `http://${address}`);
    if (base === undefined) throw new ReportError("no autoscaler endpoint is known");
    const token = await this.#readToken();
    try {
      const response = await request(`${base.replace(/\/$/, "")}/v1/stats`, {
        method: "POST",
        dispatcher: this.#agent,
        headers: {
          "content-type": "application/json",
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify(report),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      if (response.statusCode !== 200) {
        if (response.statusCode === 401) this.#token = undefined;
        const text = (await response.body.text()).slice(0, 200);
        throw new ReportError(`the autoscaler answered ${response.statusCode}: ${text}`);
      }
      return GatewayReplySchema.parse(await response.body.json());
    } catch (error) {
      if (error instanceof ReportError) throw error;
      throw new ReportError(`report to ${base}: ${error instanceof Error ? error.message : String(error)}`, error);
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #readToken(): Promise<string | undefined> {
    const nowMs = performance.now();
    if (this.#token !== undefined && nowMs - this.#token.readAtMs < TOKEN_AGE_MS) return this.#token.value;
    let value: string | undefined;
    try {
      value = (await readFile(this.#options.tokenFile, "utf8")).trim();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT")
        throw new ReportError(`token file ${this.#options.tokenFile}`, error);
    }
    this.#token = { value, readAtMs: nowMs };
    return value;
  }
}
