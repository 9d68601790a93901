import { describe, expect, test } from "vitest";
import { parseAutoscalerConfig } from "../../config/autoscaler.ts";
import { parseFeaturesConfig } from "../../config/features.ts";
import { validationFailure, validationWarnings } from "../../meta/field-error.ts";
import type { AdmissionConfig } from "../admission.ts";
import { defaultAdmissionConfig } from "../admission.ts";
import { setServiceDefaults } from "./defaults.ts";
import type { Container } from "./pod-spec.ts";
import type {
  Configuration,
  Revision,
  RevisionSpec,
  RevisionTemplate,
  Route,
  Service,
  TrafficTarget,
} from "./types.ts";
import { validateConfiguration, validateRevision, validateRoute, validateService } from "./validate.ts";

const config = defaultAdmissionConfig();

interface Change {
  readonly spec?: Partial<RevisionSpec>;
  readonly container?: Partial<Container>;
  readonly template?: RevisionTemplate["metadata"];
  readonly traffic?: TrafficTarget[];
  readonly metadata?: Service["metadata"];
}

const service = ({ spec, container, template, traffic, metadata }: Change = {}): Service => ({
  metadata: { name: "hello", namespace: "ns", ...metadata },
  spec: {
    template: {
      ...(template === undefined ? {} : { metadata: template }),
      spec: { containers: [{ image: "app", ...container }], ...spec },
    },
    ...(traffic === undefined ? {} : { traffic }),
  },
});

/** What the webhooks say together to a new object: defaults, then rules. */
function refusal(object: Service, admission: AdmissionConfig = config): string | undefined {
  const defaulted = setServiceDefaults(object, { operation: "CREATE", user: "alice", config: admission });
  const errors = validateService(defaulted, { operation: "CREATE", config: admission });
  return validationFailure(errors)?.replace(/^validation failed: /, "");
}
const withFeatures = (flags: Record<string, string>) => ({ ...config, features: parseFeaturesConfig(flags) });

test("a plain Service is admitted, with a warning for what Kubernetes leaves insecure", () => {
  expect(refusal(service())).toBeUndefined();
  const errors = validateService(setServiceDefaults(service(), { operation: "CREATE", config }), {
    operation: "CREATE",
    config,
  });
  expect(validationWarnings(errors)).toEqual([
    "unset, and Kubernetes' default is insecure: " +
      ["allowPrivilegeEscalation", "capabilities", "runAsNonRoot", "seccompProfile"]
        .map(field => `spec.template.spec.containers[0].securityContext.${field}`)
        .join(", "),
  ]);
});

