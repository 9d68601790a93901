import type { V1EndpointSlice } from "@kubernetes/client-node";
import { LABEL } from "../../api/labels.ts";

/** The Service whose endpoints are the gateways. */
export const GATEWAY_SERVICE = "fairway-gateway";

/** Pod names of the gateways, by the EndpointSlices of their Service. */
export interface GatewaySet {
  readonly existing: ReadonlySet<string>;
  /** Those that take new requests. */
  readonly ready: readonly string[];
}

export function gatewaySet(slices: readonly V1EndpointSlice[]): GatewaySet {
  const existing = new Set<string>();
  const ready = new Set<string>();
  for (const slice of slices) {
    if (slice.metadata?.labels?.[LABEL.endpointSliceService] !== GATEWAY_SERVICE) continue;
    for (const { targetRef, conditions } of slice.endpoints ?? []) {
      if (targetRef?.name === undefined) continue;
      existing.add(targetRef.name);
      if (conditions?.ready !== false && conditions?.terminating !== true) ready.add(targetRef.name);
    }
  }
  return { existing, ready: [...ready] };
}
