import { CLOUD_RUN_ANNOTATION, getAnnotation } from "../../../api/annotations.ts";
import { LABEL, VISIBILITY_CLUSTER_LOCAL, withoutTracking } from "../../../api/labels.ts";
import { configurationName, routeName } from "../../../api/names.ts";
import { SERVING_API_VERSION, type Route, type Service, type TrafficTarget } from "../../../api/serving/v1/types.ts";
import { annotated, controllerReference } from "./metadata.ts";

/** The Route of a Service: its traffic, where "latest" means the Service's own Configuration. */
export function buildRoute(service: Service): Route {
  const name = service.metadata.name ?? "";
  const latest: TrafficTarget = { latestRevision: true, percent: 100 };
  const traffic = service.spec.traffic?.length ? service.spec.traffic : [latest];
  const internal = getAnnotation(service.metadata.annotations, CLOUD_RUN_ANNOTATION.ingress)?.value === "internal";
  return {
    apiVersion: SERVING_API_VERSION,
    kind: "Route",
    metadata: {
      name: routeName(name),
      namespace: service.metadata.namespace,
      labels: {
        ...(internal ? { [LABEL.visibility]: VISIBILITY_CLUSTER_LOCAL } : {}),
        ...withoutTracking(service.metadata.labels),
        [LABEL.service]: name,
      },
      ...annotated(withoutTracking(service.metadata.annotations)),
      ownerReferences: [controllerReference(service, "Service")],
    },
    spec: {
      traffic: traffic.map(target =>
        target.revisionName ? target : { ...target, configurationName: configurationName(name) },
      ),
    },
  };
}
