import { z } from "zod";
import {
  ATOMIC_LIST,
  ATOMIC_MAP,
  int32,
  int64,
  intOrString,
  mapList,
  opaque,
  quantity,
  stringMap,
} from "../../meta/schema.ts";

/**
 * The part of Kubernetes' PodSpec that Knative's v1 API lets a user set. Fields behind a feature flag
 * (ConfigMap config-features) are in the schema; admission refuses them while the flag is `disabled`.
 */

const localRefShape = {
  name: z.string().optional().meta({ default: "", description: "Name of the referent." }),
};

export const KeyToPathSchema = z.object({
  key: z.string().meta({ description: "Key of the ConfigMap or Secret." }),
  path: z.string().meta({ description: "Relative path of the file; may not contain `..`." }),
  mode: int32().optional().meta({ format: "int32", description: "File mode bits." }),
});
export type KeyToPath = z.infer<typeof KeyToPathSchema>;

const keyItems = () =>
  z
    .array(KeyToPathSchema)
    .optional()
    .meta({ ...ATOMIC_LIST, description: "Which keys become which files; absent: all." });
const optional = () => z.boolean().optional().meta({ description: "Whether the referent or its key may be missing." });
const defaultMode = () =>
  int32().optional().meta({ format: "int32", description: "Mode bits of files without their own." });

export const SecretVolumeSourceSchema = z.object({
  secretName: z.string().optional(),
  items: keyItems(),
  defaultMode: defaultMode(),
  optional: optional(),
});

export const ConfigMapVolumeSourceSchema = z
  .object({ ...localRefShape, items: keyItems(), defaultMode: defaultMode(), optional: optional() })
  .meta(ATOMIC_MAP);

export const DownwardAPIVolumeFileSchema = z.object({
  path: z.string(),
  fieldRef: z.object({ apiVersion: z.string().optional(), fieldPath: z.string() }).optional().meta(ATOMIC_MAP),
  resourceFieldRef: z
    .object({ containerName: z.string().optional(), divisor: quantity().optional(), resource: z.string() })
    .optional()
    .meta(ATOMIC_MAP),
  mode: int32().optional().meta({ format: "int32" }),
});

export const VolumeProjectionSchema = z.object({
  secret: z
    .object({ ...localRefShape, items: keyItems(), optional: optional() })
    .optional()
    .meta(ATOMIC_MAP),
  configMap: z
    .object({ ...localRefShape, items: keyItems(), optional: optional() })
    .optional()
    .meta(ATOMIC_MAP),
  downwardAPI: z.object({ items: z.array(DownwardAPIVolumeFileSchema).optional().meta(ATOMIC_LIST) }).optional(),
  serviceAccountToken: z
    .object({
      audience: z.string().optional(),
      expirationSeconds: int64().optional().meta({ format: "int64" }),
      path: z.string(),
    })
    .optional(),
});
export type VolumeProjection = z.infer<typeof VolumeProjectionSchema>;

export const VolumeSchema = z.object({
  name: z.string().meta({ description: "A DNS label, unique in the pod; every volume must be mounted." }),
  secret: SecretVolumeSourceSchema.optional(),
  configMap: ConfigMapVolumeSourceSchema.optional(),
  projected: z
    .object({
      sources: z.array(VolumeProjectionSchema).optional().meta(ATOMIC_LIST),
      defaultMode: defaultMode(),
    })
    .optional(),
  emptyDir: opaque().optional().meta({ description: "Feature `kubernetes.podspec-volumes-emptydir`." }),
  persistentVolumeClaim: opaque()
    .optional()
    .meta({ description: "Feature `kubernetes.podspec-persistent-volume-claim`." }),
  hostPath: opaque().optional().meta({ description: "Feature `kubernetes.podspec-volumes-hostpath`." }),
  csi: opaque().optional().meta({ description: "Feature `kubernetes.podspec-volumes-csi`." }),
  ephemeral: opaque().optional().meta({ description: "Feature `kubernetes.podspec-volumes-ephemeral`." }),
  image: opaque().optional().meta({ description: "Feature `kubernetes.podspec-volumes-image`." }),
});
export type Volume = z.infer<typeof VolumeSchema>;

