import fc from "fast-check";

/**
 * Serving objects, good and bad, for comparing our admission with Knative's: a good object with some of the changes that users
 * make, rightly and wrongly.
 */
export interface AdmissionCase {
  readonly kind: "Service" | "Configuration" | "Revision" | "Route";
  readonly object: unknown;
  readonly old?: unknown;
  readonly features?: Readonly<Record<string, string>> | undefined;
  readonly defaults?: Readonly<Record<string, string>> | undefined;
  readonly autoscaler?: Readonly<Record<string, string>> | undefined;
}

// Generated JSON is changed in place before anything else sees it.
/* eslint-disable @typescript-eslint/no-explicit-any, @typescript-eslint/no-unsafe-member-access, @typescript-eslint/no-unsafe-assignment, @typescript-eslint/no-unsafe-call */
type Mutable = any;

type Change<T> = fc.Arbitrary<(target: T) => void>;

const set = (path: string, ...values: unknown[]): Change<Mutable> =>
  fc.constantFrom(...values).map(value => target => {
    const steps = path.split(".");
    let at = target;
    for (const step of steps.slice(0, -1)) at = at[step] ??= {};
    at[steps.at(-1)!] = structuredClone(value);
  });

const HALF = 1_500_000_000;

/** Changes of a pod spec with one container. */
const podChanges: Change<Mutable>[] = [
  set(
    "containers.0.image",
    "",
    "busybox",
    "gcr.io/p/app:v1",
    "foo bar",
    "UPPER",
    `app@sha256:${"a".repeat(64)}`,
    "app@sha256:12",
    "localhost:5000/a/b:c",
    "x",
  ),
  set("containers.0.name", "", "app", "queue-proxy"),
  set(
    "containers.0.ports",
    [],
    [{ containerPort: 0 }],
    [{ containerPort: 8080, name: "h2c" }],
    [{ containerPort: 80, name: "http1", protocol: "TCP" }],
    [{ name: "arbitrary" }],
    [{ containerPort: 8012 }],
    [{ containerPort: 9090 }],
    [{ containerPort: 65536 }],
    [{ containerPort: -1 }],
    [{ containerPort: 80, protocol: "UDP" }],
    [{ containerPort: 80 }, { containerPort: 81 }],
    [{ containerPort: 80, hostPort: 80 }],
    [{ containerPort: 80, hostIP: "1.2.3.4" }],
  ),
  set(
    "containers.0.env",
    [{ name: "A", value: "b" }],
    [{ name: "" }],
    [{ name: "PORT", value: "1" }, { name: "K_SERVICE" }],
    [{ name: "A", valueFrom: { secretKeyRef: { name: "s", key: "k" } } }],
    [{ name: "A", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }],
    [{ name: "A", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } }],
  ),
  set(
    "containers.0.envFrom",
    [{ configMapRef: { name: "c" } }],
    [{ prefix: "P_", secretRef: { name: "s" } }],
    [{}],
    [{ configMapRef: { name: "c" }, secretRef: { name: "s" } }],
  ),
  set("containers.0.resources", {}, { limits: { cpu: "1", memory: "128Mi" } }, { requests: { cpu: "100m" } }),
  set(
    "containers.0.securityContext",
    {},
    { runAsUser: -10 },
    { runAsUser: 2020, runAsGroup: 3 * HALF },
    { privileged: true },
    { privileged: false },
    { capabilities: { drop: ["ALL"] } },
    { capabilities: { add: ["NET_ADMIN"] } },
    { capabilities: { add: ["NET_BIND_SERVICE"] } },
    { procMount: "Default" },
    {
      seccompProfile: { type: "RuntimeDefault" },
      runAsNonRoot: true,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
    },
  ),
  set(
    "containers.0.livenessProbe",
    { tcpSocket: { port: 0 } },
    { httpGet: { path: "/", port: "http" } },
    { httpGet: { port: "other" } },
    { exec: { command: ["true"] } },
    { grpc: { port: 1 } },
    {},
  ),
  set(
    "containers.0.readinessProbe",
    {},
    { tcpSocket: { port: 0 } },
    { httpGet: { path: "/", port: 8080 }, periodSeconds: 1 },
    { exec: { command: ["true"] }, timeoutSeconds: 1 },
    { tcpSocket: { port: 1 }, failureThreshold: 3 },
    { grpc: { port: 1 }, periodSeconds: 2, timeoutSeconds: 3 },
    { periodSeconds: -1 },
    { initialDelaySeconds: -1 },
    { successThreshold: -1 },
    { periodSeconds: 1, failureThreshold: -1, timeoutSeconds: -1 },
  ),
  set(
    "containers.0.startupProbe",
    { tcpSocket: { port: "nope" } },
    { exec: { command: ["true"] }, failureThreshold: 3 },
  ),
  set("containers.0.terminationMessagePolicy", "File", "FallbackToLogsOnError", "Never"),
  set("containers.0.lifecycle", { preStop: { exec: { command: ["x"] } } }),
  set("containers.0.tty", true),
  set("containers.0.workingDir", "/app", ""),
  set("serviceAccountName", "default", "foo@bar.baz", "a.b-c", "UPPER"),
  set("automountServiceAccountToken", false, true),
  set("enableServiceLinks", true, false),
  set("timeoutSeconds", 0, 1, 600, 601, -1),
  set("containerConcurrency", 0, 1, 1000, 1001, -1),
  set("idleTimeoutSeconds", 0, 10),
  set("responseStartTimeoutSeconds", 0, 10),
  set("imagePullSecrets", [{ name: "regcred" }]),
  set("affinity", {}, { nodeAffinity: {} }),
  set("nodeSelector", { a: "b" }),
  set("tolerations", [{ operator: "Exists" }]),
  set("hostAliases", [{ ip: "1.2.3.4" }]),
  set("runtimeClassName", "gvisor"),
  set("priorityClassName", "high"),
  set("schedulerName", "mine"),
  set("dnsPolicy", "Default"),
  set("dnsConfig", { nameservers: ["1.2.3.4"] }),
  set("hostNetwork", true, false),
  set("hostPID", true),
  set("hostIPC", true),
  set("shareProcessNamespace", true, false),
  set("topologySpreadConstraints", [{ maxSkew: 1, topologyKey: "z", whenUnsatisfiable: "DoNotSchedule" }]),
  set(
    "securityContext",
    {},
    { runAsUser: 1 },
    { fsGroup: -1 },
    { runAsUser: 3 * HALF },
    { sysctls: [{ name: "a", value: "b" }] },
    { seccompProfile: { type: "RuntimeDefault" } },
    { supplementalGroups: [-1, 5] },
  ),
  set("hostname", "h"),
  set("restartPolicy", "Never"),
  set("terminationGracePeriodSeconds", 10),
  set("nodeName", "n"),
  volumes([{ name: "v", secret: { secretName: "s" } }], [{ name: "v", mountPath: "/v" }]),
  volumes([{ name: "v", emptyDir: {} }], [{ name: "v", mountPath: "/v", readOnly: false }]),
  volumes([{ name: "v", emptyDir: { medium: "Disk", sizeLimit: "-1" } }], [{ name: "v", mountPath: "/v" }]),
  volumes([{ name: "v", configMap: { name: "c", items: [{ key: "", path: "" }] } }], [{ name: "v", mountPath: "/v" }]),
  volumes([{ name: "v", secret: {} }], []),
  volumes([], [{ name: "w", mountPath: "/w" }]),
  volumes([{ name: "v" }], [{ name: "v", mountPath: "/v" }]),
  volumes([{ name: "v", secret: {}, configMap: { name: "c" } }], [{ name: "v", mountPath: "/v" }]),
  volumes([{ name: "v", hostPath: { path: "/" } }], [{ name: "v", mountPath: "/v" }]),
  volumes([{ name: "v", csi: { driver: "d" } }], [{ name: "v", mountPath: "/v" }]),
  volumes([{ name: "v", image: { reference: "", pullPolicy: "Maybe" } }], [{ name: "v", mountPath: "/v" }]),
  volumes([{ name: "v", persistentVolumeClaim: { claimName: "p" } }], [{ name: "v", mountPath: "/v" }]),
  volumes([{ name: "v", persistentVolumeClaim: { claimName: "p", readOnly: true } }], [{ name: "v", mountPath: "/v" }]),
  volumes([{ name: "v", downwardAPI: { items: [] } }], [{ name: "v", mountPath: "/v" }]),
  volumes(
    [
      {
        name: "v",
        projected: {
          sources: [
            { secret: { name: "s" } },
            { configMap: {} },
            { serviceAccountToken: { path: "" } },
            {},
            {
              downwardAPI: {
                items: [{ path: "", fieldRef: { fieldPath: "a" }, resourceFieldRef: { resource: "b" } }, { path: "x" }],
              },
            },
          ],
        },
      },
    ],
    [{ name: "v", mountPath: "/v" }],
  ),
  volumes(
    [
      { name: "v", secret: {} },
      { name: "v", secret: {} },
    ],
    [{ name: "v", mountPath: "/v" }],
  ),
  volumes(
    [{ name: "v", emptyDir: {} }],
    [
      { name: "v", mountPath: "/" },
      { name: "v", mountPath: "/dev/../dev/log" },
      { name: "v", mountPath: "rel" },
      { name: "v", mountPath: "" },
      { name: "v", mountPath: "/a" },
      { name: "v", mountPath: "/b/../a" },
    ],
  ),
  volumes([{ name: "v", emptyDir: {} }], [{ name: "v", mountPath: "/v", mountPropagation: "Bidirectional" }]),
  volumes([{ name: "v", emptyDir: {} }], [{ name: "v", mountPath: "/v", mountPropagation: "HostToContainer" }]),
  set(
    "containers.1",
    { image: "sidecar" },
    { image: "sidecar", ports: [{ containerPort: 81 }] },
    { image: "sidecar", livenessProbe: { tcpSocket: { port: 0 } } },
    {
      image: "sidecar",
      env: [{ name: "PORT", value: "1" }, { name: "K_REVISION" }],
      readinessProbe: { httpGet: { port: 81 } },
    },
    { name: "app", image: "sidecar" },
    { name: "user-container-0", image: "sidecar" },
  ),
  set(
    "initContainers",
    [{ image: "init" }],
    [{ image: "init", livenessProbe: { tcpSocket: { port: 1 } } }],
    [{ name: "app", image: "init", env: [{ name: "PORT" }] }],
    [{ image: "init", ports: [{ containerPort: 8013 }] }],
  ),
  set("containers", []),
];

