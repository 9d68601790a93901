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

/** The sidecar that admits, measures and drains. Its configuration is its environment: see dataplane/queue-proxy. */
export function buildQueueProxyContainer(revision: Revision, settings: PodSettings): PodContainer {
  const { spec } = revision;
  const protocol = protocolOf(spec);
  return {
    name: QUEUE_PROXY_CONTAINER,
    image: settings.deployment.queueSidecarImage || settings.queueProxyImage,
    imagePullPolicy: "IfNotPresent",
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
    ...probesOf(servingContainer(spec)?.readinessProbe, settings),
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

/** How often the kubelet asks when the user left it to the system: the queue-proxy holds each probe until the app is up. */
const QUICK_PERIOD_SECONDS = 1;
const DEFAULT_FAILURE_THRESHOLD = 3;

/**
 * The kubelet asks the queue-proxy, which asks the app. A period of the user's own holds once the pod has started;
 * until then the kubelet asks each second, so that a slow steady check does not make a slow start.
 */
function probesOf(
  user: Probe | undefined,
  settings: PodSettings,
): { readonly readinessProbe: PodProbe; readonly startupProbe?: PodProbe } {
  const httpGet = { path: "/", port: QUEUE_PROXY_PORTS.http1, scheme: "HTTP", httpHeaders: [PROBE_HEADER] };
  const periodSeconds = user?.periodSeconds || QUICK_PERIOD_SECONDS;
  const timeoutSeconds = Math.max(1, user?.timeoutSeconds ?? 1);
  const readinessProbe: PodProbe = {
    httpGet,
    ...(user?.initialDelaySeconds ? { initialDelaySeconds: user.initialDelaySeconds } : {}),
    periodSeconds,
    timeoutSeconds,
    successThreshold: Math.max(1, user?.successThreshold ?? 1),
    failureThreshold: user?.failureThreshold || DEFAULT_FAILURE_THRESHOLD,
  };
  if (periodSeconds <= QUICK_PERIOD_SECONDS) return { readinessProbe };
  return {
    readinessProbe,
    startupProbe: {
      httpGet,
      periodSeconds: QUICK_PERIOD_SECONDS,
      timeoutSeconds,
      successThreshold: 1,
      // The queue-proxy must not be restarted because the app is slow: the Deployment's deadline judges that.
      failureThreshold: Math.max(Math.ceil(settings.deployment.progressDeadlineMs / 1000), 600),
    },
  };
}
