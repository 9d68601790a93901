import { SERVING_ANNOTATION } from "../../../api/annotations.ts";
import { LABEL, STATE_ANNOTATION, withoutTracking } from "../../../api/labels.ts";
import { configurationName, routeName } from "../../../api/names.ts";
import { SERVING_API_VERSION, type Configuration, type Service } from "../../../api/serving/v1/types.ts";
import { controllerReference } from "./metadata.ts";

const ROLLOUT_KEYS: ReadonlySet<string> = new Set(SERVING_ANNOTATION.rolloutDuration.keys);

/** The Configuration of a Service: its template, and its labels and annotations as far as they are not a tool's own. */
export function buildConfiguration(service: Service): Configuration {
  const name = service.metadata.name ?? "";
  const annotations = Object.entries(withoutTracking(service.metadata.annotations)).filter(
    ([key]) => !ROLLOUT_KEYS.has(key),
  );
  return {
    apiVersion: SERVING_API_VERSION,
    kind: "Configuration",
    metadata: {
      name: configurationName(name),
      namespace: service.metadata.namespace,
      labels: {
        ...withoutTracking(service.metadata.labels),
        [LABEL.service]: name,
        [LABEL.serviceUid]: service.metadata.uid ?? "",
      },
      // Revisions are made as routed: the Route may come a moment later.
      annotations: { ...Object.fromEntries(annotations), [STATE_ANNOTATION.routes]: routeName(name) },
      ownerReferences: [controllerReference(service, "Service")],
    },
    spec: { template: service.spec.template },
  };
}
