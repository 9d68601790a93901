import type { V1EndpointSlice } from "@kubernetes/client-node";
import { expect, it } from "vitest";
import { gatewaySet } from "./gateway-set.ts";

function slice(service: string, endpoints: V1EndpointSlice["endpoints"]): V1EndpointSlice {
  return { metadata: { labels: { "kubernetes.io/service-name": service } }, addressType: "IPv4", endpoints };
}

it("knows which gateways exist and which take new requests", () => {
  const pod = (name: string, conditions: { ready?: boolean; terminating?: boolean }) => ({
    addresses: ["10.0.0.1"],
    targetRef: { kind: "Pod", name },
    conditions,
  });
  const set = gatewaySet([
    slice("fairway-gateway", [pod("a", { ready: true }), pod("b", { ready: false })]),
    slice("fairway-gateway", [pod("c", { ready: true, terminating: true }), pod("d", {})]),
    slice("fairway-operator", [pod("e", { ready: true })]),
  ]);
  expect([...set.existing]).toEqual(["a", "b", "c", "d"]);
  expect(set.ready).toEqual(["a", "d"]);
});
