import { expect, it } from "vitest";
import { z } from "zod";
import { defaulting } from "./actions.ts";

interface Thing {
  readonly metadata?: { readonly name?: string };
  readonly spec?: { readonly size?: number; readonly annotations?: Record<string, string> | null };
}
const schema = z.object({
  spec: z.object({ size: z.number(), annotations: z.record(z.string(), z.string()) }).partial(),
});

function mutated(object: unknown): unknown {
  const request = {
    Request: { operation: "UPDATE", object, oldObject: {}, userInfo: {} },
    Raw: object as Thing,
    SetAnnotation() {
      return this;
    },
  };
  defaulting<Thing>(schema, thing => ({ ...thing, spec: { size: 1, ...thing.spec } }))(request);
  return request.Raw;
}

it("takes fields that are null for absent, and gives them their defaults (server-side apply of a map that became empty)", () => {
  expect(mutated({ spec: { size: null, annotations: null } })).toEqual({ spec: { size: 1 } });
});

it("leaves an object that has not its kind's form to the API server's own check", () => {
  expect(mutated({ spec: { size: "big" } })).toEqual({ spec: { size: "big" } });
});
