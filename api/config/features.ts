import { z } from "zod";
import { choice, parseConfigMap } from "./config-map.ts";
import type { ConfigData } from "./config-map.ts";

/**
 * ConfigMap config-features: which parts of the pod spec users may set. `enabled` and `allowed` let the field pass;
 * some checks ask for `enabled`.
 */
export const FEATURES_CONFIG_NAME = "config-features";

const FLAGS = ["enabled", "allowed", "disabled"] as const;
export type FeatureFlag = (typeof FLAGS)[number];

const flag = (defaults: FeatureFlag, description: string) => choice<FeatureFlag>(defaults, description, FLAGS);
const podSpec = (field: string) => flag("disabled", `The pod's \`${field}\`.`);

export const featuresShape = {
  "multi-container": flag("enabled", "Sidecars beside the user container."),
  "multi-container-probing": flag("disabled", "Probes of sidecars."),
  "autodetect-http2": flag("disabled", "Find out whether the user container speaks HTTP/2."),
  "domainmapping-direct-route-traffic": flag("disabled", "DomainMappings lead to the Route's targets directly."),
  "tag-header-based-routing": flag("disabled", "The header `Knative-Serving-Tag` chooses a tag."),
  "secure-pod-defaults": choice<"disabled" | "allowrootbounded" | "enabled">(
    "disabled",
    "Fill in the securityContext that the restricted Pod Security Standard asks for.",
    ["disabled", "allowrootbounded", "enabled"],
  ),
  "queueproxy.mount-podinfo": flag("disabled", "Pod information as a volume in the queue-proxy."),
  "queueproxy.resource-defaults": flag("disabled", "Resource defaults for the queue-proxy where none are set."),
  "kubernetes.containerspec-addcapabilities": flag("disabled", "A container's `securityContext.capabilities.add`."),
  "kubernetes.podspec-affinity": podSpec("affinity"),
  "kubernetes.podspec-topologyspreadconstraints": podSpec("topologySpreadConstraints"),
  "kubernetes.podspec-hostaliases": podSpec("hostAliases"),
  "kubernetes.podspec-fieldref": flag("disabled", "Environment from `fieldRef` and `resourceFieldRef`."),
  "kubernetes.podspec-nodeselector": podSpec("nodeSelector"),
  "kubernetes.podspec-runtimeclassname": podSpec("runtimeClassName"),
  "kubernetes.podspec-securitycontext": podSpec("securityContext"),
  "kubernetes.podspec-shareprocessnamespace": podSpec("shareProcessNamespace"),
  "kubernetes.podspec-hostipc": podSpec("hostIPC"),
  "kubernetes.podspec-hostpid": podSpec("hostPID"),
  "kubernetes.podspec-hostnetwork": podSpec("hostNetwork"),
  "kubernetes.podspec-priorityclassname": podSpec("priorityClassName"),
  "kubernetes.podspec-schedulername": podSpec("schedulerName"),
  "kubernetes.podspec-tolerations": podSpec("tolerations"),
  "kubernetes.podspec-dnspolicy": podSpec("dnsPolicy"),
  "kubernetes.podspec-dnsconfig": podSpec("dnsConfig"),
  "kubernetes.podspec-init-containers": podSpec("initContainers"),
  "kubernetes.podspec-volumes-emptydir": flag("enabled", "Volumes of type emptyDir."),
  "kubernetes.podspec-volumes-hostpath": flag("disabled", "Volumes of type hostPath."),
  "kubernetes.podspec-volumes-csi": flag("disabled", "Volumes of type csi."),
  "kubernetes.podspec-volumes-ephemeral": flag("disabled", "Volumes of type ephemeral."),
  "kubernetes.podspec-volumes-image": flag("disabled", "Volumes of type image."),
  "kubernetes.podspec-volumes-mount-propagation": flag("disabled", "`mountPropagation` of volume mounts."),
  "kubernetes.podspec-persistent-volume-claim": flag("disabled", "Volumes of type persistentVolumeClaim."),
  "kubernetes.podspec-persistent-volume-write": flag("disabled", "Claims that are not read-only."),
};

export const FeaturesConfigSchema = z.object(featuresShape);
/** By the keys of the ConfigMap. */
export type FeaturesConfig = Readonly<z.infer<typeof FeaturesConfigSchema>>;

export function parseFeaturesConfig(data?: ConfigData): FeaturesConfig {
  return parseConfigMap(FEATURES_CONFIG_NAME, FeaturesConfigSchema, data);
}
