/** A share of a route's requests. */
export interface TrafficShare<T> {
  readonly target: T;
  /** Relative weight, 0 or more whole numbers; percents when they sum to 100. */
  readonly percent: number;
}

/**
 * Divides requests by percent: a deck with one card per percent, shuffled anew each time it is used up. Exact over every
 * whole deck whatever the order of requests, and unpredictable within one, so that clients with a rhythm (a page, then
 * its picture) do not always meet the same revision.
 */
export class TrafficDeck<T> {
  /** What it was made of. */
  readonly shares: readonly TrafficShare<T>[];
  readonly #targets: readonly T[];
  readonly #cards: Uint16Array;
  readonly #random: () => number;
  #next = 0;

  /** @param random uniform in [0, 1) */
  constructor(shares: readonly TrafficShare<T>[], random: () => number) {
    this.shares = shares;
    const taking = shares.filter(share => share.percent > 0);
    this.#targets = taking.map(share => share.target);
    const divisor = taking.reduce((gcd, share) => greatestCommonDivisor(gcd, share.percent), 0);
    this.#cards = Uint16Array.from(
      taking.flatMap((share, index) => new Array<number>(share.percent / divisor).fill(index)),
    );
    this.#random = random;
    this.#shuffle();
  }

  /** Where the next request goes; undefined when no share is above zero. */
  draw(): T | undefined {
    if (this.#targets.length <= 1) return this.#targets[0];
    if (this.#next === this.#cards.length) this.#shuffle();
    return this.#targets[this.#cards[this.#next++]!];
  }

  #shuffle(): void {
    this.#next = 0;
    const cards = this.#cards;
    for (let last = cards.length - 1; last > 0; last--) {
      const other = Math.floor(this.#random() * (last + 1));
      const card = cards[last]!;
      cards[last] = cards[other]!;
      cards[other] = card;
    }
  }
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
