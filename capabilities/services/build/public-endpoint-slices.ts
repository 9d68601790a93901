import { FIELD_MANAGER, LABEL } from "../../../api/labels.ts";
import { childName, publicServiceName } from "../../../api/names.ts";
import type { Revision } from "../../../api/serving/v1/types.ts";
import type { PathMode } from "../../../core/autoscaling/lifecycle.ts";
import type { EndpointSlice } from "../kinds.ts";
import { controllerReference, revisionChildLabels } from "./metadata.ts";
import { QUEUE_PROXY_PORTS } from "./pod-settings.ts";
import { trafficPortName } from "./revision-services.ts";
import { protocolOf } from "./serving-container.ts";

/** What the API server takes in one EndpointSlice. */
const MAX_ENDPOINTS = 1000;

export interface EndpointSources {
  /** Slices of the gateways' internal Service. */
  readonly gateways: readonly EndpointSlice[];
  /** Slices of the revision's private Service. */
  readonly pods: readonly EndpointSlice[];
}

/**
 * Where the revision's public Service leads. Whatever the wish: without a ready pod to the gateways, where requests can
 * wait; without a ready gateway to the pods.
 */
export function buildPublicEndpointSlices(
  revision: Revision,
  wish: PathMode,
  sources: EndpointSources,
): readonly EndpointSlice[] {
  const mode = effectiveMode(wish, sources);
  const slices = mode === "serve" ? sources.pods : sources.gateways;
  const protocol = protocolOf(revision.spec);
  const name = revision.metadata.name ?? "";
  return addressTypes(slices).flatMap(addressType => {
    const endpoints = slices
      .filter(slice => slice.addressType === addressType)
      .flatMap(slice => slice.endpoints ?? [])
      .map(({ addresses, conditions, nodeName, zone, targetRef }) => ({
        addresses,
        conditions,
        nodeName,
        zone,
        targetRef,
      }));
    const port = mode === "serve" ? QUEUE_PROXY_PORTS[protocol] : gatewayPort(slices);
    return chunks(endpoints, MAX_ENDPOINTS).map(
      (chunk, index): EndpointSlice => ({
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        metadata: {
          name: childName(name, `-public-${addressType.toLowerCase()}-${index}`),
          namespace: revision.metadata.namespace,
          labels: {
            ...revisionChildLabels(revision),
            [LABEL.endpointSliceService]: publicServiceName(name),
            [LABEL.endpointSliceManagedBy]: FIELD_MANAGER,
          },
          ownerReferences: [controllerReference(revision, "Revision")],
        },
        addressType,
        endpoints: chunk,
        ports: [{ name: trafficPortName(protocol), protocol: "TCP", port }],
      }),
    );
  });
}

/** The mode that can be had now. */
export function effectiveMode(wish: PathMode, sources: EndpointSources): PathMode {
  if (!hasReady(sources.pods)) return "proxy";
  return hasReady(sources.gateways) ? wish : "serve";
}

/** An absent `ready` means ready. */
const hasReady = (slices: readonly EndpointSlice[]): boolean =>
  slices.some(slice => slice.endpoints?.some(endpoint => endpoint.conditions?.ready !== false) ?? false);

const addressTypes = (slices: readonly EndpointSlice[]): readonly string[] =>
  [...new Set(slices.map(slice => slice.addressType ?? "IPv4"))].toSorted();

const INTERNAL_LISTENER_PORT = 8081;
const gatewayPort = (slices: readonly EndpointSlice[]): number =>
  slices.flatMap(slice => slice.ports ?? []).find(port => port.name === "http")?.port ?? INTERNAL_LISTENER_PORT;

function chunks<T>(items: readonly T[], size: number): T[][] {
  const out: T[][] = [];
  for (let start = 0; start === 0 || start < items.length; start += size) out.push(items.slice(start, start + size));
  return out;
}
