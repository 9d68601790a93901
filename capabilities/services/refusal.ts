import { ApiError } from "../runtime/api-error.ts";
import type { ReconcileResult } from "../runtime/types.ts";
import { NotOwnedError, PredecessorError } from "./ownership.ts";

/** What the user or someone else has to mend is tried again this often: it is no failure of the operator, nor urgent. */
export const USER_RETRY_MS = 30_000;

const REFUSALS: ReadonlySet<number> = new Set([400, 403, 422]);

/** The API server understood and does not want it: the user has to change something, or a policy or quota. */
export const isRefusal = (error: unknown): error is ApiError => error instanceof ApiError && REFUSALS.has(error.code);

const PREDECESSOR_RETRY_MS = 500;

/**
 * What a reconciler returns after its attempts, each of which may have left an error. One that someone else has to mend is in
 * the status and no failure of the operator: it is tried again later.
 * @throws the first error of any other kind: it is tried again with backoff and shown.
 */
export function afterAttempts(...errors: readonly (Error | undefined)[]): ReconcileResult {
  const left = errors.filter(error => error !== undefined);
  const failure = left.find(
    error => !(error instanceof NotOwnedError || error instanceof PredecessorError || isRefusal(error)),
  );
  if (failure !== undefined) throw failure;
  if (left.some(error => error instanceof PredecessorError)) return { requeueAfterMs: PREDECESSOR_RETRY_MS };
  return left.length > 0 ? { requeueAfterMs: USER_RETRY_MS } : {};
}

export const asError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));
