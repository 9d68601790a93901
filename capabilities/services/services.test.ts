import { describe, expect, it } from "vitest";
import { LABEL, STATE_ANNOTATION } from "../../api/labels.ts";
import type { ServiceSpec } from "../../api/serving/v1/types.ts";
import { routeFingerprint } from "../../api/wire/programmed.ts";
import { ApiError } from "../runtime/api-error.ts";
import { NAMESPACE, ServicesHarness } from "./testing/services-harness.ts";

const app = (
  image: string,
  annotations: Record<string, string> = {},
  extra: Partial<ServiceSpec> = {},
): ServiceSpec => ({
  template: { metadata: { annotations }, spec: { containers: [{ name: "user-container", image }] } },
  traffic: [{ latestRevision: true, percent: 100 }],
  ...extra,
});
const crashed = {
  containerStatuses: [{ name: "user-container", lastState: { terminated: { exitCode: 1, message: "boom" } } }],
};
const routing = (h: ServicesHarness, revision: string): (string | undefined)[] => {
  const { labels, annotations } = h.revision(revision).metadata;
  return [labels?.[LABEL.routingState], annotations?.[STATE_ANNOTATION.routes]];
};

describe("a new Service", () => {
  it("becomes everything it needs, and ready when its pod and the gateways are", async () => {
    const h = new ServicesHarness();
    h.programmed = new Map();
    h.putService("hello", app("x:1"));
    await h.settle();
    expect(h.deployment("hello-00001-deployment").spec?.replicas).toBe(1);
    expect(h.condition(h.service("hello"), "Ready")).toBe("Unknown");
    expect(h.condition(h.revision("hello-00001"), "ResourcesAvailable")).toBe("Unknown Deploying");
    // Made as routed: the autoscaler lets go of a revision that fails and that no Route leads to.
    expect(h.cluster.changes).not.toContain("patchMetadata Revision hello-00001");
    expect(routing(h, "hello-00001")).toEqual(["active", "hello"]);
    expect(h.condition(h.route("hello"), "AllTrafficAssigned")).toBe("Unknown RevisionMissing");

    await h.run();
    expect(h.condition(h.revision("hello-00001"), "Ready")).toBe("True");
    expect(h.route("hello").status?.traffic).toEqual([
      { revisionName: "hello-00001", latestRevision: true, percent: 100 },
    ]);
    expect(h.condition(h.service("hello"), "Ready")).toBe("Unknown Uninitialized");

    h.programmed.set("default/hello", routeFingerprint(h.route("hello")));
    await h.settle();
    expect(h.service("hello").status).toMatchObject({
      observedGeneration: 1,
      latestCreatedRevisionName: "hello-00001",
      latestReadyRevisionName: "hello-00001",
      url: "http://hello.default.svc.cluster.local",
      address: { url: "http://hello.default.svc.cluster.local" },
    });
    expect(h.condition(h.service("hello"), "Ready")).toBe("True");
    expect(routing(h, "hello-00001")).toEqual(["active", "hello"]);
    expect(h.context.endpointSlices.list().map(slice => slice.endpoints?.[0]?.addresses)).toEqual([["10.0.0.1"]]);
    expect(h.cluster.events).toContain(
      'Normal Service/hello Ready: Revision "hello-00001" serves at http://hello.default.svc.cluster.local',
    );
  });

  it("applied again as it is changes nothing", async () => {
    const h = new ServicesHarness();
    h.putService("hello", app("x:1"));
    await h.run();
    const before = h.cluster.changes.length;
    h.putService("hello", app("x:1"));
    await h.settle();
    expect(h.cluster.changes.slice(before)).toEqual([]);
  });

  it("takes its children with it", async () => {
    const h = new ServicesHarness();
    h.putService("hello", app("x:1"));
    await h.run();
    h.cluster.remove({ apiVersion: "serving.knative.dev/v1", kind: "Service", namespace: NAMESPACE, name: "hello" });
    await h.settle();
    expect([h.context.deployments, h.context.coreServices, h.context.endpointSlices].map(l => l.list().length)).toEqual(
      [0, 0, 0],
    );
  });
});

