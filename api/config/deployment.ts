import { z } from "zod";
import { dns1123SubdomainErrors } from "../meta/dns.ts";
import {
  bool,
  choice,
  ConfigError,
  duration,
  list,
  parseConfigMap,
  quantityText,
  text,
  withAliases,
} from "./config-map.ts";
import type { ConfigData } from "./config-map.ts";

/** ConfigMap config-deployment: how a revision's pods are made. */
export const DEPLOYMENT_CONFIG_NAME = "config-deployment";

export const deploymentShape = {
  "queue-sidecar-image": text("", "Image of the queue-proxy; empty: the operator's own image."),
  "progress-deadline": duration("600s", "How long a Deployment may make no progress before its revision has failed.", {
    above: 0,
    wholeSeconds: true,
  }),
  "digest-resolution-timeout": duration("10s", "Bound of asking a registry for an image's digest.", { above: 0 }),
  "registries-skipping-tag-resolving": list(
    "kind.local,ko.local,dev.local",
    "Registries whose tags are used as they are.",
  ),
  "queue-sidecar-cpu-request": quantityText("25m", "CPU request of the queue-proxy."),
  "queue-sidecar-cpu-limit": quantityText("", "CPU limit of the queue-proxy."),
  "queue-sidecar-memory-request": quantityText("", "Memory request of the queue-proxy."),
  "queue-sidecar-memory-limit": quantityText("", "Memory limit of the queue-proxy."),
  "queue-sidecar-ephemeral-storage-request": quantityText("", "Ephemeral storage request of the queue-proxy."),
  "queue-sidecar-ephemeral-storage-limit": quantityText("", "Ephemeral storage limit of the queue-proxy."),
  "default-affinity-type": choice("prefer-spread-revision-over-nodes", "Affinity of pods that bring none.", [
    "prefer-spread-revision-over-nodes",
    "none",
  ]),
  "runtime-class-name": text("", "YAML: runtime class -> `selector` of labels of the pods that get it.", "YAML"),
  "pod-is-always-schedulable": bool(
    "false",
    "An unschedulable pod is waited for (a cluster autoscaler will make room) instead of failing the revision.",
  ),
};

/** Newer spelling -> older spelling. */
export const DEPLOYMENT_ALIASES = {
  "queue-sidecar-image": "queueSidecarImage",
  "progress-deadline": "progressDeadline",
  "digest-resolution-timeout": "digestResolutionTimeout",
  "registries-skipping-tag-resolving": "registriesSkippingTagResolving",
  "queue-sidecar-cpu-request": "queueSidecarCPURequest",
  "queue-sidecar-cpu-limit": "queueSidecarCPULimit",
  "queue-sidecar-memory-request": "queueSidecarMemoryRequest",
  "queue-sidecar-memory-limit": "queueSidecarMemoryLimit",
  "queue-sidecar-ephemeral-storage-request": "queueSidecarEphemeralStorageRequest",
  "queue-sidecar-ephemeral-storage-limit": "queueSidecarEphemeralStorageLimit",
};

const DeploymentConfigSchema = z.object(deploymentShape);

export interface RuntimeClassRule {
  readonly runtimeClassName: string;
  readonly selector: Readonly<Record<string, string>>;
}

export interface DeploymentConfig {
  /** Empty: the operator's own image. */
  readonly queueSidecarImage: string;
  readonly progressDeadlineMs: number;
  readonly digestResolutionTimeoutMs: number;
  readonly registriesSkippingTagResolving: readonly string[];
  readonly queueSidecarRequests: Readonly<Record<string, string>>;
  readonly queueSidecarLimits: Readonly<Record<string, string>>;
  readonly defaultAffinityType: "prefer-spread-revision-over-nodes" | "none";
  readonly runtimeClasses: readonly RuntimeClassRule[];
  readonly podIsAlwaysSchedulable: boolean;
}

/** `parseYaml` reads `runtime-class-name`; it is passed in, so that this module stays free of libraries. */
export function parseDeploymentConfig(
  data: ConfigData | undefined,
  parseYaml: (text: string) => unknown,
): DeploymentConfig {
  const c = parseConfigMap(DEPLOYMENT_CONFIG_NAME, DeploymentConfigSchema, withAliases(data, DEPLOYMENT_ALIASES));
  return {
    queueSidecarImage: c["queue-sidecar-image"],
    progressDeadlineMs: c["progress-deadline"],
    digestResolutionTimeoutMs: c["digest-resolution-timeout"],
    registriesSkippingTagResolving: c["registries-skipping-tag-resolving"],
    queueSidecarRequests: resources(
      c["queue-sidecar-cpu-request"],
      c["queue-sidecar-memory-request"],
      c["queue-sidecar-ephemeral-storage-request"],
    ),
    queueSidecarLimits: resources(
      c["queue-sidecar-cpu-limit"],
      c["queue-sidecar-memory-limit"],
      c["queue-sidecar-ephemeral-storage-limit"],
    ),
    defaultAffinityType: c["default-affinity-type"],
    runtimeClasses: parseRuntimeClasses(c["runtime-class-name"], parseYaml),
    podIsAlwaysSchedulable: c["pod-is-always-schedulable"],
  };
}

const RuntimeClassesSchema = z.record(
  z.string(),
  z.object({ selector: z.record(z.string(), z.string()).optional() }).nullable(),
);

function parseRuntimeClasses(yaml: string, parseYaml: (text: string) => unknown): RuntimeClassRule[] {
  const refuse = (message: string) => new ConfigError(DEPLOYMENT_CONFIG_NAME, [{ key: "runtime-class-name", message }]);
  if (yaml.trim() === "") return [];
  let value: unknown;
  try {
    value = parseYaml(yaml);
  } catch (error) {
    throw refuse(`must be YAML: ${error instanceof Error ? error.message : String(error)}`);
  }
  const result = RuntimeClassesSchema.safeParse(value);
  if (!result.success) throw refuse(`must be a map of runtime classes to selectors, was ${JSON.stringify(yaml)}`);
  return Object.entries(result.data).map(([runtimeClassName, rule]) => {
    const [nameError] = dns1123SubdomainErrors(runtimeClassName);
    if (nameError !== undefined) throw refuse(`${JSON.stringify(runtimeClassName)}: ${nameError}`);
    return { runtimeClassName, selector: rule?.selector ?? {} };
  });
}

/** The runtime class for a pod with these labels: the rule that matches by the most labels, then the smallest name. */
export function runtimeClassFor(
  config: Pick<DeploymentConfig, "runtimeClasses">,
  labels: Readonly<Record<string, string>>,
): string | undefined {
  const weight = (rule: RuntimeClassRule) => Object.keys(rule.selector).length;
  return config.runtimeClasses
    .filter(rule => Object.entries(rule.selector).every(([key, value]) => labels[key] === value))
    .toSorted((a, b) => weight(b) - weight(a) || (a.runtimeClassName < b.runtimeClassName ? -1 : 1))[0]
    ?.runtimeClassName;
}

function resources(cpu: string | undefined, memory: string | undefined, storage: string | undefined) {
  const all = { cpu, memory, "ephemeral-storage": storage };
  return Object.fromEntries(Object.entries(all).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])));
}
