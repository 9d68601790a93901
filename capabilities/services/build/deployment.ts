import { getAnnotation, SERVING_ANNOTATION } from "../../../api/annotations.ts";
import { parseDurationMs } from "../../../api/meta/go-format.ts";
import { AUTOSCALER_FIELD_MANAGER } from "../../../api/labels.ts";
import { deploymentName } from "../../../api/names.ts";
import type { Revision } from "../../../api/serving/v1/types.ts";
import type { Deployment } from "../kinds.ts";
import { controllerReference, revisionChildAnnotations, revisionChildLabels, revisionSelector } from "./metadata.ts";
import type { PodSettings } from "./pod-settings.ts";
import { buildPodSpec } from "./pod-spec.ts";
import { DEFAULT_CONTAINER, servingContainer } from "./serving-container.ts";

/** Says on a Deployment that `spec.replicas` has been handed to this field manager. */
export const SCALED_BY = "autoscaling.fairway.dev/scaled-by";

/**
 * The Deployment of a revision, without `spec.replicas`: that field is the autoscaler's, except at creation.
 * `maxUnavailable: 0`: a new sidecar image (an upgrade of Fairway) replaces each pod only after its successor is ready.
 */
export function buildDeployment(revision: Revision, settings: PodSettings): Deployment {
  const labels = revisionChildLabels(revision);
  const annotations = revisionChildAnnotations(revision);
  const mainContainer = servingContainer(revision.spec)?.name ?? DEFAULT_CONTAINER;
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: {
      name: deploymentName(revision.metadata.name ?? ""),
      namespace: revision.metadata.namespace,
      labels,
      annotations: { ...annotations, [SCALED_BY]: AUTOSCALER_FIELD_MANAGER },
      ownerReferences: [controllerReference(revision, "Revision")],
    },
    spec: {
      selector: { matchLabels: revisionSelector(revision) },
      progressDeadlineSeconds: progressDeadlineSeconds(revision, settings),
      revisionHistoryLimit: 0,
      strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0 } },
      template: {
        metadata: {
          labels,
          annotations: { ...annotations, "kubectl.kubernetes.io/default-container": mainContainer },
        },
        spec: buildPodSpec(revision, settings),
      },
    },
  };
}

/** At least a second: Kubernetes takes 0 for an error. */
export function progressDeadlineSeconds(revision: Revision, settings: PodSettings): number {
  const text = getAnnotation(revision.metadata.annotations, SERVING_ANNOTATION.progressDeadline)?.value;
  const ms = (text === undefined ? undefined : parseDurationMs(text)) ?? settings.deployment.progressDeadlineMs;
  return Math.max(1, Math.round(ms / 1000));
}
