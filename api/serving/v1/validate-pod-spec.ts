import type { FeaturesConfig } from "../../config/features.ts";
import { dns1123SubdomainErrors } from "../../meta/dns.ts";
import {
  asWarning,
  at,
  atIndex,
  generic,
  invalidValue,
  missing,
  missingOneOf,
  multipleOneOf,
  outOfBounds,
  SELF,
} from "../../meta/field-error.ts";
import type { FieldErrors } from "../../meta/field-error.ts";
import { INT32_MAX, quote } from "../../meta/go-format.ts";
import { parseQuantity } from "../../meta/quantity.ts";
import * as mask from "./field-mask.ts";
import { checkFields } from "./field-mask.ts";
import { isImageReference } from "./image-reference.ts";
import type { Container, ContainerPort, EnvFromSource, EnvVar, SecurityContext } from "./pod-spec.ts";
import { isGoogleServiceAccount } from "./service-account.ts";
import type { RevisionSpec } from "./types.ts";
import { validateProbe, validateReadinessProbe } from "./validate-probe.ts";
import type { ServingPort } from "./validate-probe.ts";
import { validateVolumeMounts, validateVolumes } from "./validate-volumes.ts";
import type { Volumes } from "./validate-volumes.ts";

/** Rules for the pod of a revision, those of Knative's pkg/apis/serving/k8s_validation.go. Paths begin at the spec. */

const RESERVED_CONTAINER_NAME = "queue-proxy";
const RESERVED_ENV: ReadonlySet<string> = new Set(["PORT", "K_SERVICE", "K_CONFIGURATION", "K_REVISION"]);
/** The queue-proxy listens on these in the same pod. */
const RESERVED_PORTS: ReadonlySet<number> = new Set([8008, 8012, 8013, 8022, 9090, 9091]);

/** What a container is for decides some of its rules. */
type Role = "user" | "sidecar" | "init";

export function validatePodSpec(spec: RevisionSpec, features: FeaturesConfig): FieldErrors {
  const initContainers = spec.initContainers ?? [];
  const all = [...initContainers, ...spec.containers];
  const mounted = new Set(all.flatMap(container => (container.volumeMounts ?? []).map(mount => mount.name)));
  const volumes: Volumes = new Map((spec.volumes ?? []).map(volume => [volume.name, volume]));
  const { port, errors: portErrors } = servingPort(spec.containers);
  return [
    ...checkFields(spec, mask.revisionSpecMask(features)),
    ...at("securityContext", validatePodSecurityContext(spec.securityContext, features)),
    ...at("volumes", validateVolumes(spec.volumes ?? [], mounted, features)),
    ...validateInitContainers(initContainers, spec.containers, volumes, features),
    ...at("containers[*]", portErrors),
    ...validateContainers(spec.containers, volumes, port, features),
    ...validateServiceAccount(spec.serviceAccountName),
    ...(all.length > 0 ? insecureDefaults(spec, features) : []),
  ];
}

function validateServiceAccount(name: string | undefined): FieldErrors {
  if (name === undefined || name === "") return [];
  if (isGoogleServiceAccount(name)) {
    const message = `${quote(name)} is no Kubernetes service account and is ignored: pods run as the namespace's default`;
    return [asWarning(generic(message, ["serviceAccountName"]))];
  }
  return dns1123SubdomainErrors(name).map(error => invalidValue(name, "serviceAccountName", error));
}

function validateContainers(
  containers: readonly Container[],
  volumes: Volumes,
  port: ServingPort,
  features: FeaturesConfig,
): FieldErrors {
  const [first] = containers;
  if (first === undefined) return [missing("containers")];
  if (containers.length === 1) return atIndex("containers", 0, validateServing(first, volumes, port, features));
  if (features["multi-container"] !== "enabled") {
    return [generic(`multi-container is off, but found ${containers.length} containers`, [SELF])];
  }
  return containers.flatMap((container, i) => [
    ...atIndex("containers", i, duplicateName(container, containers.slice(0, i))),
    ...atIndex(
      "containers",
      i,
      (container.ports ?? []).length === 0
        ? validateSidecar(container, volumes, features)
        : validateServing(container, volumes, port, features),
    ),
  ]);
}

function validateInitContainers(
  initContainers: readonly Container[],
  containers: readonly Container[],
  volumes: Volumes,
  features: FeaturesConfig,
): FieldErrors {
  if (initContainers.length === 0) return [];
  if (features["kubernetes.podspec-init-containers"] !== "enabled") {
    const message = `pod spec support for init-containers is off, but found ${initContainers.length} init containers`;
    return [generic(message, [SELF])];
  }
  return initContainers.flatMap((container, i) =>
    atIndex("initContainers", i, [
      ...duplicateName(container, [...containers, ...initContainers.slice(0, i)]),
      ...["livenessProbe", "readinessProbe", "startupProbe", "lifecycle"]
        .filter(field => (container as Readonly<Record<string, unknown>>)[field] !== undefined)
        .map(field => generic("field not allowed in an init container", [field])),
      ...validateContainer(container, "init", volumes, features),
    ]),
  );
}

