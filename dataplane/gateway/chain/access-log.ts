import type { Logger } from "../../shared/logger.ts";
import type { Exchange } from "../../shared/http/exchange.ts";

/** One request that has ended. */
export interface AccessEntry {
  readonly listener: string;
  readonly revision: string | undefined;
  /** Who sent it, as flow schemas see it. */
  readonly user: string | undefined;
  /** The gateway it was passed on to. */
  readonly passedTo: string | undefined;
  readonly pod: string | undefined;
  readonly flowSchema: string | undefined;
  readonly priorityLevel: string | undefined;
  readonly status: number;
  readonly responseBytes: number;
  readonly waitedMs: number;
  readonly durationMs: number;
  /** Code of the error that ended it. */
  readonly error: string | undefined;
}

export type AccessLog = (exchange: Exchange, entry: AccessEntry) => void;

/** One line for each request. The query is left out: people put secrets into it. */
export function createAccessLog(logger: Logger): AccessLog {
  return (exchange, entry) => {
    const query = exchange.target.indexOf("?");
    logger.info(
      {
        method: exchange.method,
        host: exchange.authority,
        path: query < 0 ? exchange.target : exchange.target.slice(0, query),
        scheme: exchange.tls === undefined ? "http" : "https",
        protocol: exchange.protocol,
        client: exchange.remoteAddress,
        userAgent: exchange.header("user-agent"),
        ...entry,
      },
      "request",
    );
  };
}

export const noAccessLog: AccessLog = () => undefined;