describe("containers", () => {
  const at = (field: string) => `spec.template.spec.containers[0].${field}`;

  test.each<[string, Change, string]>([
    ["no container", { spec: { containers: [] } }, "missing field(s): spec.template.spec.containers"],
    ["no image", { container: { image: "" } }, `missing field(s): ${at("image")}`],
    [
      "an image that is none",
      { container: { image: "foo bar" } },
      `Failed to parse image reference: ${at("image")}\nimage: "foo bar", error: could not parse reference: foo bar`,
    ],
    [
      "the sidecar's own name",
      { container: { name: "queue-proxy" } },
      `"queue-proxy" is a reserved container name: ${at("name")}`,
    ],
    [
      "a port with a name that is no protocol",
      { container: { ports: [{ name: "arbitrary", containerPort: 0 }] } },
      `Port name arbitrary is not allowed: ${at("ports")}\nName must be empty, or one of: 'h2c', 'http1'`,
    ],
    [
      "two ports",
      { container: { ports: [{ containerPort: 80 }, { containerPort: 81 }] } },
      "more than one container port is set: spec.template.spec.containers[*].ports\nOnly a single port is allowed across all containers",
    ],
    [
      "a port of the queue-proxy",
      { container: { ports: [{ containerPort: 8012 }] } },
      `invalid value: 8012 is a reserved port: ${at("ports.containerPort")}\n8012 is a reserved port, please use a different value`,
    ],
    [
      "a port out of range and a protocol that is not TCP",
      { container: { ports: [{ containerPort: 65536, protocol: "UDP" }] } },
      `expected 0 <= 65536 <= 65535: ${at("ports.containerPort")}\ninvalid value: UDP: ${at("ports.protocol")}`,
    ],
    [
      "environment without a name, and a reserved one",
      { container: { env: [{ name: "" }, { name: "K_SERVICE", value: "x" }] } },
      `"K_SERVICE" is a reserved environment variable: ${at("env[1].name")}\nmissing field(s): ${at("env[0].name")}`,
    ],
    [
      "environment from the pod, whose feature is off",
      { container: { env: [{ name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }] } },
      `must not set the field(s): ${at("env[0].valueFrom.fieldRef")}`,
    ],
    [
      "environment from nothing",
      { container: { envFrom: [{}] } },
      `expected exactly one, got neither: ${at("envFrom[0].configMapRef")}, ${at("envFrom[0].secretRef")}`,
    ],
    [
      "a negative user",
      { container: { securityContext: { runAsUser: -10 } } },
      `expected 0 <= -10 <= 2147483647: ${at("securityContext.runAsUser")}`,
    ],
    [
      "privileges",
      { container: { securityContext: { privileged: true, capabilities: { add: ["NET_ADMIN"] } } } },
      `must not set the field(s): ${at("securityContext.capabilities.add")}, ${at("securityContext.privileged")}`,
    ],
    [
      "a field that Knative does not know",
      { container: { lifecycle: {} } as Partial<Container> },
      `must not set the field(s): ${at("lifecycle")}`,
    ],
    [
      "a quantity that is none",
      { container: { resources: { limits: { cpu: "much" } } } },
      `invalid value: much: ${at("resources.limits.cpu")}`,
    ],
    [
      "a message policy that is none",
      { container: { terminationMessagePolicy: "Never" } },
      `invalid value: Never: ${at("terminationMessagePolicy")}`,
    ],
  ])("%s", (_, change, message) => {
    expect(refusal(service(change))).toBe(message);
  });

  test("several need the feature, one port, and names of their own", () => {
    const two = { spec: { containers: [{ image: "app-a" }, { image: "app-b" }] } };
    expect(refusal(service(two), withFeatures({ "multi-container": "disabled" }))).toBe(
      "missing field(s): spec.template.spec.containers[*].ports\n" +
        "multi-container is off, but found 2 containers: spec.template.spec",
    );
    expect(refusal(service(two))).toBe("missing field(s): spec.template.spec.containers[*].ports");
    const same = [
      { name: "x", image: "app-a", ports: [{ containerPort: 1 }] },
      { name: "x", image: "app-b" },
    ];
    expect(refusal(service({ spec: { containers: same } }))).toBe(
      'duplicate container name "x": spec.template.spec.containers[1].name',
    );
  });

  test("a sidecar may set PORT, and probes only with the feature", () => {
    const sidecar = { image: "app-b", env: [{ name: "PORT", value: "1" }], livenessProbe: { tcpSocket: { port: 0 } } };
    const both = service({ spec: { containers: [{ image: "app-a", ports: [{ containerPort: 80 }] }, sidecar] } });
    expect(refusal(both)).toBe("must not set the field(s): spec.template.spec.containers[1].livenessProbe.tcpSocket");
    expect(refusal(both, withFeatures({ "multi-container-probing": "enabled" }))).toBe(
      "invalid value: 0: spec.template.spec.containers[1].livenessProbe.tcpSocket.port\nProbe port must be specified",
    );
  });

  test("init containers need the feature and have no probes", () => {
    const init = service({ spec: { initContainers: [{ image: "app-i", livenessProbe: { exec: {} } }] } });
    expect(refusal(init)).toBe(
      "must not set the field(s): spec.template.spec.initContainers\n" +
        "pod spec support for init-containers is off, but found 1 init containers: spec.template.spec",
    );
    expect(refusal(init, withFeatures({ "kubernetes.podspec-init-containers": "enabled" }))).toBe(
      "field not allowed in an init container: spec.template.spec.initContainers[0].livenessProbe",
    );
  });
});