export const VolumeMountSchema = z.object({
  name: z.string(),
  mountPath: z.string().meta({ description: "Absolute path; `/`, `/dev` and `/dev/log` are reserved." }),
  readOnly: z.boolean().optional().meta({
    description: "Set to true by admission except for emptyDir, persistentVolumeClaim and ephemeral volumes.",
  }),
  subPath: z.string().optional(),
  mountPropagation: z
    .string()
    .optional()
    .meta({ description: "Feature `kubernetes.podspec-volumes-mount-propagation`." }),
});
export type VolumeMount = z.infer<typeof VolumeMountSchema>;

const keySelector = () =>
  z
    .object({ ...localRefShape, key: z.string(), optional: optional() })
    .optional()
    .meta(ATOMIC_MAP);

export const EnvVarSchema = z.object({
  name: z.string().meta({ description: "PORT, K_SERVICE, K_CONFIGURATION and K_REVISION are reserved." }),
  value: z.string().optional(),
  valueFrom: z
    .object({
      configMapKeyRef: keySelector(),
      secretKeyRef: keySelector(),
      fieldRef: opaque()
        .optional()
        .meta({ ...ATOMIC_MAP, description: "Feature `kubernetes.podspec-fieldref`." }),
      resourceFieldRef: opaque()
        .optional()
        .meta({ ...ATOMIC_MAP, description: "Feature `kubernetes.podspec-fieldref`." }),
    })
    .optional(),
});
export type EnvVar = z.infer<typeof EnvVarSchema>;

export const EnvFromSourceSchema = z.object({
  prefix: z.string().optional(),
  configMapRef: z
    .object({ ...localRefShape, optional: optional() })
    .optional()
    .meta(ATOMIC_MAP),
  secretRef: z
    .object({ ...localRefShape, optional: optional() })
    .optional()
    .meta(ATOMIC_MAP),
});
export type EnvFromSource = z.infer<typeof EnvFromSourceSchema>;

const seconds = (description: string) => int32().optional().meta({ format: "int32", description });

export const ProbeSchema = z.object({
  exec: z.object({ command: z.array(z.string()).optional().meta(ATOMIC_LIST) }).optional(),
  httpGet: z
    .object({
      host: z.string().optional(),
      path: z.string().optional(),
      port: intOrString().optional().meta({
        "x-kubernetes-int-or-string": true,
        description: "Absent or 0: the container's serving port.",
      }),
      scheme: z.string().optional(),
      httpHeaders: z
        .array(z.object({ name: z.string(), value: z.string() }))
        .optional()
        .meta(ATOMIC_LIST),
    })
    .optional(),
  tcpSocket: z
    .object({
      host: z.string().optional(),
      port: intOrString().optional().meta({
        "x-kubernetes-int-or-string": true,
        description: "Absent or 0: the container's serving port.",
      }),
    })
    .optional(),
  grpc: z
    .object({
      port: int32().optional().meta({ format: "int32", description: "Absent or 0: the container's serving port." }),
      service: z.string().optional().meta({ default: "" }),
    })
    .optional(),
  initialDelaySeconds: seconds("Wait before the first probe."),
  periodSeconds: seconds("0 on a readiness probe: the queue-proxy probes as fast as is useful."),
  timeoutSeconds: seconds("Bound of one probe."),
  successThreshold: seconds("Successes in a row to count as ready."),
  failureThreshold: seconds("Failures in a row to count as failed."),
  terminationGracePeriodSeconds: int64().optional().meta({ format: "int64" }),
});
export type Probe = z.infer<typeof ProbeSchema>;

export const ContainerPortSchema = z.object({
  containerPort: int32()
    .optional()
    .meta({ format: "int32", description: "The one port requests go to; absent or 0: 8080, or what PORT says." }),
  name: z.string().optional().meta({ description: "`http1` (or empty) or `h2c`." }),
  protocol: z.string().optional().meta({ default: "TCP", description: "TCP." }),
});
export type ContainerPort = z.infer<typeof ContainerPortSchema>;

export const ResourceRequirementsSchema = z.object({
  limits: z.record(z.string(), quantity()).optional(),
  requests: z.record(z.string(), quantity()).optional(),
});
export type ResourceRequirements = z.infer<typeof ResourceRequirementsSchema>;