const duplicateName = (container: Container, others: readonly Container[]): FieldErrors =>
  others.some(other => other.name === container.name)
    ? [generic(`duplicate container name ${quote(container.name ?? "")}`, ["name"])]
    : [];

function servingPort(containers: readonly Container[]): { port: ServingPort; errors: FieldErrors } {
  const ports = containers.flatMap(container => container.ports ?? []);
  const owner = containers.findLast(container => (container.ports ?? []).length > 0);
  const port = { name: owner?.ports?.[0]?.name || "http", containerPort: owner?.ports?.[0]?.containerPort || 8080 };
  if (ports.length === 0 && containers.length > 1) return { port, errors: [missing("ports")] };
  const details = "Only a single port is allowed across all containers";
  return {
    port,
    errors: ports.length > 1 ? [generic("more than one container port is set", ["ports"], details)] : [],
  };
}

function validateServing(
  container: Container,
  volumes: Volumes,
  port: ServingPort,
  features: FeaturesConfig,
): FieldErrors {
  return [
    ...at("livenessProbe", validateProbe(container.livenessProbe, port)),
    ...at("readinessProbe", validateReadinessProbe(container.readinessProbe, port)),
    ...at("startupProbe", validateProbe(container.startupProbe, port)),
    ...validateContainer(container, "user", volumes, features),
  ];
}

function validateSidecar(container: Container, volumes: Volumes, features: FeaturesConfig): FieldErrors {
  const probes =
    features["multi-container-probing"] === "enabled"
      ? [
          ...at("livenessProbe", validateProbe(container.livenessProbe, undefined)),
          ...at("readinessProbe", validateReadinessProbe(container.readinessProbe, undefined)),
          ...at("startupProbe", validateProbe(container.startupProbe, undefined)),
        ]
      : (["livenessProbe", "readinessProbe", "startupProbe"] as const).flatMap(name =>
          at(name, checkFields(container[name] ?? {}, {})),
        );
  return [...probes, ...validateContainer(container, "sidecar", volumes, features)];
}

function validateContainer(container: Container, role: Role, volumes: Volumes, features: FeaturesConfig): FieldErrors {
  if (Object.values(container).every(value => value === undefined)) return [missing(SELF)];
  const image = container.image ?? "";
  const policy = container.terminationMessagePolicy ?? "";
  return [
    ...checkFields(container, mask.CONTAINER_MASK),
    ...(container.name === RESERVED_CONTAINER_NAME
      ? [generic(`${quote(container.name)} is a reserved container name`, ["name"])]
      : []),
    ...at(
      "env",
      (container.env ?? []).flatMap((env, i) => at(i, validateEnvVar(env, role, features))),
    ),
    ...at(
      "envFrom",
      (container.envFrom ?? []).flatMap((source, i) => at(i, validateEnvFrom(source))),
    ),
    ...(image === ""
      ? [missing("image")]
      : isImageReference(image)
        ? []
        : [
            generic(
              "Failed to parse image reference",
              ["image"],
              `image: ${quote(image)}, error: could not parse reference: ${image}`,
            ),
          ]),
    ...at("ports", validatePorts(container.ports ?? [], role)),
    ...at("resources", validateResources(container)),
    ...at("securityContext", validateSecurityContext(container.securityContext, features)),
    ...(["", "File", "FallbackToLogsOnError"].includes(policy)
      ? []
      : [invalidValue(policy, "terminationMessagePolicy")]),
    ...at("volumeMounts", validateVolumeMounts(container.volumeMounts ?? [], volumes, features)),
  ];
}

function validateEnvVar(env: EnvVar, role: Role, features: FeaturesConfig): FieldErrors {
  const reserved = RESERVED_ENV.has(env.name) && !(env.name === "PORT" && role !== "user");
  return [
    ...checkFields(env, mask.ENV_VAR_MASK),
    ...(env.name === ""
      ? [missing("name")]
      : reserved
        ? [generic(`${quote(env.name)} is a reserved environment variable`, ["name"])]
        : []),
    ...at("valueFrom", env.valueFrom === undefined ? [] : checkFields(env.valueFrom, mask.envVarSourceMask(features))),
  ];
}

function validateEnvFrom(source: EnvFromSource): FieldErrors {
  const { configMapRef, secretRef } = source;
  const oneOf =
    configMapRef !== undefined && secretRef !== undefined
      ? [multipleOneOf("configMapRef", "secretRef")]
      : configMapRef === undefined && secretRef === undefined
        ? [missingOneOf("configMapRef", "secretRef")]
        : [];
  return [
    ...checkFields(source, mask.ENV_FROM_MASK),
    ...at("configMapRef", checkFields(configMapRef ?? {}, mask.ENV_FROM_REF_MASK)),
    ...at("secretRef", checkFields(secretRef ?? {}, mask.ENV_FROM_REF_MASK)),
    ...oneOf,
  ];
}

