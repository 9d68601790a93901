import { describe, expect, it } from "vitest";
import { ApiError } from "../runtime/api-error.ts";
import { NotOwnedError, PredecessorError } from "./ownership.ts";
import { afterAttempts, USER_RETRY_MS } from "./refusal.ts";

const refused = new ApiError("no", 422, "Invalid");
const broken = new ApiError("gone", 0, "Unreachable");
const conflict = new ApiError("newer", 409, "Conflict");

describe("afterAttempts", () => {
  it.each([
    { title: "all went well", errors: [undefined, undefined], result: {} },
    { title: "the API server refused", errors: [undefined, refused], result: { requeueAfterMs: USER_RETRY_MS } },
    {
      title: "a name is taken",
      errors: [new NotOwnedError("Service", "a")],
      result: { requeueAfterMs: USER_RETRY_MS },
    },
    {
      title: "a deleted object is in the way",
      errors: [refused, new PredecessorError("Service", "a")],
      result: { requeueAfterMs: 500 },
    },
  ])("when $title", ({ errors, result }) => {
    expect(afterAttempts(...errors)).toEqual(result);
  });

  it.each([broken, conflict, new TypeError("bug")])("throws %s, so that it is tried again with backoff", error => {
    expect(() => afterAttempts(refused, error)).toThrow(error);
  });
});
