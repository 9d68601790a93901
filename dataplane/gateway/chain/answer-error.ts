import type { Exchange, RawHeaders } from "../../shared/http/exchange.ts";
import { ClientGoneError, UpstreamError, UpstreamTimeoutError } from "../../shared/http/relay.ts";
import {
  BadRequestError,
  ClientCertificateError,
  NoPodError,
  PlaceTimeoutError,
  RevisionFailedError,
  RevisionGoneError,
  RevisionQueueFullError,
  RouteNotFoundError,
  SeatRejectedError,
} from "../errors.ts";

/** As access logs of other proxies call a client that left before its answer. */
export const CLIENT_GONE_STATUS = 499;

/** What a failed request is answered with. */
export interface ErrorAnswer {
  readonly status: number;
  /** Stable; in the body and in `X-Fairway-Error`. */
  readonly code: string;
  readonly message: string;
  readonly retryAfterS?: number;
}

/** The one place where errors become HTTP. */
export function errorAnswer(error: unknown): ErrorAnswer {
  if (error instanceof RouteNotFoundError) return { status: 404, code: error.code, message: error.message };
  if (error instanceof BadRequestError) return { status: 400, code: error.code, message: error.message };
  if (error instanceof ClientCertificateError) return { status: 401, code: error.code, message: error.message };
  if (
    error instanceof RevisionQueueFullError ||
    error instanceof PlaceTimeoutError ||
    error instanceof SeatRejectedError
  )
    return { status: 429, code: error.code, message: error.message, retryAfterS: error.retryAfterS };
  if (error instanceof NoPodError || error instanceof RevisionFailedError || error instanceof RevisionGoneError)
    return { status: 503, code: error.code, message: error.message, retryAfterS: error.retryAfterS };
  if (error instanceof UpstreamTimeoutError) return { status: 504, code: error.code, message: error.message };
  if (error instanceof UpstreamError) {
    if (error.sent)
      return { status: 502, code: error.code, message: "the pod ended the connection before it answered" };
    return { status: 503, code: "NO_CONNECTION", message: "no pod took the connection", retryAfterS: 1 };
  }
  if (error instanceof ClientGoneError) return { status: CLIENT_GONE_STATUS, code: error.code, message: error.message };
  return { status: 500, code: "INTERNAL", message: "internal error" };
}

/** Answers a client whose request failed, in JSON where it asks for that; nothing when its answer has begun or it is gone. */
export function answerError(
  exchange: Exchange,
  { status, code, message, retryAfterS }: ErrorAnswer,
  moreFields: RawHeaders = [],
): void {
  if (exchange.responded || exchange.gone) return;
  const wantsJson = exchange.header("accept")?.includes("json") === true;
  const body = wantsJson ? JSON.stringify({ error: { code, message, status } }) : message;
  const fields = [
    "content-type",
    wantsJson ? "application/json" : "text/plain; charset=utf-8",
    "x-fairway-error",
    code,
    ...moreFields,
  ];
  if (retryAfterS !== undefined) fields.push("retry-after", String(retryAfterS));
  exchange.answer(status, fields, `${body}\n`);
}