function validatePorts(ports: readonly ContainerPort[], role: Role): FieldErrors {
  if (role === "init") return ports.flatMap(validatePortNumber);
  const [port] = ports;
  if (port === undefined) return [];
  const protocol = port.protocol ?? "";
  const name = port.name ?? "";
  return [
    ...validatePortNumber(port),
    ...(protocol === "" || protocol === "TCP" ? [] : [invalidValue(protocol, "protocol")]),
    ...(["", "h2c", "http1"].includes(name)
      ? []
      : [generic(`Port name ${name} is not allowed`, [SELF], "Name must be empty, or one of: 'h2c', 'http1'")]),
  ];
}

function validatePortNumber(port: ContainerPort): FieldErrors {
  const number = port.containerPort ?? 0;
  return [
    ...checkFields(port, mask.CONTAINER_PORT_MASK),
    ...(RESERVED_PORTS.has(number)
      ? [
          invalidValue(
            `${number} is a reserved port`,
            "containerPort",
            `${number} is a reserved port, please use a different value`,
          ),
        ]
      : []),
    ...(number < 0 || number > 65535 ? [outOfBounds(number, 0, 65535, "containerPort")] : []),
  ];
}

function validateResources({ resources }: Container): FieldErrors {
  if (resources === undefined) return [];
  const quantities = (["limits", "requests"] as const).flatMap(kind =>
    at(
      kind,
      Object.entries(resources[kind] ?? {})
        .filter(([, value]) => parseQuantity(value) === undefined)
        .map(([name, value]) => invalidValue(value, name)),
    ),
  );
  return [...checkFields(resources, mask.RESOURCES_MASK), ...quantities];
}

const idBounds = (name: string, value: unknown): FieldErrors =>
  typeof value === "number" && (value < 0 || value > INT32_MAX) ? [outOfBounds(value, 0, INT32_MAX, name)] : [];

function validateSecurityContext(context: SecurityContext | undefined, features: FeaturesConfig): FieldErrors {
  if (context === undefined) return [];
  return [
    ...checkFields(context, mask.SECURITY_CONTEXT_MASK),
    ...at("capabilities", checkFields(context.capabilities ?? {}, mask.capabilitiesMask(features))),
    ...idBounds("runAsUser", context.runAsUser),
    ...idBounds("runAsGroup", context.runAsGroup),
  ];
}

function validatePodSecurityContext(
  context: Readonly<Record<string, unknown>> | undefined,
  features: FeaturesConfig,
): FieldErrors {
  if (context === undefined) return [];
  const groups: readonly unknown[] = Array.isArray(context["supplementalGroups"]) ? context["supplementalGroups"] : [];
  return [
    ...checkFields(context, mask.podSecurityContextMask(features)),
    ...["runAsUser", "runAsGroup", "fsGroup"].flatMap(name => idBounds(name, context[name])),
    ...groups.flatMap((group, i) => atIndex("supplementalGroups", i, idBounds(SELF, group))),
  ];
}

/** Settings whose absence Kubernetes takes for the less secure choice: warned of, never refused. */
function insecureDefaults(spec: RevisionSpec, features: FeaturesConfig): FieldErrors {
  if (features["secure-pod-defaults"] !== "disabled") return [];
  const pod: Readonly<Record<string, unknown>> = spec.securityContext ?? {};
  const podSeccomp = pod["seccompProfile"] as { readonly type?: string } | undefined;
  const ofContainer = ({ securityContext: own = {} }: Container): FieldErrors => {
    const unset = [
      ...(pod["runAsNonRoot"] === undefined && own.runAsNonRoot === undefined ? ["runAsNonRoot"] : []),
      ...(own.allowPrivilegeEscalation === undefined ? ["allowPrivilegeEscalation"] : []),
      ...(podSeccomp?.type || own.seccompProfile?.type ? [] : ["seccompProfile"]),
      ...(own.capabilities === undefined
        ? ["capabilities"]
        : own.capabilities.drop === undefined
          ? ["capabilities.drop"]
          : []),
    ];
    const misspelt = own.capabilities?.drop?.[0] === "all";
    return [
      ...(unset.length === 0 ? [] : [generic("unset, and Kubernetes' default is insecure", unset)]),
      ...(misspelt ? [invalidValue("all", "capabilities.drop", "Must be spelled as 'ALL'")] : []),
    ].map(asWarning);
  };
  const of = (field: "containers" | "initContainers") =>
    (spec[field] ?? []).flatMap((container, i) => atIndex(field, i, at("securityContext", ofContainer(container))));
  return [...of("containers"), ...of("initContainers")];
}