function volumes(list: object[], mounts: object[]): Change<Mutable> {
  return fc.constant((spec: Mutable) => {
    spec.volumes = structuredClone(list);
    if (spec.containers[0] !== undefined) spec.containers[0].volumeMounts = structuredClone(mounts);
  });
}

const A = "autoscaling.knative.dev/";
const annotation = (key: string, ...values: string[]): Change<Mutable> =>
  fc.constantFrom(...values).map(value => (template: Mutable) => {
    (template.metadata ??= {}).annotations = { ...template.metadata?.annotations, [key]: value };
  });

const templateChanges: Change<Mutable>[] = [
  annotation(`${A}class`, "kpa.autoscaling.knative.dev"),
  annotation(`${A}metric`, "concurrency", "rps", "cpu", ""),
  annotation(`${A}target`, "1", "0.01", "0.001", "-1", "ten", "1e3"),
  annotation(`${A}target-utilization-percentage`, "70", "0.5", "101", "x"),
  annotation(`${A}targetUtilizationPercentage`, "100", "0"),
  annotation(`${A}target-burst-capacity`, "-1", "0", "-2", "x", "200.5"),
  annotation(`${A}window`, "60s", "6s", "5s", "61m", "1h", "6.5s", "x", "0"),
  annotation(`${A}panic-window-percentage`, "10", "0.5", "100.1", "x"),
  annotation(`${A}panicThresholdPercentage`, "200", "109.9", "1000", "1001"),
  annotation(`${A}min-scale`, "0", "3", "-1", "x", "3000000000", "1.5", "+2"),
  annotation(`${A}minScale`, "5"),
  annotation(`${A}max-scale`, "0", "2", "-1", "x", "99999999999"),
  annotation(`${A}maxScale`, "4"),
  annotation(`${A}initial-scale`, "0", "1", "5", "-1", "x"),
  annotation(`${A}activation-scale`, "0", "1", "2", "10", "x"),
  annotation(`${A}scale-down-delay`, "0s", "15m", "2h", "-1s", "1.5s", "x"),
  annotation(`${A}scale-to-zero-pod-retention-period`, "0s", "1.5s", "2h", "-1s", "x"),
  annotation(`${A}metric-aggregation-algorithm`, "linear", "weighted-exponential"),
  annotation("serving.knative.dev/progress-deadline", "60s", "1.5s", "-1s", "x"),
  annotation("queue.sidecar.serving.knative.dev/cpu-resource-request", "100m", "x"),
  annotation("queue.sidecar.serving.knative.dev/resource-percentage", "10", "0.05", "101", "x"),
  annotation("networking.knative.dev/foo", "x"),
  annotation("networking.knative.dev/ingress-class", "x"),
  annotation("example.com/own", "x"),
  set("metadata.name", "hello-v1", "other-v1", "Hello-v1", ""),
  set("metadata.generateName", "hello-", "UPPER-"),
];

