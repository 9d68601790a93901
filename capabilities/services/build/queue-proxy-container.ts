import { LABEL } from "../../../api/labels.ts";
import type { Probe } from "../../../api/serving/v1/pod-spec.ts";
import type { Revision } from "../../../api/serving/v1/types.ts";
import type { PodContainer, PodProbe } from "../kinds.ts";
import { variable } from "./metadata.ts";
import { QUEUE_PROXY_CONTAINER, QUEUE_PROXY_PORTS, type PodSettings } from "./pod-settings.ts";
import { sharedProcessNamespace } from "./process-namespace.ts";
import { queueProxyResources } from "./queue-proxy-resources.ts";
import { protocolOf, servingContainer, userPort } from "./serving-container.ts";

/** Marks a request as a probe: it is answered by the queue-proxy and counts nowhere. */
const PROBE_HEADER = { name: "K-Network-Probe", value: "queue" };
const DEFAULT_TIMEOUT_SECONDS = 300;

/**
 * The sidecar that admits, measures and drains. Its configuration is its environment: see dataplane/queue-proxy.
 *
 * It is a sidecar in Kubernetes' sense (an init container that is always restarted): it is started before the app's containers
 * are made, so that it comes up meanwhile; the kubelet tells the pod's address once it runs and not only when all do; and it is
 * ended after them.
 */
export function buildQueueProxyContainer(revision: Revision, settings: PodSettings): PodContainer {
  const { spec } = revision;
  const protocol = protocolOf(spec);
  return {
    name: QUEUE_PROXY_CONTAINER,
    image: settings.deployment.queueSidecarImage || settings.queueProxyImage,
    imagePullPolicy: "IfNotPresent",
    restartPolicy: "Always",
    args: ["/app/queue-proxy.cjs"],
    ports: [
      { name: "queue-port", containerPort: QUEUE_PROXY_PORTS[protocol], protocol: "TCP" },
      { name: "http-usermetric", containerPort: QUEUE_PROXY_PORTS.metrics, protocol: "TCP" },
    ],
    env: [
      ...Object.entries(plainEnvironment(revision, settings)).map(([name, value]) => variable(name, value)),
      { name: "SERVING_POD", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } } },
    ],
    resources: queueProxyResources(revision, settings),
    readinessProbe: probeOf(servingContainer(spec)?.readinessProbe),
    // Told at once when the pod is to end, as all containers' hooks are; SIGTERM comes to a sidecar only when the others are gone.
    lifecycle: { preStop: { httpGet: { path: "/terminate", port: QUEUE_PROXY_PORTS.admin, scheme: "HTTP" } } },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      capabilities: { drop: ["ALL"] },
      seccompProfile: { type: "RuntimeDefault" },
    },
  };
}

function plainEnvironment(revision: Revision, settings: PodSettings): Record<string, string> {
  const { metadata, spec } = revision;
  const probes = readinessProbes(revision);
  const settled: Record<string, string | undefined> = {
    SERVING_NAMESPACE: metadata.namespace ?? "",
    SERVING_SERVICE: metadata.labels?.[LABEL.service] ?? "",
    SERVING_CONFIGURATION: metadata.labels?.[LABEL.configuration] ?? "",
    SERVING_REVISION: metadata.name ?? "",
    CONTAINER_CONCURRENCY: String(spec.containerConcurrency ?? 0),
    REVISION_TIMEOUT_SECONDS: String(spec.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS),
    REVISION_RESPONSE_START_TIMEOUT_SECONDS: String(spec.responseStartTimeoutSeconds ?? 0),
    REVISION_IDLE_TIMEOUT_SECONDS: String(spec.idleTimeoutSeconds ?? 0),
    USER_PORT: String(userPort(spec)),
    USER_PROTOCOL: protocolOf(spec),
    QUEUE_SERVING_PORT: String(QUEUE_PROXY_PORTS.http1),
    QUEUE_SERVING_H2C_PORT: String(QUEUE_PROXY_PORTS.h2c),
    QUEUE_ADMIN_PORT: String(QUEUE_PROXY_PORTS.admin),
    QUEUE_METRICS_PORT: String(QUEUE_PROXY_PORTS.metrics),
    SERVING_READINESS_PROBE: probes === undefined ? undefined : JSON.stringify(probes),
    SERVING_ENABLE_REQUEST_LOG: String(settings.observability.enableRequestLog),
    SERVING_ENABLE_PROBE_REQUEST_LOG: String(settings.observability.enableProbeRequestLog),
    MEASURE_CPU: String(sharedProcessNamespace(revision) === true),
  };
  return Object.fromEntries(
    Object.entries(settled).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

/**
 * The checks the queue-proxy makes for the kubelet: the serving container's, and those of sidecars. A sidecar's command
 * runs in the sidecar, by the kubelet; for the serving container's command the queue-proxy looks for the port meanwhile.
 */
function readinessProbes(revision: Revision): Probe | Probe[] | undefined {
  const serving = servingContainer(revision.spec);
  const sidecars = revision.spec.containers
    .filter(container => container !== serving)
    .map(container => container.readinessProbe)
    .filter(probe => probe !== undefined && probe.exec === undefined && checksSomething(probe));
  if (sidecars.length === 0) return serving?.readinessProbe;
  return [serving?.readinessProbe ?? { tcpSocket: {} }, ...sidecars.filter(probe => probe !== undefined)];
}

const checksSomething = (probe: Probe): boolean =>
  probe.httpGet !== undefined || probe.tcpSocket !== undefined || probe.grpc !== undefined;

/** How often the kubelet asks: the queue-proxy holds each probe until the app is up. */
const PERIOD_SECONDS = 1;
const DEFAULT_FAILURE_THRESHOLD = 3;

/**
 * The kubelet asks the queue-proxy each second, so that a slow steady check does not make a slow start; the queue-proxy looks at
 * the app as often as the user said. So what the user counts in checks of theirs is counted in seconds here.
 */
function probeOf(user: Probe | undefined): PodProbe {
  const userPeriod = user?.periodSeconds || PERIOD_SECONDS;
  const inSeconds = (checks: number): number => (checks - 1) * userPeriod + 1;
  return {
    httpGet: { path: "/", port: QUEUE_PROXY_PORTS.http1, scheme: "HTTP", httpHeaders: [PROBE_HEADER] },
    ...(user?.initialDelaySeconds ? { initialDelaySeconds: user.initialDelaySeconds } : {}),
    periodSeconds: PERIOD_SECONDS,
    timeoutSeconds: Math.max(1, user?.timeoutSeconds ?? 1),
    successThreshold: inSeconds(Math.max(1, user?.successThreshold ?? 1)),
    failureThreshold: inSeconds(user?.failureThreshold || DEFAULT_FAILURE_THRESHOLD),
  };
}
