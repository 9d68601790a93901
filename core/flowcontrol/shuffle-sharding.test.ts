import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { hashFlow } from "./flow-hash.ts";
import { Dealer, requiredEntropyBits, ShuffleShardingError, squeezeProbability } from "./shuffle-sharding.ts";

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

describe("squeezeProbability", () => {
  // The table that Kubernetes' documentation prints: handSize, queues, 1, 4 and 16 elephants.
  it.each([
    [12, 32, 4.428838398950118e-9, 0.11431348830099144, 0.9935089607656024],
    [10, 32, 1.550093439632541e-8, 0.0626479840223545, 0.9753101519027554],
    [10, 64, 6.601827268370426e-12, 0.00045571320990370776, 0.49999929150089345],
    [9, 64, 3.6310049976037345e-11, 0.00045501212304112273, 0.4282314876454858],
    [8, 64, 2.25929199850899e-10, 0.0004886697053040446, 0.35935114681123076],
    [8, 128, 6.994461389026097e-13, 3.4055790161620863e-6, 0.02746173137155063],
    [7, 128, 1.0579122850901972e-11, 6.960839379258192e-6, 0.02406157386340147],
    [7, 256, 7.597695465552631e-14, 6.728547142019406e-8, 0.0006709661542533682],
    [6, 256, 2.7134626662687968e-12, 2.9516464018476436e-7, 0.0008895654642000348],
    [6, 512, 4.116062922897309e-14, 4.982983350480894e-9, 2.26025764343413e-5],
    [6, 1024, 6.337324016514285e-16, 8.09060164312957e-11, 4.517408062903668e-7],
  ])("hands of %i out of %i queues: the table to ten significant digits", (handSize, queues, ...printed) => {
    for (const [i, elephants] of [1, 4, 16].entries()) {
      expect(squeezeProbability(queues, handSize, elephants).toPrecision(10)).toBe(printed[i]!.toPrecision(10));
    }
  });

  it("is what dealing shows", () => {
    const dealer = new Dealer(8, 3);
    const hand = (i: number): number[] => {
      const { high, low } = hashFlow("schema", String(i));
      return dealer.deal({ high, low });
    };
    const rounds = 20_000;
    let squeezed = 0;
    for (let i = 0; i < rounds; i++) {
      const held = new Set([hand(3 * i), hand(3 * i + 1)].flat());
      if (hand(3 * i + 2).every(queue => held.has(queue))) squeezed++;
    }
    expect(Math.abs(squeezed / rounds - squeezeProbability(8, 3, 2))).toBeLessThan(0.01);
  });
});
