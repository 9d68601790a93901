import { describe, expect, it } from "vitest";
import type { GatewayReport } from "../../api/wire/stats.ts";
import { GatewayRegistry } from "./gateway-registry.ts";

function report(gateway: string, sequence: number, more: Partial<GatewayReport> = {}): GatewayReport {
  return {
    gateway,
    instance: "boot-1",
    sequence,
    timestampMs: 1000 * sequence,
    revisions: [],
    programmed: {},
    full: false,
    poke: false,
    ...more,
  };
}

describe("GatewayRegistry", () => {
  it("calls a route programmed only when every ready gateway reported its fingerprint", () => {
    const registry = new GatewayRegistry(() => ["a", "b"]);
    registry.accept(report("a", 1, { full: true, programmed: { "ns/r": "v1" } }));
    expect(registry.isProgrammed("ns/r", "v1")).toBe(false);
    expect(registry.missing("ns/r", "v1")).toEqual(["b"]);
    registry.accept(report("b", 1, { full: true, programmed: { "ns/r": "v1" } }));
    expect(registry.isProgrammed("ns/r", "v1")).toBe(true);
    expect(registry.isProgrammed("ns/r", "v2")).toBe(false);
  });

  it("is never programmed without a ready gateway", () => {
    const registry = new GatewayRegistry(() => []);
    registry.accept(report("a", 1, { full: true, programmed: { "ns/r": "v1" } }));
    expect(registry.isProgrammed("ns/r", "v1")).toBe(false);
  });

  it("asks for the whole table from a gateway it does not know, and after a restart of the gateway", () => {
    const registry = new GatewayRegistry(() => ["a"]);
    expect(registry.accept(report("a", 5, { programmed: { "ns/r": "v1" } }))).toEqual({ needFull: true });
    expect(registry.isProgrammed("ns/r", "v1")).toBe(false);
    expect(registry.accept(report("a", 6, { full: true, programmed: { "ns/r": "v1" } }))).toEqual({ needFull: false });
    expect(registry.accept(report("a", 1, { instance: "boot-2" }))).toEqual({ needFull: true });
  });

  it("drops routes that a full report no longer names, keeps them over partial ones", () => {
    const registry = new GatewayRegistry(() => ["a"]);
    registry.accept(report("a", 1, { full: true, programmed: { "ns/r": "v1", "ns/s": "v1" } }));
    registry.accept(report("a", 2, { programmed: { "ns/r": "v2" } }));
    expect(registry.isProgrammed("ns/s", "v1")).toBe(true);
    registry.accept(report("a", 3, { full: true, programmed: { "ns/r": "v2" } }));
    expect(registry.isProgrammed("ns/s", "v1")).toBe(false);
  });

  it("ignores a report that was overtaken by a later one", () => {
    const registry = new GatewayRegistry(() => ["a"]);
    registry.accept(report("a", 3, { full: true, programmed: { "ns/r": "v2" } }));
    registry.accept(report("a", 2, { programmed: { "ns/r": "v1" } }));
    expect(registry.isProgrammed("ns/r", "v2")).toBe(true);
  });

  it("tells listeners which routes were reported", () => {
    const registry = new GatewayRegistry(() => ["a"]);
    const heard: string[] = [];
    registry.onChange(key => heard.push(key));
    registry.accept(report("a", 1, { full: true, programmed: { "ns/r": "v1", "ns/s": "v1" } }));
    expect(heard).toEqual(["ns/r", "ns/s"]);
  });

  it("forgets gateways that are gone", () => {
    const registry = new GatewayRegistry(() => ["a"]);
    registry.accept(report("a", 1, { full: true, programmed: { "ns/r": "v1" } }));
    registry.retain(new Set(["b"]));
    expect(registry.isProgrammed("ns/r", "v1")).toBe(false);
  });

  it("asks again about every route when the set of ready gateways changed", () => {
    let ready = ["a", "b"];
    const registry = new GatewayRegistry(() => ready);
    registry.accept(report("a", 1, { full: true, programmed: { "ns/r": "v1" } }));
    const heard: string[] = [];
    registry.onChange(key => heard.push(`${key} ${registry.isProgrammed(key, "v1")}`));
    ready = ["a"];
    registry.readyGatewaysChanged();
    expect(heard).toEqual(["ns/r true"]);
  });
});