const trafficLists: unknown[] = [
  [{ percent: 100 }],
  [{ percent: 100, latestRevision: true }],
  [{ percent: 50 }, { percent: 50, revisionName: "hello-00001" }],
  [{ percent: 50 }],
  [{ percent: 101 }],
  [
    { percent: 150, revisionName: "a" },
    { percent: -50, revisionName: "b" },
  ],
  [
    { percent: 100, tag: "a" },
    { tag: "a", revisionName: "hello-00001" },
  ],
  [{ percent: 100, tag: "Not a tag" }],
  [{ percent: 100, configurationName: "hello" }],
  [{ percent: 100, configurationName: "a b" }],
  [{ percent: 100, configurationName: "hello", revisionName: "x" }],
  [{ percent: 100, revisionName: "hello-00001", latestRevision: true }],
  [{ percent: 100, latestRevision: false }],
  [{ percent: 100, url: "http://x.y" }],
  [{ percent: 100, tag: "t", url: "http://x.y" }],
  [{ percent: 100, revisionName: "a b" }],
  [],
];

const metadataChanges: Change<Mutable>[] = [
  set("name", "hello", "Hello", "1hello", "a".repeat(64), ""),
  set(
    "annotations",
    { [`${A}min-scale`]: "1" },
    { "serving.knative.dev/rollout-duration": "10s" },
    { "serving.knative.dev/rolloutDuration": "1.5s" },
    { "serving.knative.dev/rollout-duration": "-5s" },
    { "serving.knative.dev/rollout-duration": "x" },
  ),
  set(
    "labels",
    { a: "b" },
    { "serving.knative.dev/service": "hello" },
    { "serving.knative.dev/configuration": "hello" },
  ),
];