describe("probes", () => {
  const probe = (readinessProbe: NonNullable<Container["readinessProbe"]>) =>
    refusal(service({ container: { readinessProbe } }));
  const at = (field: string) => `spec.template.spec.containers[0].readinessProbe.${field}`;

  test("port 0 stands for the serving port", () => {
    expect(probe({ tcpSocket: { port: 0 } })).toBeUndefined();
    expect(probe({ httpGet: { port: 0, path: "/" }, periodSeconds: 1 })).toBeUndefined();
  });

  test("a named port must be the serving port's", () => {
    expect(probe({ httpGet: { port: "other" } })).toBe(
      `invalid value: other: ${at("httpGet.port")}\nProbe port must match container port`,
    );
    expect(probe({ httpGet: { port: "http" } })).toBeUndefined();
  });

  test("exactly one handler", () => {
    expect(probe({ tcpSocket: {}, exec: { command: ["x"] } })).toBe(
      `expected exactly one, got both: ${at("exec")}, ${at("tcpSocket")}`,
    );
  });

  test("without a period there is no time-out and no failure threshold", () => {
    expect(probe({ timeoutSeconds: 1, failureThreshold: 2 })).toBe(
      `failureThreshold is disallowed when periodSeconds is zero: ${at("failureThreshold")}\n` +
        `timeoutSeconds is disallowed when periodSeconds is zero: ${at("timeoutSeconds")}`,
    );
    expect(probe({ periodSeconds: -1, initialDelaySeconds: -2 })).toContain(
      `expected 0 <= -1 <= 2147483647: ${at("periodSeconds")}`,
    );
  });
});

describe("volumes", () => {
  const mounted = (volumes: RevisionSpec["volumes"], ...mounts: NonNullable<Container["volumeMounts"]>) =>
    service({ spec: { volumes }, container: {} }).spec.template.spec.containers.map(c => ({
      ...c,
      volumeMounts: mounts,
    }));
  const check = (volumes: RevisionSpec["volumes"], ...mounts: NonNullable<Container["volumeMounts"]>) =>
    refusal(service({ spec: { volumes, containers: mounted(volumes, ...mounts) } }));

  test("every volume is mounted, every mount has a volume, paths are absolute, unique and not reserved", () => {
    expect(check([{ name: "a", secret: {} }])).toBe(
      'volume with name "a" not mounted: spec.template.spec.volumes[0].name',
    );
    expect(check([], { name: "b", mountPath: "/b" })).toBe(
      "volumeMount has no matching volume: spec.template.spec.containers[0].volumeMounts[0].name",
    );
    expect(
      check(
        [{ name: "a", emptyDir: {} }],
        { name: "a", mountPath: "/dev/" },
        { name: "a", mountPath: "rel" },
        { name: "a", mountPath: "/x" },
        { name: "a", mountPath: "/x/../x" },
        { name: "a", mountPath: "" },
      )?.split("\n"),
    ).toEqual([
      'invalid value: "/x/../x" must be unique: spec.template.spec.containers[0].volumeMounts[3].mountPath',
      "invalid value: rel: spec.template.spec.containers[0].volumeMounts[1].mountPath",
      "missing field(s): spec.template.spec.containers[0].volumeMounts[4].mountPath",
      'mountPath "/dev" is a reserved path: spec.template.spec.containers[0].volumeMounts[0].mountPath',
    ]);
  });

  test("exactly one source, and only those whose feature is on", () => {
    const mount = { name: "a", mountPath: "/a" };
    expect(check([{ name: "a" }], mount)).toBe(
      "expected exactly one, got neither: " +
        ["configMap", "emptyDir", "projected", "secret"].map(s => `spec.template.spec.volumes[0].${s}`).join(", "),
    );
    expect(check([{ name: "a", secret: {}, emptyDir: {} }], mount)).toBe(
      "expected exactly one, got both: spec.template.spec.volumes[0].emptyDir, spec.template.spec.volumes[0].secret",
    );
    expect(check([{ name: "a", hostPath: { path: "/" } }], mount)).toBe(
      "HostPath volume support is disabled, but found HostPath volume a: spec.template.spec.volumes[0]\n" +
        "must not set the field(s): spec.template.spec.volumes[0].hostPath",
    );
  });

  test("projections name what they project", () => {
    const projected = { sources: [{ secret: { items: [{ key: "", path: "" }] } }, {}] };
    expect(check([{ name: "a", projected }], { name: "a", mountPath: "/a" })?.split("\n")).toEqual([
      expect.stringMatching(/^expected exactly one, got neither: .*sources\[1\]\.configMap/),
      "missing field(s): " +
        ["items[0].key", "items[0].path", "name"]
          .map(f => `spec.template.spec.volumes[0].projected.sources[0].secret.${f}`)
          .join(", "),
    ]);
  });
});

