import type { V1ConfigMap, V1Deployment, V1EndpointSlice, V1Pod, V1Service } from "@kubernetes/client-node";
import {
  SERVING_API_VERSION,
  type Configuration,
  type Revision,
  type Route,
  type Service,
} from "../../api/serving/v1/types.ts";
import { DOMAIN_MAPPING_API_VERSION, type DomainMapping } from "../../api/serving/v1beta1/types.ts";
import {
  FLOW_CONTROL_API_VERSION,
  type FlowSchema,
  type PriorityLevelConfiguration,
} from "../../api/flowcontrol/v1/types.ts";
import { defineResource } from "./resource.ts";

/** What Fairway makes or reads of Kubernetes' own kinds. Only objects that carry a revision's label are kept in memory. */
const ofRevisions = { labelSelector: "serving.knative.dev/revision" } as const;

export const deployments = defineResource<V1Deployment>("apps/v1", "Deployment", "deployments", { scope: ofRevisions });
export const pods = defineResource<V1Pod>("v1", "Pod", "pods", { scope: ofRevisions });
/** Kubernetes copies a Service's labels to its EndpointSlices. */
export const endpointSlices = defineResource<V1EndpointSlice>(
  "discovery.k8s.io/v1",
  "EndpointSlice",
  "endpointslices",
  {
    scope: ofRevisions,
  },
);
/** Services of revisions, and of routes: all that Fairway makes carry this label. */
export const coreServices = defineResource<V1Service>("v1", "Service", "services", {
  scope: { labelSelector: "app.kubernetes.io/managed-by=fairway" },
});
/** Where gateways are: slices of the system's own Services. */
export const systemEndpointSlices = defineResource<V1EndpointSlice>(
  "discovery.k8s.io/v1",
  "EndpointSlice",
  "endpointslices",
  { scope: { namespace: "system" } },
);
/** The system's own ConfigMaps: config-autoscaler and its like. */
export const configMaps = defineResource<V1ConfigMap>("v1", "ConfigMap", "configmaps", {
  scope: { namespace: "system" },
});

export const services = defineResource<Service>(SERVING_API_VERSION, "Service", "services");
export const configurations = defineResource<Configuration>(SERVING_API_VERSION, "Configuration", "configurations");
export const revisions = defineResource<Revision>(SERVING_API_VERSION, "Revision", "revisions");
export const routes = defineResource<Route>(SERVING_API_VERSION, "Route", "routes");
export const domainMappings = defineResource<DomainMapping>(
  DOMAIN_MAPPING_API_VERSION,
  "DomainMapping",
  "domainmappings",
);

export const priorityLevels = defineResource<PriorityLevelConfiguration>(
  FLOW_CONTROL_API_VERSION,
  "PriorityLevelConfiguration",
  "prioritylevelconfigurations",
  { namespaced: false },
);
export const flowSchemas = defineResource<FlowSchema>(FLOW_CONTROL_API_VERSION, "FlowSchema", "flowschemas", {
  namespaced: false,
});
