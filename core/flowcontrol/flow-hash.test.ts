import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { hashFlow } from "./flow-hash.ts";

function reference(schemaName: string, distinguisher: string): bigint {
  return createHash("sha256").update(`${schemaName}\0${distinguisher}`, "utf8").digest().readBigUInt64LE(0);
}

const asBigInt = (schemaName: string, distinguisher: string): bigint => {
  const { high, low } = hashFlow(schemaName, distinguisher);
  return (BigInt(high) << 32n) | BigInt(low);
};

describe("hashFlow", () => {
  it("is the head of SHA-256 over name, zero byte, distinguisher", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 80 }),
        fc.string({ unit: "grapheme", maxLength: 200 }),
        (name, who) => {
          expect(asBigInt(name, who)).toBe(reference(name, who));
        },
      ),
      { numRuns: 500, seed: 1 },
    );
  });

  it.each([54, 55, 56, 63, 64, 119, 120, 1000])("pads a message of %i bytes right", length => {
    expect(asBigInt("s", "x".repeat(length - 2))).toBe(reference("s", "x".repeat(length - 2)));
  });
});
