import { runtimeClassFor } from "../../../api/config/deployment.ts";
import { LABEL } from "../../../api/labels.ts";
import { podServiceAccountName } from "../../../api/serving/v1/service-account.ts";
import type { Container, Probe, ResourceRequirements } from "../../../api/serving/v1/pod-spec.ts";
import type { Revision } from "../../../api/serving/v1/types.ts";
import type { PodContainer, PodEnvVar, PodResources, PodSpec } from "../kinds.ts";
import { variable } from "./metadata.ts";
import { QUEUE_PROXY_PORTS, type PodSettings } from "./pod-settings.ts";
import { sharedProcessNamespace } from "./process-namespace.ts";
import { buildQueueProxyContainer } from "./queue-proxy-container.ts";
import { DEFAULT_CONTAINER, servingContainer, userPort } from "./serving-container.ts";

const DEFAULT_TIMEOUT_SECONDS = 300;
/** Kubernetes' own default: what short timeouts get, so that there is time to leave the endpoints before the end. */
const MIN_GRACE_SECONDS = 30;
/** A request may still come in for a moment after the pod was told to stop; it gets its whole time too. */
const DRAIN_SLACK_SECONDS = 5;

/** The user's containers as they asked for them, with the queue-proxy beside them. */
export function buildPodSpec(revision: Revision, settings: PodSettings): PodSpec {
  const {
    containers,
    initContainers,
    serviceAccountName: _account,
    containerConcurrency: _concurrency,
    timeoutSeconds,
    responseStartTimeoutSeconds: _responseStart,
    idleTimeoutSeconds: _idle,
    ...pod
  } = revision.spec;
  const serviceAccountName = podServiceAccountName(revision.spec);
  const runtimeClassName = pod.runtimeClassName ?? runtimeClassFor(settings.deployment, revision.metadata.labels ?? {});
  const spread = settings.deployment.defaultAffinityType === "prefer-spread-revision-over-nodes";
  const affinity = pod.affinity ?? (spread ? spreadOverNodes(revision) : undefined);
  const enableServiceLinks = pod.enableServiceLinks ?? settings.enableServiceLinks;
  const leavesOutToken =
    !settings.automountServiceAccountToken &&
    serviceAccountName === undefined &&
    pod.automountServiceAccountToken === undefined;
  const shareProcessNamespace = sharedProcessNamespace(revision);
  return {
    ...(pod as PodSpec),
    initContainers: [...(initContainers ?? []).map(buildInitContainer), buildQueueProxyContainer(revision, settings)],
    containers: containers.map(container => buildUserContainer(container, revision)),
    terminationGracePeriodSeconds: Math.max(
      (timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS) + DRAIN_SLACK_SECONDS,
      MIN_GRACE_SECONDS,
    ),
    ...(serviceAccountName === undefined ? {} : { serviceAccountName }),
    ...(runtimeClassName === undefined ? {} : { runtimeClassName }),
    ...(affinity === undefined ? {} : { affinity }),
    ...(enableServiceLinks === undefined ? {} : { enableServiceLinks }),
    ...(shareProcessNamespace === undefined ? {} : { shareProcessNamespace }),
    ...(leavesOutToken ? { automountServiceAccountToken: false } : {}),
  };
}

function buildUserContainer(container: Container, revision: Revision): PodContainer {
  const serves = container === servingContainer(revision.spec);
  const port = userPort(revision.spec);
  const { ports: _ports, env, resources, readinessProbe, livenessProbe, startupProbe, ...rest } = container;
  return {
    ...rest,
    ...(resources === undefined ? {} : { resources: resourcesAsText(resources) }),
    name: container.name ?? DEFAULT_CONTAINER,
    ...(serves ? { ports: [{ name: "user-port", containerPort: port, protocol: "TCP" }] } : {}),
    env: uniqueByName([
      ...(env ?? []),
      ...(serves ? [variable("PORT", String(port))] : []),
      variable("K_REVISION", revision.metadata.name ?? ""),
      variable("K_CONFIGURATION", revision.metadata.labels?.[LABEL.configuration] ?? ""),
      variable("K_SERVICE", revision.metadata.labels?.[LABEL.service] ?? ""),
    ]),
    // A command can only be run by the kubelet; every other check is the queue-proxy's.
    ...(readinessProbe?.exec === undefined ? {} : { readinessProbe: quickened(readinessProbe) }),
    ...(livenessProbe === undefined ? {} : { livenessProbe: withPort(livenessProbe, port) }),
    ...(startupProbe === undefined ? {} : { startupProbe: withPort(startupProbe, port) }),
    // The kubelet sends the app SIGTERM only after the queue-proxy has answered: no request is left.
    lifecycle: { preStop: { httpGet: { path: "/drain", port: QUEUE_PROXY_PORTS.admin, scheme: "HTTP" } } },
    terminationMessagePolicy: container.terminationMessagePolicy ?? "FallbackToLogsOnError",
  };
}

function buildInitContainer(container: Container): PodContainer {
  const { resources, ...rest } = container;
  return {
    ...rest,
    ...(resources === undefined ? {} : { resources: resourcesAsText(resources) }),
    name: container.name ?? "init-container",
    terminationMessagePolicy: container.terminationMessagePolicy ?? "FallbackToLogsOnError",
  };
}

/** YAML may carry a quantity as a number; the API's form is text. */
function resourcesAsText(resources: ResourceRequirements): PodResources {
  const texts = (quantities: Readonly<Record<string, number | string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(quantities).map(([name, value]) => [name, String(value)]));
  return {
    ...(resources.requests === undefined ? {} : { requests: texts(resources.requests) }),
    ...(resources.limits === undefined ? {} : { limits: texts(resources.limits) }),
  };
}

/** Server-side apply refuses a name twice. Kubernetes gives the process the last one, so that one stays. */
function uniqueByName(env: readonly PodEnvVar[]): PodEnvVar[] {
  const last = new Map(env.map((variable, index) => [variable.name, index]));
  return env.filter((variable, index) => last.get(variable.name) === index);
}

/** Probes may leave the port to the system: absent and 0 both mean the serving port. */
function withPort(probe: Probe, port: number): Probe {
  const filled = <T extends { port?: unknown }>(action: T): T => (action.port ? action : { ...action, port });
  return {
    ...probe,
    ...(probe.httpGet === undefined ? {} : { httpGet: filled(probe.httpGet) }),
    ...(probe.tcpSocket === undefined ? {} : { tcpSocket: filled(probe.tcpSocket) }),
    ...(probe.grpc === undefined ? {} : { grpc: filled(probe.grpc) }),
  };
}

const quickened = (probe: Probe): Probe => ({ ...probe, periodSeconds: probe.periodSeconds || 1 });

function spreadOverNodes(revision: Revision): PodSpec["affinity"] {
  return {
    podAntiAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        {
          weight: 100,
          podAffinityTerm: {
            topologyKey: "kubernetes.io/hostname",
            labelSelector: { matchLabels: { [LABEL.revision]: revision.metadata.name ?? "" } },
          },
        },
      ],
    },
  };
}
