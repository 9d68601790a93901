import { LABEL, STATE_ANNOTATION, withoutTracking, type RoutingState } from "../../../api/labels.ts";
import { revisionName } from "../../../api/names.ts";
import { SERVING_API_VERSION, type Configuration, type Revision } from "../../../api/serving/v1/types.ts";
import { controllerReference } from "./metadata.ts";

/** The name a Configuration's present template gets: its own, or one from the generation. */
const nameOfLatestRevision = (configuration: Configuration): string =>
  configuration.spec.template.metadata?.name ||
  revisionName(configuration.metadata.name ?? "", configuration.metadata.generation ?? 0);

/**
 * The revision of a Configuration's present generation. Created once and never changed, but for what it says of its routes:
 * `routes` are the names of those that take the Configuration's latest.
 */
export function buildRevision(configuration: Configuration, routes: readonly string[], now: string): Revision {
  const { metadata, spec } = configuration;
  const state: RoutingState = routes.length > 0 ? "active" : "pending";
  const labels: Record<string, string | undefined> = {
    ...withoutTracking(spec.template.metadata?.labels),
    [LABEL.configuration]: metadata.name,
    [LABEL.configurationUid]: metadata.uid,
    [LABEL.configurationGeneration]: String(metadata.generation ?? 0),
    [LABEL.service]: metadata.labels?.[LABEL.service],
    [LABEL.serviceUid]: metadata.labels?.[LABEL.serviceUid],
    [LABEL.routingState]: state,
  };
  const creator = metadata.annotations?.[STATE_ANNOTATION.lastModifier];
  return {
    apiVersion: SERVING_API_VERSION,
    kind: "Revision",
    metadata: {
      name: nameOfLatestRevision(configuration),
      namespace: metadata.namespace,
      labels: Object.fromEntries(
        Object.entries(labels).filter((entry): entry is [string, string] => entry[1] !== undefined),
      ),
      annotations: {
        ...withoutTracking(spec.template.metadata?.annotations),
        ...(creator === undefined ? {} : { [STATE_ANNOTATION.creator]: creator }),
        ...(routes.length > 0 ? { [STATE_ANNOTATION.routes]: routes.join(",") } : {}),
        [STATE_ANNOTATION.routingStateModified]: now,
      },
      ownerReferences: [controllerReference(configuration, "Configuration")],
    },
    spec: spec.template.spec,
  };
}