const features = fc.oneof(
  { weight: 5, arbitrary: fc.constant(undefined) },
  {
    weight: 3,
    arbitrary: fc.constantFrom<Record<string, string>>(
      { "kubernetes.podspec-init-containers": "enabled", "multi-container-probing": "enabled" },
      {
        "kubernetes.podspec-affinity": "enabled",
        "kubernetes.podspec-nodeselector": "allowed",
        "kubernetes.podspec-hostnetwork": "enabled",
        "kubernetes.podspec-fieldref": "enabled",
      },
      { "kubernetes.podspec-securitycontext": "enabled", "kubernetes.containerspec-addcapabilities": "enabled" },
      {
        "kubernetes.podspec-persistent-volume-claim": "enabled",
        "kubernetes.podspec-volumes-image": "enabled",
        "kubernetes.podspec-volumes-emptydir": "disabled",
        "kubernetes.podspec-volumes-mount-propagation": "enabled",
      },
      { "multi-container": "disabled" },
      { "secure-pod-defaults": "enabled" },
      { "secure-pod-defaults": "allowrootbounded", "kubernetes.podspec-securitycontext": "enabled" },
    ),
  },
);
const defaults = fc.oneof(
  { weight: 6, arbitrary: fc.constant(undefined) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Record<string, string>>(
      {
        "revision-timeout-seconds": "30",
        "revision-response-start-timeout-seconds": "10",
        "revision-idle-timeout-seconds": "5",
      },
      { "allow-container-concurrency-zero": "false", "container-concurrency": "7" },
      { "revision-cpu-request": "100m", "revision-memory-limit": "1Gi", "container-name-template": "{{.Name}}" },
      { "enable-service-links": "true", "container-concurrency-max-limit": "50" },
    ),
  },
);
const autoscaler = fc.oneof(
  { weight: 6, arbitrary: fc.constant(undefined) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Record<string, string>>(
      { "max-scale-limit": "5", "max-scale": "5" },
      { "allow-zero-initial-scale": "true", "initial-scale": "0" },
    ),
  },
);

