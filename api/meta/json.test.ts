import { expect, test } from "vitest";
import { diffJson, jsonEqual, withoutNulls } from "./json.ts";

test("absent, undefined and null are the same; order of keys does not matter, order of lists does", () => {
  expect(jsonEqual({ a: 1, b: undefined, c: null }, { a: 1 })).toBe(true);
  expect(jsonEqual({ a: { x: 1, y: 2 } }, { a: { y: 2, x: 1 } })).toBe(true);
  expect(jsonEqual([1, 2], [2, 1])).toBe(false);
});

test("differences are the smallest values, with their paths", () => {
  expect(diffJson({ a: { b: [{ c: 1 }, { c: 2 }] }, d: 1 }, { a: { b: [{ c: 1 }, { c: 3 }, { c: 4 }] } })).toEqual([
    { path: "a.b[1].c", before: 2, after: 3 },
    { path: "a.b[2]", before: undefined, after: { c: 4 } },
    { path: "d", before: 1, after: undefined },
  ]);
});

test("fields that are null are left out at any depth, items of lists are not", () => {
  expect(withoutNulls({ a: null, b: { c: null, d: 0 }, e: [{ f: null }, null, ""] })).toEqual({
    b: { d: 0 },
    e: [{}, null, ""],
  });
});
