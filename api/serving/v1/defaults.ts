import type { FeaturesConfig } from "../../config/features.ts";
import { isObject, jsonEqual } from "../../meta/json.ts";
import type { ObjectMeta } from "../../meta/object-meta.ts";
import { childName } from "../../names.ts";
import type { AdmissionConfig, DefaultingContext, Operation } from "../admission.ts";
import { withUserInfo } from "../admission.ts";
import type { Container, Probe, SecurityContext, VolumeMount } from "./pod-spec.ts";
import { sameInKubernetes } from "./semantic-diff.ts";
import type {
  Configuration,
  Revision,
  RevisionSpec,
  RevisionTemplate,
  Route,
  Service,
  TrafficTarget,
} from "./types.ts";

/** What admission fills in. Each function returns a new object; the argument is never changed. Rules: Knative v1. */

export function setServiceDefaults(service: Service, context: DefaultingContext<Service>): Service {
  const defaulted: Service = {
    ...service,
    spec: {
      ...service.spec,
      template: defaultTemplate(service.spec.template, context.old?.spec.template, service.metadata, context),
      traffic: (service.spec.traffic ?? []).length > 0 ? defaultTraffic(service.spec.traffic) : ALL_TO_LATEST,
    },
  };
  return withUserInfo(defaulted, context);
}

export function setConfigurationDefaults(
  configuration: Configuration,
  context: DefaultingContext<Configuration>,
): Configuration {
  const { spec, metadata } = configuration;
  const template = defaultTemplate(spec.template, context.old?.spec.template, metadata, context);
  return withUserInfo({ ...configuration, spec: { ...spec, template } }, context);
}

/** A Revision's spec is immutable: only a new one is given defaults. */
export function setRevisionDefaults(revision: Revision, context: DefaultingContext<Revision>): Revision {
  if (context.operation === "UPDATE") return revision;
  const { operation, config } = context;
  return { ...revision, spec: defaultRevisionSpec(revision.spec, {}, config, serviceLinks(operation, config)) };
}

export function setRouteDefaults(route: Route, context: DefaultingContext<Route>): Route {
  const spec = route.spec === undefined ? {} : { spec: { ...route.spec, traffic: defaultTraffic(route.spec.traffic) } };
  return withUserInfo({ ...route, ...spec }, context);
}

const ALL_TO_LATEST: TrafficTarget[] = [{ latestRevision: true, percent: 100 }];

const defaultTraffic = (traffic: readonly TrafficTarget[] | undefined): TrafficTarget[] =>
  (traffic ?? []).map(target => ({
    ...target,
    latestRevision: target.latestRevision ?? !target.revisionName,
    percent: target.percent ?? 0,
  }));

/**
 * A template that keeps a name of its own must not change, not even by a default that is new since it was written: what is
 * sent back as it was stays as it was. What was applied again from the user's file, without defaults, gets them.
 */
function defaultTemplate(
  given: RevisionTemplate,
  old: RevisionTemplate | undefined,
  parent: ObjectMeta,
  { operation, config }: { readonly operation: Operation; readonly config: AdmissionConfig },
): RevisionTemplate {
  const template = withoutEmptyMetadata(given);
  const name = template.metadata?.name;
  const keepsName = name !== undefined && name !== "" && old?.metadata?.name === name;
  if (keepsName && jsonEqual(old, template, sameInKubernetes)) return template;
  return {
    ...template,
    spec: defaultRevisionSpec(template.spec, parent, config, serviceLinks(operation, config, old)),
  };
}

/**
 * Maps without keys say nothing, but a template that has one and then has not would be another generation, so another revision:
 * server-side apply leaves `annotations` behind as null, as `{}` or not at all when its last key goes.
 */
function withoutEmptyMetadata({ metadata, ...template }: RevisionTemplate): RevisionTemplate {
  const said = Object.entries(metadata ?? {}).filter(([, value]) => !isObject(value) || Object.keys(value).length > 0);
  return said.length === 0 ? template : { metadata: Object.fromEntries(said), ...template };
}

/** Only a new object gets the default, since it came later than the first objects; an old one keeps what it has. */
const serviceLinks = (
  operation: Operation,
  { defaults }: AdmissionConfig,
  old?: RevisionTemplate,
): boolean | undefined => (operation === "CREATE" ? defaults.enableServiceLinks : old?.spec.enableServiceLinks);