describe("replicas", () => {
  it("begin at the larger of initial and min scale, and are the autoscaler's from then on", async () => {
    const h = new ServicesHarness();
    h.putService(
      "hello",
      app("x:1", { "autoscaling.knative.dev/initial-scale": "3", "autoscaling.knative.dev/min-scale": "2" }),
    );
    await h.run();
    expect(h.deployment("hello-00001-deployment").spec?.replicas).toBe(3);
    await h.scale("hello-00001-deployment", 7);
    h.settings.update("config-deployment", { "queue-sidecar-image": "registry.example/next:1" });
    await h.settle();
    const { spec } = h.deployment("hello-00001-deployment");
    expect(spec?.replicas).toBe(7);
    expect(spec?.template?.spec?.initContainers?.[0]?.image).toBe("registry.example/next:1");
    expect(spec?.strategy?.rollingUpdate?.maxUnavailable).toBe(0);
  });

  it("stay when the hand-over was interrupted", async () => {
    const h = new ServicesHarness();
    h.cluster.refuse = verb => {
      if (verb === "applyPart") throw new ApiError("gone away", 0, "Unreachable");
    };
    h.putService("hello", app("x:1", { "autoscaling.knative.dev/initial-scale": "3" }));
    expect(await h.settle()).not.toEqual([]);
    expect(h.deployment("hello-00001-deployment").spec?.replicas).toBe(3);
    h.cluster.refuse = () => undefined;
    await h.run();
    expect(h.deployment("hello-00001-deployment").spec?.replicas).toBe(3);
  });

  it("may begin at zero where the cluster allows it", async () => {
    const h = new ServicesHarness();
    h.settings.update("config-autoscaler", { "allow-zero-initial-scale": "true" });
    h.putService("hello", app("x:1", { "autoscaling.knative.dev/initial-scale": "0" }));
    await h.settle();
    expect(h.deployment("hello-00001-deployment").spec?.replicas).toBe(0);
    expect(h.condition(h.service("hello"), "Ready")).toBe("True");
    expect(h.condition(h.revision("hello-00001"), "Active")).toBe("False NoTraffic");
  });
});

