import { describe, expect, test } from "vitest";
import { z } from "zod";
import { int64, intOrString, opaque, quantity } from "../../api/meta/schema.ts";
import { toStructuralSchema } from "./structural-schema.ts";

describe("toStructuralSchema", () => {
  test("an object lists its fields, required ones are those that are not optional", () => {
    expect(
      toStructuralSchema(z.object({ a: z.string(), b: z.boolean().optional().meta({ description: "why" }) })),
    ).toEqual({
      type: "object",
      properties: { a: { type: "string" }, b: { type: "boolean", description: "why" } },
      required: ["a"],
    });
  });

  test("a loose object keeps unknown fields, a record has a schema for its values", () => {
    expect(toStructuralSchema(z.object({ any: opaque(), map: z.record(z.string(), z.string()) }))).toMatchObject({
      properties: {
        any: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        map: { type: "object", additionalProperties: { type: "string" } },
      },
    });
  });

  test("integers carry their format and none of JavaScript's bounds", () => {
    expect(toStructuralSchema(z.object({ n: int64() })).properties).toEqual({
      n: { type: "integer", format: "int64" },
    });
    expect(toStructuralSchema(z.object({ n: z.int().min(0).max(7) })).properties).toEqual({
      n: { type: "integer", minimum: 0, maximum: 7 },
    });
  });

  test("int-or-string has no type beside its two alternatives", () => {
    const anyOf = [{ type: "integer" }, { type: "string" }];
    expect(toStructuralSchema(z.object({ p: intOrString() })).properties).toEqual({
      p: { "x-kubernetes-int-or-string": true, anyOf },
    });
    expect(toStructuralSchema(z.object({ q: quantity() })).properties?.["q"]).toMatchObject({
      pattern: expect.stringContaining("KMGTPE") as string,
      anyOf,
    });
  });

  test("what has no structural form is refused with its path", () => {
    expect(() => toStructuralSchema(z.object({ a: z.array(z.union([z.string(), z.boolean()])) }))).toThrow(
      ".a[]: anyOf has no structural form",
    );
    expect(() => toStructuralSchema(z.object({ a: z.string().nullable() }))).toThrow(".a: nullable");
  });
});
