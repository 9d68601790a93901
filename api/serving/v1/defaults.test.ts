import { describe, expect, test } from "vitest";
import { parseDefaultsConfig } from "../../config/defaults.ts";
import { parseFeaturesConfig } from "../../config/features.ts";
import type { DefaultingContext } from "../admission.ts";
import { defaultAdmissionConfig } from "../admission.ts";
import { setConfigurationDefaults, setRevisionDefaults, setRouteDefaults, setServiceDefaults } from "./defaults.ts";
import type { RevisionSpec, Service } from "./types.ts";

const config = defaultAdmissionConfig();
const create: DefaultingContext<never> = { operation: "CREATE", user: "alice", config };

const service = (spec: Partial<RevisionSpec> = {}, template: Partial<Service["spec"]["template"]> = {}): Service => ({
  metadata: { name: "hello", namespace: "ns" },
  spec: { template: { ...template, spec: { containers: [{ image: "app" }], ...spec } } },
});
const specOf = (s: Service) => s.spec.template.spec;

describe("a new Service", () => {
  const defaulted = setServiceDefaults(service(), create);

  test("gets Knative's defaults, and the argument is not changed", () => {
    const given = service();
    expect(setServiceDefaults(given, create)).toEqual({
      metadata: {
        name: "hello",
        namespace: "ns",
        annotations: { "serving.knative.dev/creator": "alice", "serving.knative.dev/lastModifier": "alice" },
      },
      spec: {
        template: {
          spec: {
            containers: [
              {
                name: "user-container",
                image: "app",
                resources: {},
                readinessProbe: { tcpSocket: {}, successThreshold: 1 },
              },
            ],
            containerConcurrency: 0,
            timeoutSeconds: 300,
            enableServiceLinks: false,
          },
        },
        traffic: [{ latestRevision: true, percent: 100 }],
      },
    });
    expect(given).toEqual(service());
  });

  test("defaulting again changes nothing", () => {
    expect(setServiceDefaults(defaulted, { ...create, operation: "UPDATE", old: defaulted })).toEqual(defaulted);
  });

  test.each([{ annotations: {} }, { labels: {}, annotations: {} }, {}])(
    "metadata of the template that says nothing, such as %j, is left out: it must not make a generation",
    metadata => {
      expect(setServiceDefaults(service({}, { metadata }), create)).toEqual(defaulted);
    },
  );

  test("several containers are numbered around the names the user chose; only the serving one gets a probe", () => {
    const { containers } = specOf(
      setServiceDefaults(
        service({
          containers: [
            { image: "a", ports: [{ containerPort: 80 }] },
            { image: "b", name: "user-container-1" },
            { image: "c" },
          ],
        }),
        create,
      ),
    );
    expect(containers.map(c => c.name)).toEqual(["user-container-0", "user-container-1", "user-container-2"]);
    expect(containers.map(c => c.readinessProbe !== undefined)).toEqual([true, false, false]);
  });

  test("mounts are read-only except for volumes that can be written", () => {
    const { containers } = specOf(
      setServiceDefaults(
        service({
          containers: [
            {
              image: "a",
              volumeMounts: [
                { name: "s", mountPath: "/s" },
                { name: "e", mountPath: "/e" },
              ],
            },
          ],
          volumes: [
            { name: "s", secret: {} },
            { name: "e", emptyDir: {} },
          ],
        }),
        create,
      ),
    );
    expect(containers[0]?.volumeMounts).toEqual([
      { name: "s", mountPath: "/s", readOnly: true },
      { name: "e", mountPath: "/e" },
    ]);
  });

  test("a probe with a period gets Kubernetes' thresholds; a gRPC probe an empty service", () => {
    const { containers } = specOf(
      setServiceDefaults(
        service({ containers: [{ image: "a", readinessProbe: { periodSeconds: 5, grpc: {} } }] }),
        create,
      ),
    );
    expect(containers[0]?.readinessProbe).toEqual({
      periodSeconds: 5,
      grpc: { service: "" },
      successThreshold: 1,
      failureThreshold: 3,
      timeoutSeconds: 1,
    });
  });

  test("config-defaults decides names, timeouts and resources", () => {
    const defaults = parseDefaultsConfig({
      "container-name-template": "{{.Name}}-app",
      "revision-timeout-seconds": "120",
      "revision-response-start-timeout-seconds": "60",
      "revision-idle-timeout-seconds": "30",
      "container-concurrency": "5",
      "revision-cpu-request": "100m",
      "enable-service-links": "true",
    });
    const spec = specOf(setServiceDefaults(service(), { ...create, config: { ...config, defaults } }));
    expect(spec).toMatchObject({
      timeoutSeconds: 120,
      responseStartTimeoutSeconds: 60,
      idleTimeoutSeconds: 30,
      containerConcurrency: 5,
      enableServiceLinks: true,
    });
    expect(spec.containers[0]).toMatchObject({ name: "hello-app", resources: { requests: { cpu: "100m" } } });
  });

  test("secure-pod-defaults fills in the restricted profile", () => {
    const features = parseFeaturesConfig({ "secure-pod-defaults": "enabled" });
    const { containers } = specOf(
      setServiceDefaults(service({ containers: [{ image: "a", ports: [{ containerPort: 80 }] }] }), {
        ...create,
        config: { ...config, features },
      }),
    );
    expect(containers[0]?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      seccompProfile: { type: "RuntimeDefault" },
      capabilities: { drop: ["ALL"], add: ["NET_BIND_SERVICE"] },
      runAsNonRoot: true,
    });
  });
});

