import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";

/** How long a verdict holds. A refusal is short: the ServiceAccount may be created in a moment. */
const ACCEPTED_MS = 5 * 60_000;
const REFUSED_MS = 10_000;

/** Asks the API server who a token belongs to (TokenReview); undefined when it is not authenticated. */
export type ReviewToken = (token: string) => Promise<string | undefined>;

/**
 * Tells whether a bearer token is that of the gateway's ServiceAccount. Verdicts are cached (1,000 tokens, by digest:
 * no token is kept). Throws what `review` throws; an error is not cached.
 */
export function gatewayTokens(options: {
  readonly review: ReviewToken;
  /** Such as `system:serviceaccount:fairway-system:fairway-gateway`. */
  readonly username: string;
  readonly now: () => number;
}): (token: string) => Promise<boolean> {
  const verdicts = new LRUCache<string, boolean>({ max: 1000, perf: { now: options.now }, ttlResolution: 0 });
  return async token => {
    const digest = createHash("sha256").update(token).digest("base64");
    const known = verdicts.get(digest);
    if (known !== undefined) return known;
    const accepted = (await options.review(token)) === options.username;
    verdicts.set(digest, accepted, { ttl: accepted ? ACCEPTED_MS : REFUSED_MS });
    return accepted;
  };
}
