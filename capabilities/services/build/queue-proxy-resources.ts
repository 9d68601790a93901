import { getAnnotation, SERVING_ANNOTATION, type AnnotationDefinition } from "../../../api/annotations.ts";
import { parseQuantity } from "../../../api/meta/quantity.ts";
import type { Revision } from "../../../api/serving/v1/types.ts";
import type { PodResources } from "../kinds.ts";
import type { PodSettings } from "./pod-settings.ts";
import { servingContainer } from "./serving-container.ts";

type ResourceName = "cpu" | "memory" | "ephemeral-storage";
type Quantities = Readonly<Record<string, string>>;
type Annotations = Readonly<Record<string, string>> | undefined;

/** With the feature `queueproxy.resource-defaults`, where config-deployment says nothing. */
const FEATURE_DEFAULTS = {
  requests: { cpu: "25m", memory: "400Mi" },
  limits: { cpu: "1000m", memory: "800Mi" },
} as const;

const EXPLICIT: Readonly<Record<"requests" | "limits", Readonly<Record<ResourceName, AnnotationDefinition>>>> = {
  requests: {
    cpu: SERVING_ANNOTATION.queueSidecarCpuRequest,
    memory: SERVING_ANNOTATION.queueSidecarMemoryRequest,
    "ephemeral-storage": SERVING_ANNOTATION.queueSidecarEphemeralStorageRequest,
  },
  limits: {
    cpu: SERVING_ANNOTATION.queueSidecarCpuLimit,
    memory: SERVING_ANNOTATION.queueSidecarMemoryLimit,
    "ephemeral-storage": SERVING_ANNOTATION.queueSidecarEphemeralStorageLimit,
  },
};

const MIB = 2 ** 20;
/** Bounds of a share of the user container's resources: Knative's, in cores and bytes. */
const SHARE_BOUNDS = {
  requests: { cpu: [0.025, 0.1], memory: [50 * MIB, 200 * MIB] },
  limits: { cpu: [0.04, 0.5], memory: [200 * MIB, 500 * MIB] },
} as const;

/**
 * Resources of the queue-proxy. Of what is said, the later wins: the feature's defaults, config-deployment, a share of
 * the user container's, the revision's own numbers.
 */
export function queueProxyResources(revision: Revision, settings: PodSettings): PodResources {
  const defaults = settings.features["queueproxy.resource-defaults"] === "enabled" ? FEATURE_DEFAULTS : undefined;
  const { annotations } = revision.metadata;
  const of = (kind: "requests" | "limits", configured: Quantities): Quantities => ({
    ...defaults?.[kind],
    ...configured,
    ...shareOfUserContainer(revision, kind),
    ...explicit(annotations, kind),
  });
  const requests = of("requests", settings.deployment.queueSidecarRequests);
  const limits = of("limits", settings.deployment.queueSidecarLimits);
  return {
    ...(Object.keys(requests).length > 0 ? { requests } : {}),
    ...(Object.keys(limits).length > 0 ? { limits } : {}),
  };
}

function explicit(annotations: Annotations, kind: "requests" | "limits"): Quantities {
  return Object.fromEntries(
    Object.entries(EXPLICIT[kind]).flatMap(([name, definition]) => {
      const value = getAnnotation(annotations, definition)?.value;
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

function shareOfUserContainer(revision: Revision, kind: "requests" | "limits"): Quantities {
  const text = getAnnotation(revision.metadata.annotations, SERVING_ANNOTATION.queueSidecarResourcePercentage)?.value;
  const fraction = Number(text) / 100;
  if (text === undefined || !Number.isFinite(fraction)) return {};
  const users = servingContainer(revision.spec)?.resources?.[kind] ?? {};
  const share = (name: "cpu" | "memory"): number | undefined => {
    const value = parseQuantity(users[name] ?? 0);
    const [low, high] = SHARE_BOUNDS[kind][name];
    return value ? Math.min(high, Math.max(low, value * fraction)) : undefined;
  };
  const cores = share("cpu");
  const bytes = share("memory");
  return {
    ...(cores === undefined ? {} : { cpu: `${Math.floor(cores * 1000)}m` }),
    ...(bytes === undefined ? {} : { memory: String(Math.floor(bytes)) }),
  };
}
