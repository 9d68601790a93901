import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../shared/clock.ts";
import type { Identity } from "./identity.ts";

/**
 * Tells who a bearer token belongs to; undefined when it is nobody's that this source knows. Throws when it could not
 * be found out now.
 */
export type TokenSource = (token: string, signal: AbortSignal) => Promise<TokenOwner | undefined>;

export interface TokenOwner {
  readonly identity: Identity;
  /** When the token ends, milliseconds since the epoch; absent: not known. */
  readonly expiresAtMs?: number | undefined;
}

export interface TokenIdentitiesOptions {
  readonly clock: Clock;
  readonly source: TokenSource;
  /** Hears that a token could not be judged now; the request goes on as anonymous. */
  readonly onFailure: (error: unknown) => void;
}

const BEARER = /^bearer +(\S+) *$/i;
/** Who comes again within a moment needs no digest. They are forgotten together, so no token is kept for longer than that. */
const HOT_MS = 1_000;
const MOST_HOT = 1_000;
/** Tokens remembered, by digest: no token is kept. */
const MOST_KNOWN = 10_000;
/** Apart from the known ones: a flood of made-up tokens does not push those out. */
const MOST_UNKNOWN = 10_000;
const KNOWN_MS = 5 * 60_000;
/** Short: who is unknown now may be known in a moment. */
const UNKNOWN_MS = 30_000;
/** Tokens that are looked at at a time. A flood of new tokens must not become a flood at the API server. */
const MOST_LOOKUPS = 64;
const LOOKUP_TIMEOUT_MS = 3_000;
/** Longer ones are not looked at. */
const MOST_TOKEN_CHARACTERS = 16_384;

/**
 * Who bearer tokens belong to, with verdicts remembered. A token that cannot be judged (unknown, too many new ones at a time, no
 * answer in time) makes its request anonymous, never refused: it may be meant for the service alone.
 */
export class TokenIdentities {
  readonly #options: TokenIdentitiesOptions;
  /** By the whole field. */
  readonly #hot = new Map<string, Identity>();
  #hotUntilMs = -Infinity;
  readonly #known: LRUCache<string, Identity>;
  readonly #unknown: LRUCache<string, true>;
  readonly #lookups = new Map<string, Promise<Identity | undefined>>();

  constructor(options: TokenIdentitiesOptions) {
    this.#options = options;
    // The cache takes 0 for "no start yet".
    const perf = { now: () => options.clock.nowMs() + 1 };
    this.#known = new LRUCache({ max: MOST_KNOWN, perf, ttlResolution: 0 });
    this.#unknown = new LRUCache({ max: MOST_UNKNOWN, ttl: UNKNOWN_MS, perf, ttlResolution: 0 });
  }

  /**
   * Whose bearer token is in an `Authorization` field; undefined for other fields. Not a promise when the verdict is known: the usual
   * case costs no turn of the event loop. Never rejects.
   */
  of(authorization: string): Identity | undefined | Promise<Identity | undefined> {
    const nowMs = this.#options.clock.nowMs();
    if (nowMs >= this.#hotUntilMs) {
      this.#hot.clear();
      this.#hotUntilMs = nowMs + HOT_MS;
    }
    const hot = this.#hot.get(authorization);
    if (hot !== undefined) return hot;
    const token = BEARER.exec(authorization)?.[1];
    if (token === undefined || token.length > MOST_TOKEN_CHARACTERS) return undefined;
    const digest = hash("sha256", token, "base64");
    const known = this.#known.get(digest);
    if (known !== undefined) {
      if (this.#hot.size < MOST_HOT) this.#hot.set(authorization, known);
      return known;
    }
    if (this.#unknown.has(digest)) return undefined;
    const running = this.#lookups.get(digest);
    if (running !== undefined) return running;
    if (this.#lookups.size >= MOST_LOOKUPS) {
      this.#options.onFailure(new TokenLookupLimitError());
      return undefined;
    }
    const lookup = this.#lookUp(token, digest).finally(() => this.#lookups.delete(digest));
    this.#lookups.set(digest, lookup);
    return lookup;
  }

  async #lookUp(token: string, digest: string): Promise<Identity | undefined> {
    const { clock, source, onFailure } = this.#options;
    const giveUp = new AbortController();
    const tooLate = Promise.withResolvers<never>();
    const timer = clock.after(LOOKUP_TIMEOUT_MS, () => {
      const error = new TokenLookupTimeoutError();
      giveUp.abort(error);
      tooLate.reject(error);
    });
    try {
      // A source that does not heed the signal holds up nobody.
      const owner = await Promise.race([source(token, giveUp.signal), tooLate.promise]);
      if (owner === undefined) {
        this.#unknown.set(digest, true);
        return undefined;
      }
      const lastsMs = owner.expiresAtMs === undefined ? KNOWN_MS : owner.expiresAtMs - clock.wallMs();
      const ttl = Math.min(KNOWN_MS, lastsMs);
      if (ttl > 0) this.#known.set(digest, owner.identity, { ttl });
      return owner.identity;
    } catch (error) {
      onFailure(error);
      return undefined;
    } finally {
      clock.cancel(timer);
    }
  }
}

export class TokenLookupLimitError extends Error {
  readonly code = "TOKEN_LOOKUP_LIMIT";
  constructor() {
    super(`too many unknown tokens at a time: limit ${MOST_LOOKUPS}`);
  }
}

export class TokenLookupTimeoutError extends Error {
  readonly code = "TOKEN_LOOKUP_TIMEOUT";
  constructor() {
    super(`no verdict on a token in ${LOOKUP_TIMEOUT_MS} ms`);
  }
}