describe("an update", () => {
  it("KS#16649: leaves traffic with the old revision until the new one is ready at its initial scale", async () => {
    const h = new ServicesHarness();
    h.putService("hello", app("x:1"));
    await h.run();
    h.putService("hello", app("x:2", { "autoscaling.knative.dev/initial-scale": "20" }));
    await h.settle();
    h.setReady("hello-00002-deployment", 3);
    await h.settle();
    expect(h.route("hello").status?.traffic?.[0]?.revisionName).toBe("hello-00001");
    expect(h.condition(h.service("hello"), "Ready")).toBe("Unknown");
    expect(routing(h, "hello-00002")).toEqual(["active", "hello"]);

    h.setReady("hello-00002-deployment", 20);
    await h.settle();
    expect(h.route("hello").status?.traffic?.[0]?.revisionName).toBe("hello-00002");
    expect(h.condition(h.service("hello"), "Ready")).toBe("True");
    expect(routing(h, "hello-00001")).toEqual(["reserve", undefined]);
    // What was reached once counts, however few there are later.
    await h.scale("hello-00002-deployment", 1);
    h.setReady("hello-00002-deployment", 1);
    await h.settle();
    expect(h.condition(h.revision("hello-00002"), "Ready")).toBe("True");
  });

  it("keeps the old revision active until all gateways have moved", async () => {
    const h = new ServicesHarness();
    h.putService("hello", app("x:1"));
    await h.run();
    h.programmed = new Map([["default/hello", routeFingerprint(h.route("hello"))]]);
    h.putService("hello", app("x:2"));
    await h.run();
    expect(h.route("hello").status?.traffic?.[0]?.revisionName).toBe("hello-00002");
    expect(h.condition(h.service("hello"), "RoutesReady")).toBe("Unknown Uninitialized");
    expect(routing(h, "hello-00001")).toEqual(["active", "hello"]);
    h.programmed.set("default/hello", routeFingerprint(h.route("hello")));
    await h.settle();
    expect(routing(h, "hello-00001")).toEqual(["reserve", undefined]);
  });

  it("KS#5529: a revision that crashes with min scale 1 is let go when a good one follows", async () => {
    const h = new ServicesHarness();
    h.putService("hello", app("x:bad", { "autoscaling.knative.dev/min-scale": "1" }));
    await h.settle();
    h.putPod("hello-00001", "p", crashed);
    await h.settle();
    expect(h.condition(h.service("hello"), "Ready")).toBe("False RevisionFailed");
    expect(h.condition(h.revision("hello-00001"), "Ready")).toBe("False ExitCode1");
    expect(routing(h, "hello-00001")[0]).toBe("active");
    expect(h.service("hello").status?.conditions?.find(c => c.type === "Ready")?.message).toBe(
      'Revision "hello-00001" failed with message: Container failed with: boom.',
    );

    h.putService("hello", app("x:good", { "autoscaling.knative.dev/min-scale": "1" }));
    await h.settle();
    h.setReady("hello-00002-deployment", 1);
    await h.settle();
    expect(h.condition(h.service("hello"), "Ready")).toBe("True");
    expect(routing(h, "hello-00001")).toEqual(["reserve", undefined]);
  });

  it("KS#12330: what failed at first becomes ready by itself", async () => {
    const h = new ServicesHarness();
    h.putService("hello", app("x:1"));
    await h.settle();
    h.putPod("hello-00001", "p", crashed);
    h.setReady("hello-00001-deployment", 0, {
      type: "Progressing",
      status: "False",
      reason: "ProgressDeadlineExceeded",
    });
    await h.settle();
    expect(h.condition(h.service("hello"), "Ready")).toBe("False RevisionFailed");
    h.setReady("hello-00001-deployment", 1);
    await h.settle();
    expect(h.condition(h.service("hello"), "Ready")).toBe("True");
  });

  it("of labels and bounds on the Service itself makes no revision, and takes labels away again", async () => {
    const h = new ServicesHarness();
    h.putService("hello", app("x:1"));
    await h.run();
    h.putService("hello", app("x:1"), {
      labels: { juicy: "jamba" },
      annotations: { "autoscaling.fairway.dev/min-scale": "3" },
    });
    await h.settle();
    expect(h.configuration("hello").metadata.labels?.["juicy"]).toBe("jamba");
    expect(h.configuration("hello").metadata.generation).toBe(1);
    h.putService("hello", app("x:1"));
    await h.settle();
    expect(h.configuration("hello").metadata.labels).not.toHaveProperty("juicy");
    expect(h.route("hello").metadata.labels).not.toHaveProperty("juicy");
    // Knative leaves it on the core Service; its conformance tests look for that.
    expect(h.coreService("hello").metadata?.labels?.["juicy"]).toBe("jamba");
    expect(h.context.revisions.list().map(r => r.metadata.name)).toEqual(["hello-00001"]);
  });

  it("KS#2783: leaves the marks of GitOps tools on the Service alone", async () => {
    const h = new ServicesHarness();
    h.putService("hello", app("x:1"), {
      labels: { "app.kubernetes.io/instance": "argo-app" },
      annotations: { "argocd.argoproj.io/tracking-id": "id", "kubectl.kubernetes.io/last-applied-configuration": "{}" },
    });
    await h.run();
    const children = [
      h.configuration("hello"),
      h.route("hello"),
      h.revision("hello-00001"),
      h.deployment("hello-00001-deployment"),
      h.coreService("hello"),
      h.coreService("hello-00001"),
      ...h.context.endpointSlices.list(),
    ];
    const keys = children.flatMap(({ metadata }) => [
      ...Object.keys(metadata?.labels ?? {}),
      ...Object.keys(metadata?.annotations ?? {}),
    ]);
    expect(keys.filter(key => /instance|argocd|kubectl/.test(key))).toEqual([]);
  });
});