describe("an update", () => {
  const old = setServiceDefaults(service(), create);
  const update = { operation: "UPDATE", old, user: "bob", config } as const;
  const note = (s: Service) => s.metadata.annotations;

  test("of the spec notes who made it; of metadata alone does not", () => {
    const image = {
      ...old,
      spec: { ...old.spec, template: { spec: { ...specOf(old), containers: [{ image: "b" }] } } },
    };
    expect(note(setServiceDefaults(image, update))?.["serving.knative.dev/lastModifier"]).toBe("bob");
    const labelled = { ...old, metadata: { ...old.metadata, labels: { a: "b" } } };
    expect(note(setServiceDefaults(labelled, update))?.["serving.knative.dev/lastModifier"]).toBe("alice");
  });

  test("by a controller that writes the object without annotations keeps creator and modifier (kserve#344)", () => {
    const bare = { ...old, metadata: { name: "hello", namespace: "ns" } };
    expect(note(setServiceDefaults(bare, update))).toEqual(note(old));
  });

  test("by YAML that Cloud Run exported, with Google's users in it, keeps them too", () => {
    const exported = {
      ...old,
      metadata: {
        name: "hello",
        namespace: "ns",
        labels: { "cloud.googleapis.com/location": "europe-west1" },
        annotations: {
          "serving.knative.dev/creator": "me@example.com",
          "serving.knative.dev/lastModifier": "me@example.com",
        },
      },
    };
    expect(note(setServiceDefaults(exported, update))).toEqual(note(old));
  });

  test("that applies the user's own file again is no change, also when the template brings a name", () => {
    for (const template of [{}, { metadata: { name: "hello-v1" } }]) {
      const stored = setServiceDefaults(service({}, template), create);
      expect(setServiceDefaults(service({}, template), { ...update, old: stored }).spec).toEqual(stored.spec);
    }
  });

  test("that keeps the template's own name and content gets no default that is new since then", () => {
    const named = setServiceDefaults(service({}, { metadata: { name: "hello-v1" } }), create);
    const defaults = parseDefaultsConfig({ "revision-cpu-request": "100m" });
    expect(setServiceDefaults(named, { ...update, old: named, config: { ...config, defaults } }).spec).toEqual(
      named.spec,
    );
  });
});

test("children of a Service carry no user of their own; a Revision is defaulted only when it is made", () => {
  const owner = { apiVersion: "serving.knative.dev/v1", kind: "Service", name: "hello", uid: "u" };
  const metadata = { name: "hello", ownerReferences: [owner] };
  expect(setConfigurationDefaults({ metadata, spec: service().spec }, create).metadata).toEqual(metadata);
  expect(
    setRouteDefaults({ metadata, spec: { traffic: [{ configurationName: "hello", percent: 100 }] } }, create),
  ).toEqual({
    metadata,
    spec: { traffic: [{ configurationName: "hello", percent: 100, latestRevision: true }] },
  });
  const revision = { metadata: { name: "r" }, spec: { containers: [{ image: "a" }] } };
  expect(setRevisionDefaults(revision, create).spec.timeoutSeconds).toBe(300);
  expect(setRevisionDefaults(revision, { operation: "UPDATE", old: revision, config })).toBe(revision);
});
