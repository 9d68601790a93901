import { describe, expect, it } from "vitest";
import {
  addressPlan,
  AddressesExhaustedError,
  freeAddressPlan,
  MAX_CLUSTERS,
  rangesOverlap,
  routedRanges,
} from "./address-plan.ts";

describe("addressPlan", () => {
  it("gives the first cluster the first of each range", () => {
    expect(addressPlan(0)).toEqual({
      index: 0,
      hostLink: "fairway0",
      hostIp: "10.90.0.1",
      nodeIp: "10.90.0.2",
      linkPrefixLength: 30,
      podRange: "10.91.0.0/24",
      serviceRange: "10.92.0.0/20",
      apiServiceIp: "10.92.0.1",
      dnsServiceIp: "10.92.0.10",
    });
  });

  it("gives no two clusters, and no two purposes, a common address", () => {
    const ranges = Array.from({ length: MAX_CLUSTERS }, (_, index) => addressPlan(index)).flatMap(plan => [
      `${plan.nodeIp}/${plan.linkPrefixLength}`,
      plan.podRange,
      plan.serviceRange,
    ]);
    for (const [at, range] of ranges.entries()) {
      expect(ranges.slice(at + 1).filter(other => rangesOverlap(range, other))).toEqual([]);
    }
  });

  it("refuses an index that has no ranges", () => {
    expect(() => addressPlan(MAX_CLUSTERS)).toThrow("cluster index 64: must be a whole number from 0 to 63");
  });
});

describe("freeAddressPlan", () => {
  it("takes the lowest index that is not in use", () => {
    expect(freeAddressPlan(new Set([0, 1, 3]), []).index).toBe(2);
  });

  it("passes over ranges that the host has routes to", () => {
    expect(freeAddressPlan(new Set(), ["10.92.0.0/19", "172.17.0.0/16"]).index).toBe(2);
  });

  it("says so when the host's networks leave no room", () => {
    expect(() => freeAddressPlan(new Set([5]), ["10.0.0.0/8"])).toThrow(AddressesExhaustedError);
  });
});

describe("rangesOverlap", () => {
  it.each([
    ["10.0.0.0/8", "10.92.0.0/20", true],
    ["10.92.0.0/20", "10.0.0.0/8", true],
    ["10.90.0.2/30", "10.90.0.4/30", false],
    ["0.0.0.0/0", "10.90.0.4/30", true],
    ["192.168.255.0/24", "193.0.0.0/8", false],
  ])("of %s and %s is %s", (left, right, expected) => {
    expect(rangesOverlap(left, right)).toBe(expected);
  });
});

describe("routedRanges", () => {
  const table = [
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT",
    "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0",
    "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0",
    "fairway0\t00005B0A\t02005A0A\t0003\t0\t0\t0\t00FFFFFF\t0\t0\t0",
    "",
  ].join("\n");

  it("reads destinations, without the default route and the clusters' own links", () => {
    expect(routedRanges(table, new Set(["fairway0"]))).toEqual(["192.0.2.0/24"]);
    expect(routedRanges(table, new Set())).toEqual(["192.0.2.0/24", "10.91.0.0/24"]);
  });
});
