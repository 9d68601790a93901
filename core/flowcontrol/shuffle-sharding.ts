/**
 * Shuffle sharding: a flow's hash deals it a hand of `handSize` distinct queues out of `deckSize`. Two flows rarely get
 * the same hand, so a quiet flow nearly always has a queue that the loud ones do not fill.
 *
 * The deal is that of k8s.io/apiserver's util/shufflesharding: the hash is read as a number in the mixed radix
 * deckSize, deckSize-1, ...; each digit picks one of the cards still in the deck.
 */
import type { FlowHash } from "./flow-hash.ts";

/** Hash bits that a deal may use. 60 of 64 keep the last card's unevenness within 32:33. */
export const MAX_HASH_BITS = 60;
const MAX_DECK_SIZE = 2 ** 26;
const TWO_32 = 2 ** 32;

/** Bits of the hash that a deal uses up: ceil(log2(deckSize) x handSize). `requiredEntropyBits(64, 8)` is 48. */
export function requiredEntropyBits(deckSize: number, handSize: number): number {
  return Math.ceil(Math.log2(deckSize) * handSize);
}

/** Queues and hand size that cannot be dealt. */
export class ShuffleShardingError extends RangeError {
  readonly code = "SHUFFLE_SHARDING_INVALID";
}

/** Deals hands. One serves any number of requests. */
export class Dealer {
  readonly deckSize: number;
  readonly handSize: number;
  readonly #hands = new WeakMap<FlowHash, readonly number[]>();

  /**
   * @throws ShuffleShardingError unless 1 <= handSize <= deckSize <= 2^26 and the deal needs at most 60 hash bits.
   */
  constructor(deckSize: number, handSize: number) {
    if (!Number.isInteger(deckSize) || !Number.isInteger(handSize) || deckSize <= 0 || handSize <= 0) {
      throw new ShuffleShardingError(`queues ${deckSize} and handSize ${handSize} must be positive whole numbers`);
    }
    if (handSize > deckSize) throw new ShuffleShardingError(`handSize ${handSize} is greater than queues ${deckSize}`);
    if (deckSize > MAX_DECK_SIZE) throw new ShuffleShardingError(`queues ${deckSize} is above ${MAX_DECK_SIZE}`);
    const bits = requiredEntropyBits(deckSize, handSize);
    if (bits > MAX_HASH_BITS) {
      throw new ShuffleShardingError(
        `queues ${deckSize} with handSize ${handSize} needs ${bits} hash bits, limit ${MAX_HASH_BITS}`,
      );
    }
    this.deckSize = deckSize;
    this.handSize = handSize;
  }

  /** Makes `hand` the hand of `hash`, each card in [0, deckSize). Returns `hand`. */
  dealInto(hash: FlowHash, hand: number[]): number[] {
    if (hand.length !== this.handSize) hand.length = this.handSize;
    let { high, low } = hash;
    for (let i = 0; i < this.handSize; i++) {
      const radix = this.deckSize - i;
      let remainder: number;
      if (high === 0) {
        const quotient = Math.floor(low / radix);
        remainder = low - radix * quotient;
        low = quotient;
      } else {
        // Long division in three digits (32, 16, 16 bits): every partial dividend stays below 2^42.
        const highQuotient = Math.floor(high / radix);
        const upper = (high - radix * highQuotient) * 65536 + (low >>> 16);
        const upperQuotient = Math.floor(upper / radix);
        const lower = (upper - radix * upperQuotient) * 65536 + (low & 0xffff);
        const lowerQuotient = Math.floor(lower / radix);
        remainder = lower - radix * lowerQuotient;
        high = highQuotient;
        low = (upperQuotient * 65536 + lowerQuotient) % TWO_32;
      }
      hand[i] = remainder;
    }
    // Digit i counts the cards still in the deck; going back over the earlier digits gives the card itself. From the
    // last to the first, so that each still sees digits and not cards.
    for (let i = this.handSize - 1; i > 0; i--) {
      let card = hand[i]!;
      for (let j = i - 1; j >= 0; j--) if (card >= hand[j]!) card++;
      hand[i] = card;
    }
    return hand;
  }

  /** As `deal`, and remembered as long as the hash itself: that of a flow is kept and comes with each of its requests. */
  handOf(hash: FlowHash): readonly number[] {
    let hand = this.#hands.get(hash);
    if (hand === undefined) this.#hands.set(hash, (hand = this.deal(hash)));
    return hand;
  }

  /** As `dealInto`, into a new array. */
  deal(hash: FlowHash): number[] {
    return this.dealInto(hash, new Array<number>(this.handSize));
  }
}

/** Ways to choose `count` of `from`; 0 where there are none. */
function combinations(from: number, count: number): number {
  if (count < 0 || count > from) return 0;
  let ways = 1;
  for (let i = 1; i <= count; i++) ways *= (from - count + i) / i;
  return ways;
}

/**
 * The chance that a mouse is squeezed: that the hands of `elephants` loud flows together hold all queues of its own.
 * With one elephant it is 1 / C(queues, handSize): 4.43e-9 for hands of 12 out of 32.
 *
 * Exact but for rounding: goes through the number of queues that the elephants hold, each hand being drawn evenly.
 */
export function squeezeProbability(queues: number, handSize: number, elephants: number): number {
  const hands = combinations(queues, handSize);
  /** held[u]: the chance that the elephants so far hold u queues. */
  let held = [1];
  for (let elephant = 0; elephant < elephants; elephant++) {
    const next = new Array<number>(Math.min(queues, held.length - 1 + handSize) + 1).fill(0);
    for (const [u, chance] of held.entries()) {
      if (chance === 0) continue;
      for (let fresh = 0; fresh <= handSize; fresh++) {
        const ways = combinations(queues - u, fresh) * combinations(u, handSize - fresh);
        if (ways > 0) next[u + fresh]! += (chance * ways) / hands;
      }
    }
    held = next;
  }
  return held.reduce((sum, chance, u) => sum + (chance * combinations(u, handSize)) / hands, 0);
}
