/** The API server refused, failed or could not be reached. `code` is the HTTP status, or 0 when there was no answer. */
export class ApiError extends Error {
  readonly code: number;
  /** Kubernetes' reason (`NotFound`, `Conflict`, `AlreadyExists`, ...), or `Unreachable`, `Timeout`, `Aborted`. */
  readonly reason: string;
  /** The server's own words, for users; the message where there are none. */
  readonly detail: string;
  /** The server's own wish, from `Retry-After`. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    code: number,
    reason: string,
    options: { detail?: string; retryAfterMs?: number; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.detail = options.detail ?? message;
    this.name = "ApiError";
    this.code = code;
    this.reason = reason;
    this.retryAfterMs = options.retryAfterMs;
  }
}

export const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.code === 404;
/** Both a lost optimistic lock and a failed precondition. */
export const isConflict = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 409 && error.reason !== "AlreadyExists";
export const isAlreadyExists = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 409 && error.reason === "AlreadyExists";
/** A watch asked for a version that the server no longer has. */
export const isGone = (error: unknown): boolean => error instanceof ApiError && error.code === 410;
