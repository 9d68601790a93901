/**
 * How long a refused client is told to wait, by priority level: grows with what was refused lately. As the
 * dropped-requests tracker of k8s.io/apiserver: within the last `r` seconds, where r is the present answer, fewer than
 * r refusals take one second off, 3 r or more double it (at most once per r seconds), up to 32 s.
 */
const MAX_RETRY_AFTER_S = 32;

interface Refusals {
  retryAfterS: number;
  /** When it was last raised. */
  raisedS: number;
  /** The second being counted, and its count. */
  currentS: number;
  currentCount: number;
  /** Earlier seconds with refusals, oldest first. */
  history: { readonly second: number; readonly count: number }[];
}

export class RetryAfterTracker {
  readonly #levels = new Map<string, Refusals>();

  /** Notes a refusal; returns the seconds to put into its `Retry-After`. */
  refuse(level: string, nowMs: number): number {
    const second = Math.floor(nowMs / 1000);
    let refusals = this.#levels.get(level);
    if (refusals === undefined) {
      refusals = { retryAfterS: 1, raisedS: -Infinity, currentS: -Infinity, currentCount: 0, history: [] };
      this.#levels.set(level, refusals);
    }
    if (refusals.currentS === second) refusals.currentCount++;
    else startSecond(refusals, second);
    return refusals.retryAfterS;
  }

  /** The present answer; 1 for a level that never refused. */
  retryAfterS(level: string): number {
    return this.#levels.get(level)?.retryAfterS ?? 1;
  }

  /** Forgets levels that are gone. */
  keepOnly(levels: ReadonlySet<string>): void {
    for (const level of this.#levels.keys()) if (!levels.has(level)) this.#levels.delete(level);
  }
}

function startSecond(refusals: Refusals, second: number): void {
  refusals.history.push({ second: refusals.currentS, count: refusals.currentCount });
  const horizonS = Math.min(2 * refusals.retryAfterS, MAX_RETRY_AFTER_S);
  refusals.history = refusals.history.filter(entry => second - entry.second <= horizonS);
  refusals.currentS = second;
  refusals.currentCount = 1;
  const { retryAfterS } = refusals;
  const refused = refusals.history.reduce(
    (sum, entry) => (entry.second < second && second - entry.second <= retryAfterS ? sum + entry.count : sum),
    0,
  );
  if (second - refusals.raisedS >= retryAfterS && refused >= 3 * retryAfterS) {
    refusals.retryAfterS = Math.min(2 * retryAfterS, MAX_RETRY_AFTER_S);
    refusals.raisedS = second;
  } else if (refused < retryAfterS && retryAfterS > 1) refusals.retryAfterS--;
}