describe("the pod", () => {
  test("a service account must be a name; Google's is ignored with a warning", () => {
    expect(refusal(service({ spec: { serviceAccountName: "foo@bar.baz" } }))).toBe(
      "invalid value: foo@bar.baz: spec.template.spec.serviceAccountName\n" +
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start " +
        "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    );
    expect(
      refusal(service({ spec: { serviceAccountName: "1-compute@developer.gserviceaccount.com" } })),
    ).toBeUndefined();
  });

  test("fields behind a feature are refused while it is off", () => {
    const spec = { affinity: {}, nodeSelector: { a: "b" }, hostNetwork: true, securityContext: { runAsUser: 1 } };
    expect(refusal(service({ spec }))).toBe(
      "must not set the field(s): " +
        ["affinity", "hostNetwork", "nodeSelector", "securityContext", "securityContext.runAsUser"]
          .map(f => `spec.template.spec.${f}`)
          .join(", "),
    );
    expect(
      refusal(
        service({ spec }),
        withFeatures({
          "kubernetes.podspec-affinity": "allowed",
          "kubernetes.podspec-nodeselector": "enabled",
          "kubernetes.podspec-hostnetwork": "enabled",
          "kubernetes.podspec-securitycontext": "enabled",
        }),
      ),
    ).toBeUndefined();
  });

  test("automountServiceAccountToken may only be turned off", () => {
    expect(refusal(service({ spec: { automountServiceAccountToken: false } }))).toBeUndefined();
    expect(refusal(service({ spec: { automountServiceAccountToken: true } }))).toBe(
      "must not set the field(s): spec.template.spec.automountServiceAccountToken",
    );
  });

  test("timeouts and concurrency have bounds", () => {
    expect(refusal(service({ spec: { timeoutSeconds: 601, containerConcurrency: 1001 } }))).toBe(
      "expected 0 <= 1001 <= 1000: spec.template.spec.containerConcurrency\nexpected 0 <= 601 <= 600: spec.template.spec.timeoutSeconds",
    );
  });
});

describe("annotations of the template", () => {
  const annotate = (annotations: Record<string, string>, admission = config) =>
    refusal(service({ template: { annotations } }), admission);
  const prefix = "spec.template.metadata.annotations.autoscaling.knative.dev";

  test.each<[string, string, string]>([
    ["min-scale", "-1", `expected 0 <= -1 <= 2147483647: ${prefix}/min-scale`],
    ["minScale", "ten", `invalid value: ten: ${prefix}/minScale`],
    ["max-scale", "3000000000", `expected 0 <= 3000000000 <= 2147483647: ${prefix}/max-scale`],
    ["initial-scale", "0", `invalid value: 0: ${prefix}/initial-scale=0 not allowed by cluster`],
    ["initialScale", "-1", `invalid value: -1: ${prefix}/initialScale must be greater than 0`],
    ["activation-scale", "1", `activation-scale=1 must be greater than 1: ${prefix}/activation-scale`],
    ["target", "0", `target 0 should be at least 0.01: ${prefix}/target`],
    ["target-utilization-percentage", "101", `expected 1 <= 101 <= 100: ${prefix}/target-utilization-percentage`],
    ["target-burst-capacity", "-2", `invalid value: -2: ${prefix}/target-burst-capacity`],
    ["window", "5s", `expected 6s <= 5s <= 1h0m0s: ${prefix}/window`],
    ["window", "6500ms", `must be specified with at most second precision: ${prefix}/window`],
    ["panic-window-percentage", "0.5", `expected 1 <= 0.5 <= 100: ${prefix}/panic-window-percentage`],
    ["panicThresholdPercentage", "109", `expected 110 <= 109 <= 1000: ${prefix}/panicThresholdPercentage`],
    ["scale-down-delay", "2h", `expected 0s <= 2h <= 1h0m0s: ${prefix}/scale-down-delay`],
    ["scale-to-zero-pod-retention-period", "x", `invalid value: x: ${prefix}/scale-to-zero-pod-retention-period`],
    ["metric", "cpu", `invalid value: cpu: ${prefix}/metric`],
  ])("%s: %s", (key, value, message) => {
    expect(annotate({ [`autoscaling.knative.dev/${key}`]: value })).toBe(message);
  });

  test("min scale above max scale", () => {
    expect(annotate({ "autoscaling.knative.dev/min-scale": "3", "autoscaling.knative.dev/maxScale": "2" })).toBe(
      `max-scale=2 is less than min-scale=3: ${prefix}/max-scale, ${prefix}/min-scale`,
    );
  });

  test("with max-scale-limit 5 a max scale below it is accepted, above it or unlimited is not (knative/serving#10825)", () => {
    const limited = { ...config, autoscaler: parseAutoscalerConfig({ "max-scale-limit": "5", "max-scale": "2" }) };
    for (const key of ["max-scale", "maxScale"]) {
      expect(annotate({ [`autoscaling.knative.dev/${key}`]: "4" }, limited)).toBeUndefined();
      expect(annotate({ [`autoscaling.knative.dev/${key}`]: "5" }, limited)).toBeUndefined();
      expect(annotate({ [`autoscaling.knative.dev/${key}`]: "6" }, limited)).toBe(
        `expected 1 <= 6 <= 5: ${prefix}/${key}`,
      );
    }
    expect(annotate({ "autoscaling.knative.dev/max-scale": "0" }, limited)).toBe(
      `max-scale=0 (unlimited), must be less than 5: ${prefix}/max-scale`,
    );
  });

  test("class and target on the Service itself are checked as on the template", () => {
    const onService = (key: string, value: string) =>
      refusal(service({ metadata: { annotations: { [`autoscaling.fairway.dev/${key}`]: value } } }));
    expect(onService("class", "manual.autoscaling.fairway.dev")).toBeUndefined();
    expect(onService("class", "hpa")).toContain(
      "invalid value: hpa: metadata.annotations.autoscaling.fairway.dev/class",
    );
    expect(onService("target", "5")).toBeUndefined();
    expect(onService("target", "0")).toContain("metadata.annotations.autoscaling.fairway.dev/target");
    expect(onService("target-utilization-percentage", "101")).toContain("expected 1 <= 101 <= 100");
    expect(onService("share-process-namespace", "true")).toContain("share-process-namespace");
    expect(annotate({ "autoscaling.fairway.dev/share-process-namespace": "true" })).toBeUndefined();
  });

  test("classes that nobody here implements are refused, with those that exist", () => {
    expect(annotate({ "autoscaling.knative.dev/class": "hpa.autoscaling.knative.dev" })).toBe(
      `invalid value: hpa.autoscaling.knative.dev: ${prefix}/class\nmust be one of: kpa.autoscaling.knative.dev, cloudrun.autoscaling.fairway.dev, manual.autoscaling.fairway.dev`,
    );
    expect(
      annotate({
        "autoscaling.knative.dev/class": "cloudrun.autoscaling.fairway.dev",
        "autoscaling.knative.dev/metric": "cpu",
      }),
    ).toBeUndefined();
  });

  test("Fairway's own keys have bounds, and misspelt or misplaced ones are refused", () => {
    expect(annotate({ "flowcontrol.fairway.dev/queue-length": "-1" })).toBe(
      "expected 0 <= -1 <= 100000: spec.template.metadata.annotations.flowcontrol.fairway.dev/queue-length",
    );
    expect(annotate({ "flowcontrol.fairway.dev/que-length": "1" })).toBe(
      'invalid key name "flowcontrol.fairway.dev/que-length": spec.template.metadata.annotations\nno such annotation',
    );
    expect(annotate({ "autoscaling.fairway.dev/min-scale": "1" })).toContain(
      `must be put on the Service's own "metadata.annotations" to work`,
    );
    expect(annotate({ "autoscaling.fairway.dev/cpu-target-percentage": "disabled" })).toBeUndefined();
  });

  test("the queue-proxy's resources and the progress deadline", () => {
    expect(annotate({ "queue.sidecar.serving.knative.dev/cpu-resource-limit": "x" })).toBe(
      "invalid value: x: spec.template.metadata.annotations.[queue.sidecar.serving.knative.dev/cpu-resource-limit]",
    );
    expect(annotate({ "serving.knative.dev/progress-deadline": "1.5s" })).toBe(
      "progress-deadline=1.5s is not at second precision: spec.template.metadata.annotations.serving.knative.dev/progress-deadline",
    );
    expect(annotate({ "networking.knative.dev/foo": "x" })).toBe(
      'invalid key name "networking.knative.dev/foo": spec.template.metadata.annotations',
    );
  });
});

describe("metadata of the Service", () => {
  test("autoscaling annotations of Knative belong to the template", () => {
    expect(
      refusal(service({ metadata: { name: "hello", annotations: { "autoscaling.knative.dev/min-scale": "1" } } })),
    ).toBe(
      'invalid key name "autoscaling.knative.dev/min-scale": metadata.annotations\n' +
        'autoscaling annotations must be put under "spec.template.metadata.annotations" to work',
    );
  });

  test("the rollout duration is in whole seconds", () => {
    expect(
      refusal(service({ metadata: { name: "hello", annotations: { "serving.knative.dev/rollout-duration": "-1s" } } })),
    ).toBe("rollout-duration=-1s must be positive: metadata.annotations.serving.knative.dev/rollout-duration");
  });

  test("the name is a label of a host name", () => {
    expect(refusal(service({ metadata: { name: "1hello" } }))).toMatch(
      /^not a DNS 1035 label: \[a DNS-1035 label must consist .*\]: metadata.name$/,
    );
    expect(refusal(service({ metadata: { name: undefined, generateName: "hello-" } }))).toBeUndefined();
  });
});

describe("names of revisions brought along", () => {
  test("begin with the Service's name", () => {
    expect(refusal(service({ template: { name: "other-v1" } }))).toBe(
      'invalid value: "other-v1" must have prefix "hello-": spec.template.metadata.name',
    );
    expect(refusal(service({ template: { name: "hello-v1" } }))).toBeUndefined();
    expect(
      refusal(service({ metadata: { name: undefined, generateName: "hello-" }, template: { name: "hello-v1" } })),
    ).toBe("must not set the field(s): spec.template.metadata.name");
  });

  const old = setServiceDefaults(service({ template: { name: "hello-v1" } }), { operation: "CREATE", config });
  const update = (next: Service) =>
    validationFailure(
      validateService(setServiceDefaults(next, { operation: "UPDATE", old, config }), {
        operation: "UPDATE",
        old,
        config,
      }),
    );

  test("must change with the template", () => {
    expect(update(service({ template: { name: "hello-v1" }, container: { image: "new" } }))).toBe(
      "validation failed: Saw the following changes without a name change (-old +new): spec.template.metadata.name\n" +
        'spec.containers[0].image:\n\t-: "app"\n\t+: "new"\n',
    );
    expect(update(service({ template: { name: "hello-v2" }, container: { image: "new" } }))).toBeUndefined();
  });

  test("need not change when nothing does, whichever way clients spell it", () => {
    expect(update(service({ template: { name: "hello-v1" } }))).toBeUndefined();
    const spelt = structuredClone(old);
    spelt.spec.template.spec.containers[0]!.env = [];
    spelt.spec.template.spec.containers[0]!.workingDir = "";
    expect(update(spelt)).toBeUndefined();
  });
});

describe("creator and modifier", () => {
  const old = setServiceDefaults(service(), { operation: "CREATE", user: "alice", config });
  const annotated = (annotations: Record<string, string>): Service => ({
    ...old,
    metadata: { ...old.metadata, annotations: { ...old.metadata.annotations, ...annotations } },
  });
  const check = (next: Service) => validationFailure(validateService(next, { operation: "UPDATE", old, config }));

  test("cannot be changed by hand", () => {
    expect(check(annotated({ "serving.knative.dev/creator": "eve" }))).toBe(
      "validation failed: annotation value is immutable: metadata.annotations.serving.knative.dev/creator",
    );
    expect(check(annotated({ "serving.knative.dev/lastModifier": "eve" }))).toBe(
      "validation failed: invalid value: eve: metadata.annotations.serving.knative.dev/lastModifier",
    );
    expect(check(old)).toBeUndefined();
  });

  test("an update of the status alone is not judged by rules that may be newer than the object", () => {
    const broken = annotated({ "autoscaling.knative.dev/min-scale": "x" });
    expect(validateService(broken, { operation: "UPDATE", old, subresource: "status", config })).toEqual([]);
  });
});

describe("traffic", () => {
  const check = (...traffic: TrafficTarget[]) => refusal(service({ traffic }));

  test.each<[string, TrafficTarget[], string]>([
    ["sums to 100", [{ percent: 50 }], "Traffic targets sum to 50, want 100: spec.traffic"],
    [
      "has each tag once",
      [
        { percent: 100, tag: "a" },
        { tag: "a", revisionName: "hello-1" },
      ],
      'Multiple definitions for "a": spec.traffic[0].tag, spec.traffic[1].tag',
    ],
    [
      "of a Service names no configuration",
      [{ percent: 100, configurationName: "x" }],
      "must not set the field(s): spec.traffic[0].configurationName",
    ],
    [
      "agrees with latestRevision",
      [{ percent: 100, revisionName: "hello-1", latestRevision: true }],
      'may not set revisionName "hello-1" when latestRevision is true: spec.traffic[0].latestRevision',
    ],
    ["has no URL", [{ percent: 100, url: "http://x" }], "must not set the field(s): spec.traffic[0].url"],
    [
      "has shares from 0 to 100",
      [{ percent: 101 }, { percent: -1, revisionName: "hello-1" }],
      "expected 0 <= -1 <= 100: spec.traffic[1].percent\nexpected 0 <= 101 <= 100: spec.traffic[0].percent",
    ],
  ])("%s", (_, traffic, message) => {
    expect(check(...traffic)).toBe(message);
  });

  test("of a Route names a revision or a configuration", () => {
    const route = (target: TrafficTarget): Route => ({
      metadata: { name: "r" },
      spec: { traffic: [{ percent: 100, ...target }] },
    });
    const check = (target: TrafficTarget) =>
      validationFailure(validateRoute(route(target), { operation: "CREATE", config }));
    expect(check({})).toBe(
      "validation failed: expected exactly one, got neither: spec.traffic[0].configurationName, spec.traffic[0].revisionName",
    );
    expect(check({ revisionName: "a", configurationName: "b" })).toContain("expected exactly one, got both");
    expect(check({ configurationName: "b" })).toBeUndefined();
    expect(check({ revisionName: "a b" })).toContain(
      'invalid key name "a b": spec.traffic[0].revisionName\nname part must',
    );
  });
});

test("a label that names an owner must be true", () => {
  const labels = { "serving.knative.dev/service": "hello" };
  const configuration: Configuration = { metadata: { name: "hello", labels }, spec: service().spec };
  expect(validationFailure(validateConfiguration(configuration, { operation: "CREATE", config }))).toContain(
    "missing field(s): metadata.labels.serving.knative.dev/service",
  );
  const ownerReferences = [{ apiVersion: "serving.knative.dev/v1", kind: "Service", name: "hello", uid: "u" }];
  const owned = { ...configuration, metadata: { ...configuration.metadata, ownerReferences } };
  expect(validationFailure(validateConfiguration(owned, { operation: "CREATE", config }))).toBeUndefined();
});

test("a Revision is immutable; zeros that Go clients add are no change", () => {
  const old: Revision = {
    metadata: { name: "r" },
    spec: { containers: [{ name: "c", image: "app-a", resources: { limits: { cpu: 1 } } }] },
  };
  const same = structuredClone(old);
  same.spec.containers[0]!.ports = [];
  same.spec.containers[0]!.resources = { limits: { cpu: "1000m" } };
  expect(validateRevision(same, { operation: "UPDATE", old, config })).toEqual([]);
  const changed = structuredClone(old);
  changed.spec.containers[0]!.image = "app-b";
  expect(validationFailure(validateRevision(changed, { operation: "UPDATE", old, config }))).toBe(
    'validation failed: Immutable fields changed (-old +new): spec\nspec.containers[0].image:\n\t-: "app-a"\n\t+: "app-b"\n',
  );
});
