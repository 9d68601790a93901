import { describe, expect, it } from "vitest";
import { endpointsOf, type EndpointSlice } from "./endpoints.ts";

type Endpoints = NonNullable<EndpointSlice["endpoints"]>;

const slice = (endpoints: Endpoints, more: Partial<EndpointSlice> = {}): EndpointSlice => ({
  metadata: { name: "s", namespace: "ns" },
  addressType: "IPv4",
  ports: [
    { name: "http-usermetric", port: 9091 },
    { name: "http", port: 8012 },
  ],
  endpoints,
  ...more,
});

describe("endpointsOf", () => {
  it("reads pods with the port that takes requests", () => {
    const pod = { addresses: ["10.0.0.1"], conditions: { ready: true }, targetRef: { name: "p", uid: "u" } };
    expect(endpointsOf([slice([pod])])).toEqual([
      { podName: "p", podUid: "u", address: "10.0.0.1:8012", ready: true, terminating: false },
    ]);
    const h2c = slice([pod], { ports: [{ name: "http2", port: 8013 }] });
    expect(endpointsOf([h2c])[0]?.address).toBe("10.0.0.1:8013");
    const v6 = slice([{ addresses: ["fd00::1"] }], { addressType: "IPv6" });
    expect(endpointsOf([v6])[0]).toMatchObject({ address: "[fd00::1]:8012", podName: "fd00::1" });
  });

  it.each<[NonNullable<Endpoints[number]["conditions"]>, boolean]>([
    [{}, true],
    [{ ready: null }, true],
    [{ ready: false }, false],
    [{ ready: true, terminating: true }, false],
    [{ ready: false, terminating: true }, false],
  ])("%j: ready %s", (conditions, ready) => {
    const [endpoint] = endpointsOf([slice([{ addresses: ["10.0.0.1"], conditions }])]);
    expect(endpoint?.ready).toBe(ready);
    expect(endpoint?.terminating).toBe(conditions.terminating === true);
  });

  it("takes an endpoint that two slices have once, the ready one", () => {
    const at = (ready: boolean) => slice([{ addresses: ["10.0.0.1"], conditions: { ready } }]);
    for (const both of [
      [at(true), at(false)],
      [at(false), at(true)],
    ])
      expect(endpointsOf(both)).toMatchObject([{ ready: true }]);
  });

  it("leaves out slices without such a port and endpoints without an address", () => {
    expect(endpointsOf([slice([{ addresses: ["10.0.0.1"] }], { ports: [{ name: "other", port: 1 }] })])).toEqual([]);
    expect(endpointsOf([slice([{ addresses: [] }]), slice([], { endpoints: null, ports: null })])).toEqual([]);
  });
});
