import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defaulting, validating, type AdmissionFacts } from "./actions.ts";

const schema = z.object({ spec: z.object({ sizes: z.array(z.number()) }) });
type Thing = z.infer<typeof schema> & { readonly metadata?: { readonly deletionTimestamp?: string } };
const thing = (...sizes: number[]): Thing => ({ spec: { sizes } });

const request = (object: unknown, fields: object = {}) => {
  const made = {
    Raw: { untouched: true } as unknown as Thing,
    annotated: [] as string[],
    SetAnnotation(key: string) {
      made.annotated.push(key);
      return made;
    },
    Request: { operation: "CREATE", object, userInfo: { username: "ada" }, ...fields },
  };
  return made;
};

describe("defaulting", () => {
  it("hands over the object, who sent it, and on updates the old one", () => {
    const seen: AdmissionFacts<Thing>[] = [];
    const act = defaulting<Thing>(schema, (object, facts) => {
      seen.push(facts);
      return { spec: { sizes: [...object.spec.sizes, 9] } };
    });
    const create = request(thing(1), { oldObject: null });
    act(create);
    expect(create.Raw).toEqual(thing(1, 9));
    act(request(thing(1), { operation: "UPDATE", oldObject: thing(0) }));
    expect(seen).toEqual([
      { operation: "CREATE", old: undefined, user: "ada" },
      { operation: "UPDATE", old: thing(0), user: "ada" },
    ]);
  });

  it("does not touch an object without its kind's form", () => {
    const act = defaulting<Thing>(schema, () => {
      throw new Error("must not be called");
    });
    const malformed = request({ spec: "none" });
    act(malformed);
    expect(malformed.Raw).toEqual({ spec: "none" });
  });

  it("keeps Pepr's annotations off the object", () => {
    const act = defaulting<Thing>(schema, object => object);
    const made = request(thing(1));
    act(made);
    made.SetAnnotation("fairway.pepr.dev/admission");
    expect(made.annotated).toEqual([]);
  });
});

describe("validating", () => {
  const act = validating<Thing>(schema, object => ({
    refusal: object.spec.sizes.includes(13) ? "validation failed: invalid value: 13: spec.sizes[0]" : undefined,
    warnings: object.spec.sizes.includes(12) ? ["12 is close"] : [],
  }));

  it("allows, with warnings if there are any", () => {
    expect(act(request(thing(1)))).toEqual({ allowed: true });
    expect(act(request(thing(12)))).toEqual({ allowed: true, warnings: ["12 is close"] });
  });

  it("refuses with the very message", () => {
    expect(act(request(thing(13)))).toEqual({
      allowed: false,
      statusCode: 400,
      statusMessage: "validation failed: invalid value: 13: spec.sizes[0]",
    });
    expect(act(request(thing(13, 12)))).toMatchObject({ allowed: false, warnings: ["12 is close"] });
  });

  it("names the field that does not have its form", () => {
    expect(act(request({ spec: { sizes: [1, "two"] } })).statusMessage).toMatch(
      /^validation failed: .*: spec\.sizes\[1\]$/,
    );
  });

  it("lets an object that is being deleted through", () => {
    expect(act(request({ ...thing(13), metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }))).toEqual({
      allowed: true,
    });
  });
});
