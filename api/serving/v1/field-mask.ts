import type { FeaturesConfig } from "../../config/features.ts";
import { disallowed } from "../../meta/field-error.ts";
import type { FieldErrors } from "../../meta/field-error.ts";

/**
 * Which fields of Kubernetes' types Knative lets a user set. Most others never get here, since the CRD's schema leaves them
 * out; objects of Kubernetes' own that the schema keeps whole, and callers other than the API server, are checked by this.
 */

/** A mask: the fields that may be set, and, for a field that may hold some values only, a test of its value. */
export type FieldMask = Readonly<Record<string, true | ((value: unknown) => boolean)>>;

export const fields = (...names: string[]): FieldMask => Object.fromEntries(names.map(name => [name, true]));

/** Flags of which false is more than their absence. */
const THREE_VALUED: ReadonlySet<string> = new Set(["shareProcessNamespace", "hostUsers", "setHostnameAsFQDN"]);

/** `must not set the field(s)` for what the mask does not let through. Empty texts, zeros and most false are not set. */
export function checkFields(object: object, mask: FieldMask): FieldErrors {
  const refused = Object.entries(object)
    .filter(([name, value]) => isSet(value) || (value === false && THREE_VALUED.has(name)))
    .filter(([name, value]) => {
      const allowed = Object.hasOwn(mask, name) ? mask[name] : undefined;
      return allowed === undefined || (allowed !== true && !allowed(value));
    })
    .map(([name]) => name)
    .sort();
  return refused.length === 0 ? [] : [disallowed(...refused)];
}

const isSet = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== "" && value !== 0 && value !== false && !isEmptyList(value);
const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

const onlyFalse = (value: unknown): boolean => value === false;

/** Fields of the pod spec behind a flag of config-features. */
const POD_FEATURES = {
  affinity: "kubernetes.podspec-affinity",
  topologySpreadConstraints: "kubernetes.podspec-topologyspreadconstraints",
  hostAliases: "kubernetes.podspec-hostaliases",
  nodeSelector: "kubernetes.podspec-nodeselector",
  runtimeClassName: "kubernetes.podspec-runtimeclassname",
  tolerations: "kubernetes.podspec-tolerations",
  shareProcessNamespace: "kubernetes.podspec-shareprocessnamespace",
  priorityClassName: "kubernetes.podspec-priorityclassname",
  schedulerName: "kubernetes.podspec-schedulername",
  initContainers: "kubernetes.podspec-init-containers",
  dnsPolicy: "kubernetes.podspec-dnspolicy",
  dnsConfig: "kubernetes.podspec-dnsconfig",
  hostIPC: "kubernetes.podspec-hostipc",
  hostPID: "kubernetes.podspec-hostpid",
  hostNetwork: "kubernetes.podspec-hostnetwork",
} as const satisfies Record<string, keyof FeaturesConfig>;

const VOLUME_FEATURES = {
  emptyDir: "kubernetes.podspec-volumes-emptydir",
  persistentVolumeClaim: "kubernetes.podspec-persistent-volume-claim",
  hostPath: "kubernetes.podspec-volumes-hostpath",
  csi: "kubernetes.podspec-volumes-csi",
  ephemeral: "kubernetes.podspec-volumes-ephemeral",
  image: "kubernetes.podspec-volumes-image",
} as const satisfies Record<string, keyof FeaturesConfig>;

function enabledFields(flags: Readonly<Record<string, keyof FeaturesConfig>>, features: FeaturesConfig): FieldMask {
  return fields(...Object.keys(flags).filter(name => features[flags[name]!] !== "disabled"));
}

const REVISION_FIELDS = fields(
  "containerConcurrency",
  "timeoutSeconds",
  "responseStartTimeoutSeconds",
  "idleTimeoutSeconds",
);

export const revisionSpecMask = (features: FeaturesConfig): FieldMask => ({
  ...REVISION_FIELDS,
  ...fields("containers", "volumes", "serviceAccountName", "imagePullSecrets", "enableServiceLinks"),
  automountServiceAccountToken: onlyFalse,
  ...enabledFields(POD_FEATURES, features),
  ...(features["kubernetes.podspec-securitycontext"] !== "disabled" || features["secure-pod-defaults"] !== "disabled"
    ? fields("securityContext")
    : {}),
});