describe("a name of one's own", () => {
  const named = (name: string, image: string): ServiceSpec => ({
    template: { metadata: { name }, spec: { containers: [{ name: "user-container", image }] } },
    traffic: [{ latestRevision: true, percent: 100 }],
  });

  it("is the revision's; taken by another template, traffic stays", async () => {
    const h = new ServicesHarness();
    h.putService("hello", named("hello-blue", "x:1"));
    await h.run();
    expect(h.service("hello").status?.latestReadyRevisionName).toBe("hello-blue");
    h.putService("hello", named("hello-blue", "x:2"));
    await h.settle();
    expect(h.condition(h.service("hello"), "RoutesReady")).toBe("False RevisionNameTaken");
    expect(h.condition(h.service("hello"), "ConfigurationsReady")).toBe("False RevisionFailed");
    expect(h.route("hello").status?.traffic?.[0]?.revisionName).toBe("hello-blue");
  });

  it("comes back with its template: a rollback", async () => {
    const h = new ServicesHarness();
    h.putService("hello", named("hello-blue", "x:1"));
    await h.run();
    h.putService("hello", named("hello-green", "x:2"));
    await h.run();
    expect(h.route("hello").status?.traffic?.[0]?.revisionName).toBe("hello-green");
    h.putService("hello", named("hello-blue", "x:1"));
    await h.run();
    expect(h.route("hello").status?.traffic?.[0]?.revisionName).toBe("hello-blue");
    expect(h.condition(h.service("hello"), "Ready")).toBe("True");
    expect(routing(h, "hello-green")[0]).toBe("reserve");
    expect(routing(h, "hello-blue")[0]).toBe("active");
  });
});

describe("traffic", () => {
  it("is split among latest and pinned, with a URL and a core Service for each tag, which go with the tag", async () => {
    const h = new ServicesHarness();
    h.settings.update("config-domain", { "example.com": "" });
    h.putService("hello", app("x:1"));
    await h.run();
    h.putService(
      "hello",
      app(
        "x:2",
        {},
        {
          traffic: [
            { latestRevision: true, percent: 10, tag: "next" },
            { revisionName: "hello-00001", latestRevision: false, percent: 90 },
          ],
        },
      ),
    );
    await h.run();
    expect(h.service("hello").status?.traffic).toEqual([
      {
        tag: "next",
        revisionName: "hello-00002",
        latestRevision: true,
        percent: 10,
        url: "http://next-hello.default.example.com",
      },
      { revisionName: "hello-00001", latestRevision: false, percent: 90 },
    ]);
    expect(h.coreService("next-hello").spec?.externalName).toBe(
      "fairway-gateway-internal.fairway-system.svc.cluster.local",
    );
    expect(h.condition(h.service("hello"), "Ready")).toBe("True");
    expect([routing(h, "hello-00001")[0], routing(h, "hello-00002")[0]]).toEqual(["active", "active"]);

    h.putService("hello", app("x:2"));
    await h.run();
    expect(h.context.coreServices.get({ namespace: NAMESPACE, name: "next-hello" })).toBeUndefined();
    expect(routing(h, "hello-00001")[0]).toBe("reserve");
  });

  it("to a revision that does not exist is told, and what was routed before goes on", async () => {
    const h = new ServicesHarness();
    h.putService("hello", app("x:1"));
    await h.run();
    h.putService(
      "hello",
      app("x:1", {}, { traffic: [{ revisionName: "hello-99999", latestRevision: false, percent: 100 }] }),
    );
    await h.settle();
    expect(h.condition(h.service("hello"), "Ready")).toBe("False RevisionMissing");
    expect(h.route("hello").status?.traffic?.[0]?.revisionName).toBe("hello-00001");
  });

  it("stays ready in the eyes of a new leader, who has not heard of the gateways yet", async () => {
    const h = new ServicesHarness();
    h.putService("hello", app("x:1"));
    await h.run();
    h.programmed = new Map();
    const before = h.cluster.changes.length;
    await h.settle();
    expect(h.cluster.changes.slice(before)).toEqual([]);
    expect(h.condition(h.service("hello"), "Ready")).toBe("True");
  });

  it("of a cluster-local Service has only names of the cluster", async () => {
    const h = new ServicesHarness();
    h.settings.update("config-domain", { "example.com": "" });
    h.putService("hello", app("x:1"), { labels: { "networking.knative.dev/visibility": "cluster-local" } });
    await h.run();
    expect(h.service("hello").status?.url).toBe("http://hello.default.svc.cluster.local");
  });
});