const few = <T>(changes: Change<T>[], maxLength: number): fc.Arbitrary<((target: T) => void)[]> =>
  fc.array(fc.oneof(...changes), { maxLength });

/** A list that was emptied and then written to at its second place has a hole, which JSON would show as null. */
const withoutHoles = (spec: Mutable): void => {
  spec.containers = spec.containers.filter((container: unknown) => container !== undefined);
};

const baseSpec = () => ({ containers: [{ image: "busybox" }] });

const serviceCase: fc.Arbitrary<AdmissionCase> = fc
  .record({
    kind: fc.constantFrom("Service" as const, "Service" as const, "Configuration" as const),
    pod: few(podChanges, 3),
    template: few(templateChanges, 2),
    metadata: fc.oneof({ weight: 5, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: few(metadataChanges, 2) }),
    traffic: fc.oneof(
      { weight: 3, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.constantFrom(...trafficLists) },
    ),
    features,
    defaults,
    autoscaler,
  })
  .map(({ kind, pod, template, metadata, traffic, ...config }) => {
    const object: Mutable = { metadata: { name: "hello", namespace: "ns" }, spec: { template: { spec: baseSpec() } } };
    for (const change of pod) change(object.spec.template.spec);
    withoutHoles(object.spec.template.spec);
    for (const change of template) change(object.spec.template);
    for (const change of metadata) change(object.metadata);
    if (kind === "Service" && traffic !== undefined) object.spec.traffic = traffic;
    return { kind, object, ...config };
  });

const revisionCase: fc.Arbitrary<AdmissionCase> = fc
  .record({ pod: few(podChanges, 2), template: few(templateChanges, 1), features, defaults, autoscaler })
  .map(({ pod, template, ...config }) => {
    const object: Mutable = { metadata: { namespace: "ns" }, spec: baseSpec() };
    for (const change of pod) change(object.spec);
    withoutHoles(object.spec);
    for (const change of template) change(object);
    object.metadata.name = "hello-00001";
    delete object.metadata.generateName;
    return { kind: "Revision" as const, object, ...config };
  });

const routeCase: fc.Arbitrary<AdmissionCase> = fc
  .record({ metadata: few(metadataChanges, 1), traffic: fc.constantFrom(...trafficLists) })
  .map(({ metadata, traffic }) => {
    const object: Mutable = { metadata: { name: "hello", namespace: "ns" }, spec: { traffic } };
    for (const change of metadata) change(object.metadata);
    return { kind: "Route" as const, object };
  });

/** `count` cases, most of them Services; the same for the same seed. */
export function admissionCases(seed: number, count: number): AdmissionCase[] {
  const all = fc.oneof(
    { weight: 6, arbitrary: serviceCase },
    { weight: 2, arbitrary: revisionCase },
    { weight: 1, arbitrary: routeCase },
  );
  return JSON.parse(JSON.stringify(fc.sample(all, { seed, numRuns: count }))) as AdmissionCase[];
}
