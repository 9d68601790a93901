import type { Exchange } from "../shared/http/exchange.ts";
import type { Logger } from "../shared/logger.ts";

/** What is known of a request when it is over. */
export interface LoggedOutcome {
  readonly status: number;
  readonly responseBytes: number;
  readonly ms: number;
  readonly error?: { readonly code: string };
}

export type RequestLog = (exchange: Exchange, outcome: LoggedOutcome) => void;

/** One line for each request, in the form of Knative's default template, which log collectors know. */
export function createRequestLog(log: Logger): RequestLog {
  return (exchange, outcome) => {
    const traceparent = exchange.header("traceparent");
    log.info({
      httpRequest: {
        requestMethod: exchange.method,
        requestUrl: exchange.target,
        requestSize: exchange.header("content-length") ?? (exchange.hasBody ? "-1" : "0"),
        status: outcome.status,
        responseSize: String(outcome.responseBytes),
        userAgent: exchange.header("user-agent") ?? "",
        remoteIp: exchange.remoteAddress,
        referer: exchange.header("referer") ?? "",
        latency: `${(outcome.ms / 1000).toFixed(6)}s`,
        protocol: exchange.protocol === "h2" ? "HTTP/2.0" : "HTTP/1.1",
      },
      ...(traceparent === undefined ? {} : { traceId: traceparent.split("-")[1] ?? "" }),
      ...(outcome.error === undefined ? {} : { error: outcome.error.code }),
    });
  };
}
