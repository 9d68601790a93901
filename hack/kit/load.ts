import { Agent, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { Agent as TlsAgent, request as httpsRequest } from "node:https";
import type { ConnectionOptions } from "node:tls";
import { setTimeout as delay } from "node:timers/promises";

/** One request over HTTP/1.1 to an address, with the Host header of a service. */
export interface Target {
  /** Where to connect, such as a node's IP. */
  readonly address: string;
  readonly port: number;
  /** Host header. */
  readonly host: string;
  /** With TLS: whom to believe, and what to show. */
  readonly tls?: ConnectionOptions;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly tookMs: number;
}

export interface RequestOptions {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  readonly agent?: Agent;
}

/** Sends one request and reads the whole answer. Rejects on a broken connection or after `timeoutMs` (60 s). */
export function send(target: Target, options: RequestOptions = {}): Promise<Answer> {
  const begin = performance.now();
  return new Promise((resolve, reject) => {
    const req = (target.tls === undefined ? httpRequest : httpsRequest)(
      {
        ...target.tls,
        host: target.address,
        port: target.port,
        path: options.path ?? "/",
        method: options.method ?? "GET",
        headers: { host: target.host, ...options.headers },
        agent: options.agent ?? false,
        signal: options.signal,
      },
      res => {
        const chunks: Buffer[] = [];
        res.on("data", (chunk: Buffer) => chunks.push(chunk));
        res.on("error", reject);
        res.on("aborted", () => reject(new Error("answer cut short")));
        res.on("end", () =>
          resolve({
            status: res.statusCode ?? 0,
            headers: res.headers,
            body: Buffer.concat(chunks).toString("utf8"),
            tookMs: performance.now() - begin,
          }),
        );
      },
    );
    req.setTimeout(options.timeoutMs ?? 60_000, () =>
      req.destroy(new Error(`no answer in ${options.timeoutMs ?? 60_000} ms`)),
    );
    req.on("error", reject);
    req.end(options.body);
  });
}

export interface LoadReport {
  readonly sent: number;
  readonly byStatus: Readonly<Record<string, number>>;
  /** Connections that broke, and what they said. */
  readonly errors: readonly string[];
  /** Sorted latencies of complete answers. */
  readonly latenciesMs: readonly number[];
}

/**
 * `concurrency` clients that send one request after the other until `signal` fires or each has sent `perClient`.
 * Requests under way when the signal fires are waited for: a report never hides a lost request.
 */
export async function load(
  target: Target,
  options: RequestOptions & {
    readonly concurrency: number;
    readonly perClient: number;
    readonly until?: AbortSignal;
    readonly pauseMs?: number;
    readonly onAnswer?: (answer: Answer) => void;
  },
): Promise<LoadReport> {
  const agent = new (target.tls === undefined ? Agent : TlsAgent)({ keepAlive: true, maxSockets: options.concurrency });
  const byStatus: Record<string, number> = {};
  const errors: string[] = [];
  const latenciesMs: number[] = [];
  let sent = 0;
  const client = async (): Promise<void> => {
    for (let i = 0; i < options.perClient && options.until?.aborted !== true; i++) {
      sent++;
      try {
        const answer = await send(target, { ...options, agent });
        byStatus[answer.status] = (byStatus[answer.status] ?? 0) + 1;
        latenciesMs.push(answer.tookMs);
        options.onAnswer?.(answer);
      } catch (error) {
        errors.push(error instanceof Error ? error.message : String(error));
      }
      if (options.pauseMs !== undefined) await delay(options.pauseMs);
    }
  };
  await Promise.all(Array.from({ length: options.concurrency }, client));
  agent.destroy();
  return { sent, byStatus, errors, latenciesMs: latenciesMs.sort((a, b) => a - b) };
}

/** The value below which a share `q` (0..1) of sorted values lies. */
export function quantile(sorted: readonly number[], q: number): number {
  if (sorted.length === 0) throw new Error("no values");
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] as number;
}