function defaultRevisionSpec(
  spec: RevisionSpec,
  parent: ObjectMeta,
  { defaults, features }: AdmissionConfig,
  defaultServiceLinks: boolean | undefined,
): RevisionSpec {
  const timeoutSeconds = spec.timeoutSeconds || defaults.revisionTimeoutSeconds;
  const shorter = (seconds: number) => (seconds !== 0 && seconds < timeoutSeconds ? seconds : undefined);
  const idleTimeoutSeconds = spec.idleTimeoutSeconds ?? shorter(defaults.revisionIdleTimeoutSeconds);
  const responseStartTimeoutSeconds =
    spec.responseStartTimeoutSeconds ?? shorter(defaults.revisionResponseStartTimeoutSeconds);
  const enableServiceLinks = spec.enableServiceLinks ?? defaultServiceLinks;

  const templateData = { Name: parent.name ?? "", Namespace: parent.namespace ?? "" };
  const taken = new Set([...spec.containers, ...(spec.initContainers ?? [])].map(container => container.name ?? ""));
  const containers = nameContainers(spec.containers, defaults.containerNameTemplate.render(templateData), taken);
  const initContainers = nameContainers(
    spec.initContainers ?? [],
    defaults.initContainerNameTemplate.render(templateData),
    taken,
  );
  const writable = new Set(
    (spec.volumes ?? [])
      .filter(volume => volume.emptyDir ?? volume.persistentVolumeClaim ?? volume.ephemeral)
      .map(volume => volume.name),
  );
  const podProfile = spec.securityContext ?? {};

  return {
    ...spec,
    timeoutSeconds,
    containerConcurrency: spec.containerConcurrency ?? defaults.containerConcurrency,
    ...(idleTimeoutSeconds === undefined ? {} : { idleTimeoutSeconds }),
    ...(responseStartTimeoutSeconds === undefined ? {} : { responseStartTimeoutSeconds }),
    ...(enableServiceLinks === undefined ? {} : { enableServiceLinks }),
    containers: containers.map(container => {
      const serves = containers.length === 1 || (container.ports ?? []).length > 0;
      return defaultSecurityContext(defaultContainer(container, serves, writable, defaults), podProfile, features);
    }),
    ...(spec.initContainers === undefined
      ? {}
      : { initContainers: initContainers.map(container => defaultSecurityContext(container, podProfile, features)) }),
  };
}

/** `user-container`, or with `-0`, `-1`, ... when there are several, around the names that the user chose. */
function nameContainers(containers: readonly Container[], base: string, taken: ReadonlySet<string>): Container[] {
  let next = 0;
  return containers.map(container => {
    if (container.name) return container;
    let name = base;
    if (containers.length > 1 || taken.has(name)) {
      do name = childName(base, `-${next++}`);
      while (taken.has(name));
    }
    return { ...container, name };
  });
}

function defaultContainer(
  container: Container,
  serves: boolean,
  writable: ReadonlySet<string>,
  defaults: AdmissionConfig["defaults"],
): Container {
  const requests = { ...defaults.requests, ...container.resources?.requests };
  const limits = { ...defaults.limits, ...container.resources?.limits };
  const resources = {
    ...container.resources,
    ...(Object.keys(requests).length === 0 ? {} : { requests }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
  };
  const readinessProbe = defaultReadinessProbe(container.readinessProbe, serves);
  return {
    ...container,
    resources,
    ...(readinessProbe === undefined ? {} : { readinessProbe }),
    ...(container.livenessProbe === undefined ? {} : { livenessProbe: withGrpcService(container.livenessProbe) }),
    ...(container.startupProbe === undefined ? {} : { startupProbe: withGrpcService(container.startupProbe) }),
    ...(container.volumeMounts === undefined
      ? {}
      : { volumeMounts: container.volumeMounts.map(mount => readOnlyUnless(writable, mount)) }),
  };
}

const readOnlyUnless = (writable: ReadonlySet<string>, mount: VolumeMount): VolumeMount =>
  writable.has(mount.name) ? mount : { ...mount, readOnly: true };

/** The serving container is probed on its port unless it says otherwise; a sidecar only if it says so. */
function defaultReadinessProbe(probe: Probe | undefined, serves: boolean): Probe | undefined {
  if (probe === undefined && !serves) return undefined;
  const own = withGrpcService(probe ?? {});
  const hasHandler = own.tcpSocket ?? own.httpGet ?? own.exec ?? own.grpc;
  return {
    ...own,
    ...(serves && hasHandler === undefined ? { tcpSocket: {} } : {}),
    successThreshold: own.successThreshold || 1,
    ...(own.periodSeconds
      ? { failureThreshold: own.failureThreshold || 3, timeoutSeconds: own.timeoutSeconds || 1 }
      : {}),
  };
}

const withGrpcService = (probe: Probe): Probe =>
  probe.grpc === undefined ? probe : { ...probe, grpc: { ...probe.grpc, service: probe.grpc.service ?? "" } };

/** What the restricted Pod Security Standard asks for, with the feature secure-pod-defaults. */
function defaultSecurityContext(
  container: Container,
  pod: Readonly<Record<string, unknown>>,
  features: FeaturesConfig,
): Container {
  const mode = features["secure-pod-defaults"];
  if (mode === "disabled") return container;
  const own: SecurityContext = container.securityContext ?? {};
  const podSeccomp = pod["seccompProfile"] as { readonly type?: string } | undefined;
  const lowPort = (container.ports ?? []).some(port => (port.containerPort ?? 0) < 1024);
  return {
    ...container,
    securityContext: {
      ...own,
      allowPrivilegeEscalation: own.allowPrivilegeEscalation ?? false,
      ...(podSeccomp?.type ? {} : { seccompProfile: own.seccompProfile?.type ? own.seccompProfile : RUNTIME_DEFAULT }),
      capabilities: own.capabilities ?? { drop: ["ALL"], ...(lowPort ? { add: ["NET_BIND_SERVICE"] } : {}) },
      ...(mode === "enabled" && pod["runAsNonRoot"] === undefined ? { runAsNonRoot: own.runAsNonRoot ?? true } : {}),
    },
  };
}

const RUNTIME_DEFAULT = { type: "RuntimeDefault" };
