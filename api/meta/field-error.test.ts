import { expect, test } from "vitest";
import {
  asWarning,
  at,
  atIndex,
  atKey,
  disallowed,
  generic,
  invalidValue,
  missing,
  outOfBounds,
  SELF,
  validationFailure,
  validationWarnings,
} from "./field-error.ts";

test("errors are merged by message, with paths and errors sorted, one a line, details below", () => {
  const errors = at("spec", [
    ...atIndex("containers", 1, [missing("image")]),
    ...atIndex("containers", 0, [missing("image"), disallowed("lifecycle")]),
    outOfBounds(700, 0, 600, "timeoutSeconds"),
    invalidValue("foo@bar", "serviceAccountName", "why"),
  ]);
  expect(validationFailure(errors)).toBe(
    [
      "validation failed: expected 0 <= 700 <= 600: spec.timeoutSeconds",
      "invalid value: foo@bar: spec.serviceAccountName",
      "why",
      "missing field(s): spec.containers[0].image, spec.containers[1].image",
      "must not set the field(s): spec.containers[0].lifecycle",
    ].join("\n"),
  );
});

test("an index of an index and a key that contains dots keep their form", () => {
  expect(at("a", at(0, at(1, [missing(SELF)])))[0]?.paths).toEqual(["a[0][1]"]);
  expect(at("metadata.annotations", atKey("a.b/c", [missing(SELF)]))[0]?.paths).toEqual([
    "metadata.annotations.[a.b/c]",
  ]);
});

test("warnings do not refuse", () => {
  const errors = [asWarning(generic("deprecated", ["metadata"]))];
  expect(validationFailure(errors)).toBeUndefined();
  expect(validationWarnings(errors)).toEqual(["deprecated: metadata"]);
});
