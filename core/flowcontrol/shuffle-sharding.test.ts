import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { Dealer, requiredEntropyBits, ShuffleShardingError } from "./shuffle-sharding.ts";

/** The definition, in exact arithmetic: digit i of the mixed radix picks the digit-th card still in the deck. */
function dealByDefinition(hash: bigint, deckSize: number, handSize: number): number[] {
  const deck = Array.from({ length: deckSize }, (_, card) => card);
  const hand: number[] = [];
  for (let i = 0; i < handSize; i++) {
    const radix = BigInt(deckSize - i);
    hand.push(...deck.splice(Number(hash % radix), 1));
    hash /= radix;
  }
  return hand;
}

const configs = [
  [1, 1],
  [64, 8],
  [128, 6],
  [512, 6],
  [15, 15],
  [1024, 6],
  [9, 3],
] as const;

describe("Dealer", () => {
  it.each(configs)("deals from %i queues a hand of %i as defined", (deckSize, handSize) => {
    const dealer = new Dealer(deckSize, handSize);
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), hash => {
        const hand = dealer.deal({ high: Number(hash >> 32n), low: Number(hash & 0xffff_ffffn) });
        expect(hand).toEqual(dealByDefinition(hash, deckSize, handSize));
      }),
      { numRuns: 300, seed: 2 },
    );
  });

  it("deals exactly from the largest deck", () => {
    const dealer = new Dealer(2 ** 26, 2);
    for (const hash of [2n ** 64n - 1n, 2n ** 63n + 12345678901n, 2n ** 32n - 1n, 2n ** 32n]) {
      const first = hash % 2n ** 26n;
      const rest = (hash / 2n ** 26n) % (2n ** 26n - 1n);
      const second = rest >= first ? rest + 1n : rest;
      expect(dealer.deal({ high: Number(hash >> 32n), low: Number(hash & 0xffff_ffffn) })).toEqual([
        Number(first),
        Number(second),
      ]);
    }
  });

  it("leaves nothing of a longer hand dealt before", () => {
    const hand = new Dealer(64, 8).deal({ high: 1, low: 2 });
    expect(new Dealer(64, 3).dealInto({ high: 1, low: 2 }, hand)).toEqual(new Dealer(64, 3).deal({ high: 1, low: 2 }));
  });

  it.each([
    [0, 1, "must be positive"],
    [8, 0, "must be positive"],
    [8.5, 2, "must be positive whole"],
    [8, 9, "handSize 9 is greater than queues 8"],
    [2 ** 26 + 1, 1, "above 67108864"],
    [1024, 7, "needs 70 hash bits, limit 60"],
  ])("refuses %f queues with hand %i", (deckSize, handSize, message) => {
    expect(() => new Dealer(deckSize, handSize)).toThrow(ShuffleShardingError);
    expect(() => new Dealer(deckSize, handSize)).toThrow(message);
  });

  it("counts the entropy a deal needs", () => {
    expect(requiredEntropyBits(64, 8)).toBe(48);
    expect(requiredEntropyBits(1024, 6)).toBe(60);
  });
});