describe("a taken name", () => {
  it.each([
    { apiVersion: "serving.knative.dev/v1", kind: "Configuration", name: "hello", condition: "ConfigurationsReady" },
    { apiVersion: "serving.knative.dev/v1", kind: "Route", name: "hello", condition: "RoutesReady" },
  ])("of the $kind is told and not taken over", async ({ apiVersion, kind, name, condition }) => {
    const h = new ServicesHarness();
    const spec = { template: { spec: { containers: [] } } };
    h.cluster.put({ apiVersion, kind, metadata: { namespace: NAMESPACE, name }, spec } as never);
    h.putService("hello", app("x:1"));
    await h.settle();
    expect(h.condition(h.service("hello"), condition)).toBe("False NotOwned");
  });

  it("of the core Service is told and not taken over", async () => {
    const h = new ServicesHarness();
    const ref = { apiVersion: "v1", kind: "Service", namespace: NAMESPACE, name: "hello" };
    h.cluster.put({ ...ref, metadata: { namespace: NAMESPACE, name: "hello" }, spec: { type: "ClusterIP" } } as never);
    h.putService("hello", app("x:1"));
    await h.run();
    expect(h.condition(h.route("hello"), "IngressReady")).toBe("False NotOwned");
    expect(h.cluster.find(ref)).toMatchObject({ spec: { type: "ClusterIP" } });
    expect(h.coreService("hello").metadata?.ownerReferences).toBeUndefined();
    // Requests from outside do not need it.
    expect(h.route("hello").status?.traffic?.[0]?.revisionName).toBe("hello-00001");
  });

  it("of the Deployment is told and not taken over", async () => {
    const h = new ServicesHarness();
    h.cluster.put({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { namespace: NAMESPACE, name: "hello-00001-deployment" },
      spec: { replicas: 4 },
    } as never);
    h.putService("hello", app("x:1"));
    await h.settle();
    expect(h.condition(h.revision("hello-00001"), "Ready")).toBe("False NotOwned");
    expect(h.deployment("hello-00001-deployment").spec).toEqual({ replicas: 4 });
  });

  it("by what an owner of the same name left behind is waited for", async () => {
    const h = new ServicesHarness();
    h.cluster.put({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: {
        namespace: NAMESPACE,
        name: "hello-00001-deployment",
        ownerReferences: [
          {
            apiVersion: "serving.knative.dev/v1",
            kind: "Revision",
            name: "hello-00001",
            uid: "gone",
            controller: true,
          },
        ],
      },
      spec: { replicas: 1 },
    } as never);
    h.putService("hello", app("x:1"));
    await h.settle();
    expect(h.condition(h.revision("hello-00001"), "Ready")).toBe("Unknown Deploying");
    h.cluster.remove({
      apiVersion: "apps/v1",
      kind: "Deployment",
      namespace: NAMESPACE,
      name: "hello-00001-deployment",
    });
    await h.run();
    expect(h.condition(h.service("hello"), "Ready")).toBe("True");
  });
});