export const SecurityContextSchema = z.object({
  allowPrivilegeEscalation: z.boolean().optional(),
  capabilities: z
    .object({
      add: z
        .array(z.string())
        .optional()
        .meta({
          ...ATOMIC_LIST,
          description: "Feature `kubernetes.containerspec-addcapabilities`.",
        }),
      drop: z.array(z.string()).optional().meta(ATOMIC_LIST),
    })
    .optional(),
  privileged: z.boolean().optional().meta({ description: "Only false may be set." }),
  readOnlyRootFilesystem: z.boolean().optional(),
  runAsGroup: int64().optional().meta({ format: "int64" }),
  runAsNonRoot: z.boolean().optional(),
  runAsUser: int64().optional().meta({ format: "int64" }),
  seccompProfile: z.object({ type: z.string(), localhostProfile: z.string().optional() }).optional(),
});
export type SecurityContext = z.infer<typeof SecurityContextSchema>;

export const ContainerSchema = z.object({
  name: z
    .string()
    .optional()
    .meta({ description: "Defaults to `user-container`, with a suffix when there are several." }),
  image: z.string().optional(),
  imagePullPolicy: z.string().optional(),
  command: z.array(z.string()).optional().meta(ATOMIC_LIST),
  args: z.array(z.string()).optional().meta(ATOMIC_LIST),
  workingDir: z.string().optional(),
  env: z.array(EnvVarSchema).optional().meta(mapList("name")),
  envFrom: z.array(EnvFromSourceSchema).optional().meta(ATOMIC_LIST),
  ports: z.array(ContainerPortSchema).optional().meta({
    description: "At most one port in all containers together; the container that has it serves the requests.",
  }),
  resources: ResourceRequirementsSchema.optional(),
  livenessProbe: ProbeSchema.optional(),
  readinessProbe: ProbeSchema.optional().meta({ description: "Defaults to a TCP probe of the serving port." }),
  startupProbe: ProbeSchema.optional(),
  securityContext: SecurityContextSchema.optional(),
  terminationMessagePath: z.string().optional(),
  terminationMessagePolicy: z.string().optional(),
  volumeMounts: z.array(VolumeMountSchema).optional().meta(mapList("mountPath")),
});
export type Container = z.infer<typeof ContainerSchema>;

const feature = (flag: string) => ({ description: `Feature \`kubernetes.podspec-${flag}\`.` });

/** Fields of the pod that a revision may carry; RevisionSpec adds Knative's own. */
export const podSpecShape = {
  containers: z.array(ContainerSchema).meta({ description: "The user container, and sidecars beside it." }),
  initContainers: z.array(ContainerSchema).optional().meta(feature("init-containers")),
  volumes: z.array(VolumeSchema).optional().meta(mapList("name")),
  serviceAccountName: z.string().optional(),
  automountServiceAccountToken: z.boolean().optional().meta({ description: "Only false may be set." }),
  imagePullSecrets: z.array(z.object(localRefShape).meta(ATOMIC_MAP)).optional().meta(mapList("name")),
  enableServiceLinks: z.boolean().optional(),
  affinity: opaque().optional().meta(feature("affinity")),
  topologySpreadConstraints: z.array(opaque()).optional().meta(feature("topologyspreadconstraints")),
  hostAliases: z.array(opaque()).optional().meta(feature("hostaliases")),
  nodeSelector: stringMap()
    .optional()
    .meta({ ...ATOMIC_MAP, ...feature("nodeselector") }),
  tolerations: z.array(opaque()).optional().meta(feature("tolerations")),
  runtimeClassName: z.string().optional().meta(feature("runtimeclassname")),
  securityContext: opaque().optional().meta(feature("securitycontext")),
  shareProcessNamespace: z.boolean().optional().meta(feature("shareprocessnamespace")),
  priorityClassName: z.string().optional().meta(feature("priorityclassname")),
  schedulerName: z.string().optional().meta(feature("schedulername")),
  dnsPolicy: z.string().optional().meta(feature("dnspolicy")),
  dnsConfig: opaque().optional().meta(feature("dnsconfig")),
  hostIPC: z.boolean().optional().meta(feature("hostipc")),
  hostPID: z.boolean().optional().meta(feature("hostpid")),
  hostNetwork: z.boolean().optional().meta(feature("hostnetwork")),
};
