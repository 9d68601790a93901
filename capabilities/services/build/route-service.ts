import { LABEL, withoutTracking } from "../../../api/labels.ts";
import { clusterHost, routeServiceName, tagServiceName } from "../../../api/names.ts";
import type { Route } from "../../../api/serving/v1/types.ts";
import type { CoreService } from "../kinds.ts";
import { annotated, controllerReference, routeChildLabels } from "./metadata.ts";

/** The gateways' Service for traffic from inside the cluster. */
export const INTERNAL_GATEWAY_SERVICE = "fairway-gateway-internal";

export interface RouteServiceSettings {
  readonly systemNamespace: string;
  readonly clusterDomain: string;
}

export const coreServiceName = (route: string, tag: string): string =>
  tag === "" ? routeServiceName(route) : tagServiceName(route, tag);

/**
 * The core Service by which a Route (tag "") or one of its tags is reached inside the cluster: an alias of the internal
 * gateway, which tells them apart by host. `existing` keeps labels and annotations once given, as Knative does, so that
 * selectors of others do not break when a label leaves the Route.
 */
export function buildRouteService(
  route: Route,
  tag: string,
  existing: CoreService | undefined,
  settings: RouteServiceSettings,
): CoreService {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      name: coreServiceName(route.metadata.name ?? "", tag),
      namespace: route.metadata.namespace,
      labels: { ...existing?.metadata?.labels, ...routeChildLabels(route), [LABEL.appManagedBy]: "fairway" },
      ...annotated({ ...existing?.metadata?.annotations, ...withoutTracking(route.metadata.annotations) }),
      ownerReferences: [controllerReference(route, "Route")],
    },
    spec: {
      type: "ExternalName",
      externalName: clusterHost(INTERNAL_GATEWAY_SERVICE, settings.systemNamespace, settings.clusterDomain),
      sessionAffinity: "None",
      ports: [{ name: "http", protocol: "TCP", port: 80, targetPort: 80 }],
    },
  };
}
