import { LABEL } from "../../../api/labels.ts";
import { privateServiceName, publicServiceName } from "../../../api/names.ts";
import type { Revision } from "../../../api/serving/v1/types.ts";
import type { CoreService, ServicePort } from "../kinds.ts";
import { controllerReference, revisionChildLabels, revisionSelector } from "./metadata.ts";
import { QUEUE_PROXY_PORTS } from "./pod-settings.ts";
import { protocolOf, type Protocol } from "./serving-container.ts";

export const SERVICE_TYPE_LABEL = "networking.internal.knative.dev/serviceType";

/** Selects the revision's pods: where gateways find them. */
export function buildPrivateService(revision: Revision): CoreService {
  return {
    ...serviceOf(revision, privateServiceName(revision.metadata.name ?? ""), "Private"),
    spec: {
      type: "ClusterIP",
      selector: revisionSelector(revision),
      ports: [
        trafficPort(protocolOf(revision.spec)),
        { name: "http-usermetric", protocol: "TCP", port: QUEUE_PROXY_PORTS.metrics, targetPort: "http-usermetric" },
      ],
    },
  };
}

/** Has no selector: `buildPublicEndpointSlices` says whether it leads to the gateways or to the pods. */
export function buildPublicService(revision: Revision): CoreService {
  return {
    ...serviceOf(revision, publicServiceName(revision.metadata.name ?? ""), "Public"),
    spec: { type: "ClusterIP", ports: [trafficPort(protocolOf(revision.spec))] },
  };
}

/** kube-proxy joins a Service's port and an EndpointSlice's by this name. */
export const trafficPortName = (protocol: Protocol): string => (protocol === "h2c" ? "http2" : "http");

const trafficPort = (protocol: Protocol): ServicePort => ({
  name: trafficPortName(protocol),
  ...(protocol === "h2c" ? { appProtocol: "kubernetes.io/h2c" } : {}),
  protocol: "TCP",
  port: 80,
  targetPort: QUEUE_PROXY_PORTS[protocol],
});

function serviceOf(revision: Revision, name: string, type: "Private" | "Public"): CoreService {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      name,
      namespace: revision.metadata.namespace,
      labels: { ...revisionChildLabels(revision), [SERVICE_TYPE_LABEL]: type, [LABEL.appManagedBy]: "fairway" },
      ownerReferences: [controllerReference(revision, "Revision")],
    },
  };
}