export function podSecurityContextMask(features: FeaturesConfig): FieldMask {
  const optOut = (value: unknown): boolean => {
    const { type, ...others } = value as { readonly type?: string };
    return (type === "RuntimeDefault" || type === "Unconfined") && Object.values(others).every(v => !isSet(v));
  };
  const byDefaults: FieldMask = features["secure-pod-defaults"] === "disabled" ? {} : { seccompProfile: optOut };
  if (features["kubernetes.podspec-securitycontext"] === "disabled") return byDefaults;
  return fields("runAsUser", "runAsGroup", "runAsNonRoot", "fsGroup", "supplementalGroups", "seccompProfile");
}

export const CONTAINER_MASK = fields(
  "name",
  "args",
  "command",
  "env",
  "workingDir",
  "envFrom",
  "image",
  "imagePullPolicy",
  "livenessProbe",
  "ports",
  "readinessProbe",
  "resources",
  "securityContext",
  "startupProbe",
  "terminationMessagePath",
  "terminationMessagePolicy",
  "volumeMounts",
);

export const SECURITY_CONTEXT_MASK: FieldMask = {
  ...fields(
    "capabilities",
    "readOnlyRootFilesystem",
    "runAsUser",
    "runAsGroup",
    "runAsNonRoot",
    "allowPrivilegeEscalation",
    "seccompProfile",
  ),
  privileged: onlyFalse,
};

export function capabilitiesMask(features: FeaturesConfig): FieldMask {
  if (features["kubernetes.containerspec-addcapabilities"] === "enabled") return fields("add", "drop");
  if (features["secure-pod-defaults"] === "disabled") return fields("drop");
  return { drop: true, add: value => JSON.stringify(value) === '["NET_BIND_SERVICE"]' };
}

export const volumeMask = (features: FeaturesConfig): FieldMask => ({
  ...fields("name", "secret", "configMap", "projected"),
  ...enabledFields(VOLUME_FEATURES, features),
});

/** The volume types one may choose from: what is listed when none was. */
export const volumeTypes = (features: FeaturesConfig): string[] => [
  "secret",
  "configMap",
  "projected",
  ...Object.entries(VOLUME_FEATURES)
    .filter(([, flag]) => features[flag] === "enabled")
    .map(([name]) => name),
];

export const volumeMountMask = (features: FeaturesConfig): FieldMask => ({
  ...fields("name", "readOnly", "mountPath", "subPath"),
  ...(features["kubernetes.podspec-volumes-mount-propagation"] === "disabled" ? {} : fields("mountPropagation")),
});

export const envVarSourceMask = (features: FeaturesConfig): FieldMask => ({
  ...fields("configMapKeyRef", "secretKeyRef"),
  ...(features["kubernetes.podspec-fieldref"] === "disabled" ? {} : fields("fieldRef", "resourceFieldRef")),
});

export const PROBE_MASK = fields(
  "exec",
  "httpGet",
  "tcpSocket",
  "grpc",
  "initialDelaySeconds",
  "timeoutSeconds",
  "periodSeconds",
  "successThreshold",
  "failureThreshold",
  "terminationGracePeriodSeconds",
);
export const EXEC_MASK = fields("command");
export const HTTP_GET_MASK = fields("host", "path", "scheme", "httpHeaders", "port");
export const TCP_SOCKET_MASK = fields("host", "port");
export const GRPC_MASK = fields("port", "service");
export const CONTAINER_PORT_MASK = fields("containerPort", "name", "protocol");
export const ENV_VAR_MASK = fields("name", "value", "valueFrom");
export const ENV_FROM_MASK = fields("prefix", "configMapRef", "secretRef");
export const ENV_FROM_REF_MASK = fields("name", "optional");
export const RESOURCES_MASK = fields("limits", "requests");
export const KEY_TO_PATH_MASK = fields("key", "path", "mode");
export const PROJECTION_MASK = fields("secret", "configMap", "serviceAccountToken", "downwardAPI");
export const KEY_PROJECTION_MASK = fields("name", "items", "optional");
export const TOKEN_PROJECTION_MASK = fields("audience", "expirationSeconds", "path");
export const DOWNWARD_FILE_MASK = fields("fieldRef", "resourceFieldRef", "path", "mode");
export const IMAGE_VOLUME_MASK = fields("reference", "pullPolicy");