describe("the API server's refusal", () => {
  it("of the Deployment is the revision's failure, with its words", async () => {
    const h = new ServicesHarness();
    h.cluster.refuse = (_verb, object) => {
      if (object.kind === "Deployment")
        throw new ApiError('Deployment "x" is invalid: spec.template.spec.nodeSelector', 422, "Invalid");
    };
    h.putService("hello", app("x:1"));
    await h.settle();
    expect(h.condition(h.revision("hello-00001"), "ResourcesAvailable")).toBe("False Invalid");
    expect(h.condition(h.service("hello"), "Ready")).toBe("False RevisionFailed");
    h.cluster.refuse = () => undefined;
    await h.run();
    expect(h.condition(h.service("hello"), "Ready")).toBe("True");
  });

  it("of a change does not make running pods unwell", async () => {
    const h = new ServicesHarness();
    h.putService("hello", app("x:1"));
    await h.run();
    h.settings.update("config-deployment", { "queue-sidecar-image": "registry.example/next:1" });
    h.cluster.refuse = (verb, object) => {
      if (verb === "apply" && object.kind === "Deployment") throw new ApiError("policy", 403, "Forbidden");
    };
    await h.settle();
    expect(h.condition(h.service("hello"), "Ready")).toBe("True");
    expect(h.cluster.events).toContain("Warning Revision/hello-00001 DeploymentRefused: policy");
  });

  it("of the revision is the Configuration's failure", async () => {
    const h = new ServicesHarness();
    h.cluster.refuse = (_verb, object) => {
      if (object.kind === "Revision") throw new ApiError("too many revisions", 403, "Forbidden");
    };
    h.putService("hello", app("x:1"));
    await h.settle();
    expect(h.condition(h.configuration("hello"), "Ready")).toBe("False RevisionFailed");
  });
});

describe("public endpoints", () => {
  it("follow the autoscaler's mode, and lead to the gateways while no pod is ready", async () => {
    const h = new ServicesHarness();
    h.putService("hello", app("x:1"));
    await h.run();
    const pod = { addresses: ["10.0.1.1"], conditions: { ready: true } };
    const privateSlice = (endpoints: object[]) =>
      h.cluster.put({
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        metadata: {
          namespace: NAMESPACE,
          name: "hello-00001-private-abc",
          labels: { [LABEL.endpointSliceService]: "hello-00001-private", [LABEL.revision]: "hello-00001" },
        },
        addressType: "IPv4",
        endpoints,
      } as never);
    const addresses = () =>
      h.context.endpointSlices
        .list({ labels: { [LABEL.endpointSliceService]: "hello-00001" } })
        .map(slice => [slice.endpoints?.[0]?.addresses?.[0], slice.ports?.[0]?.port]);
    privateSlice([pod]);
    h.scaling.set("default/hello-00001", { activity: { phase: "active" }, wanted: 1, mode: "serve" });
    await h.settle();
    expect(addresses()).toEqual([["10.0.1.1", 8012]]);
    privateSlice([]);
    await h.settle();
    expect(addresses()).toEqual([["10.0.0.1", 8081]]);
  });
});

describe("old revisions", () => {
  it("go by config-gc, the newest stay", async () => {
    const h = new ServicesHarness();
    h.settings.update("config-gc", {
      "min-non-active-revisions": "0",
      "max-non-active-revisions": "2",
      "retain-since-create-time": "disabled",
      "retain-since-last-active-time": "disabled",
    });
    for (let n = 1; n <= 6; n++) {
      h.nowMs += 60_000;
      h.putService("hello", app(`x:${n}`));
      await h.run();
    }
    expect(h.context.revisions.list().map(r => r.metadata.name)).toEqual(["hello-00004", "hello-00005", "hello-00006"]);
  });
});

describe("a standalone Configuration and Route", () => {
  it("work without a Service; the revision stays pending until a Route takes it", async () => {
    const h = new ServicesHarness();
    const metadata = { namespace: NAMESPACE, name: "solo" };
    const apiVersion = "serving.knative.dev/v1";
    h.cluster.put({ apiVersion, kind: "Configuration", metadata, spec: { template: app("x:1").template } } as never);
    await h.run();
    expect(h.condition(h.configuration("solo"), "Ready")).toBe("True");
    expect(routing(h, "solo-00001")).toEqual(["pending", undefined]);
    const spec = { traffic: [{ configurationName: "solo", latestRevision: true, percent: 100 }] };
    h.cluster.put({ apiVersion, kind: "Route", metadata: { namespace: NAMESPACE, name: "way" }, spec } as never);
    await h.run();
    expect(h.condition(h.route("way"), "Ready")).toBe("True");
    expect(routing(h, "solo-00001")).toEqual(["active", "way"]);
    h.cluster.remove({ apiVersion, kind: "Route", namespace: NAMESPACE, name: "way" });
    await h.settle();
    expect(routing(h, "solo-00001")).toEqual(["reserve", undefined]);
  });
});
