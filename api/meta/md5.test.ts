import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { md5Hex } from "./md5.ts";

test("equals node:crypto for any text, block borders included", () => {
  const expected = (text: string) => createHash("md5").update(text, "utf8").digest("hex");
  for (const length of [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 128, 1000]) {
    expect(md5Hex("a".repeat(length))).toBe(expected("a".repeat(length)));
  }
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 300 }), text => md5Hex(text) === expected(text)),
    { seed: 1321, numRuns: 500 },
  );
});
