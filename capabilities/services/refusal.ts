import { ApiError } from "../runtime/api-error.ts";

const REFUSALS: ReadonlySet<number> = new Set([400, 403, 422]);

/** The API server understood and does not want it: the user has to change something, or a policy or quota. */
export const isRefusal = (error: unknown): error is ApiError => error instanceof ApiError && REFUSALS.has(error.code);
