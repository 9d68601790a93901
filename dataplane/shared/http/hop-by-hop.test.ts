import { describe, expect, it } from "vitest";
import { connectionOptions, endToEndHeaders } from "./hop-by-hop.ts";

describe("hop-by-hop fields", () => {
  it("ends the well-known ones here, whatever their case", () => {
    const raw = ["Host", "a", "CONNECTION", "keep-alive", "Keep-Alive", "timeout=5", "TE", "trailers", "X-A", "1"];
    expect(endToEndHeaders(raw)).toEqual(["Host", "a", "X-A", "1"]);
  });

  it("ends those that Connection names, also over several fields", () => {
    const raw = ["Connection", "close, X-One", "connection", "x-two", "X-One", "1", "X-Two", "2", "X-Three", "3"];
    expect(endToEndHeaders(raw)).toEqual(["X-Three", "3"]);
  });

  it("keeps duplicates and their order", () => {
    const raw = ["Set-Cookie", "a=1", "Set-Cookie", "b=2"];
    expect(endToEndHeaders(raw)).toEqual(raw);
  });

  it("allocates no set in the usual case", () => {
    expect(connectionOptions(["Connection", "keep-alive, Upgrade"])).toBeUndefined();
  });

  it("leaves out what the caller drops", () => {
    expect(endToEndHeaders(["A", "1", "B", "2"], new Set(["a"]))).toEqual(["B", "2"]);
  });
});
