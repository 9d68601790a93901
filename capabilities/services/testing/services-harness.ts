import {
  SERVING_API_VERSION,
  type Configuration,
  type Revision,
  type Route,
  type Service,
} from "../../../api/serving/v1/types.ts";
import { LABEL } from "../../../api/labels.ts";
import { keyText } from "../../runtime/resource.ts";
import type { ObjectKey, Reconciler } from "../../runtime/types.ts";
import type { ServicesContext } from "../context.ts";
import type { CoreService, Deployment, EndpointSlice, Pod } from "../kinds.ts";
import { ConfigurationReconciler } from "../reconcile-configuration.ts";
import { RevisionReconciler } from "../reconcile-revision.ts";
import { RouteReconciler } from "../reconcile-route.ts";
import { ServiceReconciler } from "../reconcile-service.ts";
import type { ScalingStatus } from "../revision-scaling.ts";
import { RouteReferences } from "../routing/route-references.ts";
import { SettingsStore } from "../settings.ts";
import { Transitions } from "../transitions.ts";
import { FakeCluster } from "./fake-cluster.ts";

export const NAMESPACE = "default";
const MOST_ROUNDS = 50;

/** All four reconcilers on a fake cluster, with the world round them in the test's hands: pods, gateways, autoscaler, time. */
export class ServicesHarness {
  nowMs = Date.parse("2026-01-01T00:00:00Z");
  readonly cluster = new FakeCluster(() => this.nowMs);
  readonly settings = new SettingsStore({
    systemNamespace: "fairway-system",
    clusterDomain: "cluster.local",
    queueProxyImage: "fairway.dev/fairway:test",
  });
  /** What the autoscaler says, by `namespace/revision`. */
  readonly scaling = new Map<string, ScalingStatus>();
  /** What all gateways have programmed, by `namespace/route`; "all": whatever the status says. */
  programmed: Map<string, string> | "all" = "all";
  gateways: EndpointSlice[] = [
    {
      addressType: "IPv4",
      ports: [{ name: "http", port: 8081 }],
      endpoints: [{ addresses: ["10.0.0.1"], conditions: { ready: true } }],
    },
  ];
  readonly context: ServicesContext;
  readonly #references = new RouteReferences();
  readonly #known = new Map<string, Route>();
  readonly #reconcilers: readonly { readonly kind: string; readonly reconciler: Reconciler }[];

  constructor() {
    const serving = SERVING_API_VERSION;
    const { cluster } = this;
    this.context = {
      services: cluster.lister<Service>(serving, "Service"),
      configurations: cluster.lister<Configuration>(serving, "Configuration"),
      revisions: cluster.lister<Revision>(serving, "Revision"),
      routes: cluster.lister<Route>(serving, "Route"),
      deployments: cluster.lister<Deployment>("apps/v1", "Deployment"),
      coreServices: cluster.lister<CoreService>("v1", "Service"),
      endpointSlices: cluster.lister<EndpointSlice>("discovery.k8s.io/v1", "EndpointSlice"),
      gatewaySlices: () => this.gateways,
      pods: cluster.lister<Pod>("v1", "Pod"),
      writer: cluster.writer,
      find: async ref => cluster.find(ref),
      transitions: new Transitions({
        event: (object, type, reason, message) =>
          cluster.events.push(`${type} ${object.kind ?? "?"}/${object.metadata?.name ?? ""} ${reason}: ${message}`),
      }),
      settings: () => this.settings.current,
      scaling: { get: key => this.scaling.get(keyText(key)), onChange: () => undefined },
      programmed: {
        isProgrammed: (route, fingerprint) => this.programmed === "all" || this.programmed.get(route) === fingerprint,
        onChange: () => undefined,
      },
      references: this.#references,
      clock: { nowMs: () => this.nowMs },
    };
    this.#reconcilers = [
      { kind: "Service", reconciler: new ServiceReconciler(this.context) },
      { kind: "Configuration", reconciler: new ConfigurationReconciler(this.context) },
      { kind: "Revision", reconciler: new RevisionReconciler(this.context) },
      { kind: "Route", reconciler: new RouteReconciler(this.context) },
    ];
  }

  /** Runs every reconciler on every object until a whole round changes nothing. Returns the errors of the last round. */
  async settle(): Promise<readonly unknown[]> {
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const before = this.cluster.changes.length;
      const errors: unknown[] = [];
      for (const { kind, reconciler } of this.#reconcilers) {
        for (const key of this.cluster.keys(SERVING_API_VERSION, kind)) {
          this.#followRoutes();
          try {
            await reconciler.reconcile(key, new AbortController().signal);
          } catch (error) {
            errors.push(error);
          }
        }
      }
      if (this.cluster.changes.length === before) return errors;
    }
    throw new Error(
      `not settled after ${MOST_ROUNDS} rounds; last changes: ${this.cluster.changes.slice(-10).join(", ")}`,
    );
  }

  /** Settles, and makes every pod that is wanted ready, until both are at rest. */
  async run(): Promise<void> {
    for (let round = 0; round < MOST_ROUNDS; round++) {
      await this.settle();
      const starting = this.context.deployments
        .list()
        .filter(({ spec, status }) => (status?.readyReplicas ?? 0) !== (spec?.replicas ?? 1));
      if (starting.length === 0) return;
      for (const { metadata, spec } of starting) this.setReady(metadata?.name ?? "", spec?.replicas ?? 1);
    }
  }

  /** As the Deployment's controller would report. */
  setReady(deployment: string, readyReplicas: number, ...conditions: object[]): void {
    const ref = { apiVersion: "apps/v1", kind: "Deployment", namespace: NAMESPACE, name: deployment };
    this.cluster.setStatus(ref, { readyReplicas, conditions });
  }

  /** As the autoscaler would write. */
  async scale(deployment: string, replicas: number): Promise<void> {
    await this.context.writer.applyPart<Deployment>(
      {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { namespace: NAMESPACE, name: deployment },
        spec: { replicas },
      },
      "fairway-autoscaler",
      new AbortController().signal,
    );
  }

  putService(name: string, spec: Service["spec"], metadata: Service["metadata"] = {}): void {
    const meta = { ...metadata, name, namespace: NAMESPACE };
    this.cluster.put<Service>({ apiVersion: SERVING_API_VERSION, kind: "Service", metadata: meta, spec });
  }

  putPod(revision: string, name: string, status: Pod["status"]): void {
    const labels = { [LABEL.revision]: revision };
    this.cluster.put<Pod>({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: NAMESPACE, labels } });
    this.cluster.setStatus({ apiVersion: "v1", kind: "Pod", namespace: NAMESPACE, name }, status ?? {});
  }

  removePod(name: string): void {
    this.cluster.remove({ apiVersion: "v1", kind: "Pod", namespace: NAMESPACE, name });
  }

  service = (name: string): Service => this.#get(this.context.services, name);
  configuration = (name: string): Configuration => this.#get(this.context.configurations, name);
  revision = (name: string): Revision => this.#get(this.context.revisions, name);
  route = (name: string): Route => this.#get(this.context.routes, name);
  deployment = (name: string): Deployment => this.#get(this.context.deployments, name);
  coreService = (name: string): CoreService => this.#get(this.context.coreServices, name);

  /** `status reason` of a condition. */
  condition(
    object: {
      status?:
        | { conditions?: readonly { type: string; status: string; reason?: string | undefined }[] | undefined }
        | undefined;
    },
    type: string,
  ): string {
    const found = object.status?.conditions?.find(condition => condition.type === type);
    return [found?.status ?? "absent", found?.reason].filter(Boolean).join(" ");
  }

  #get<T>(lister: { get(key: ObjectKey): T | undefined }, name: string): T {
    const found = lister.get({ namespace: NAMESPACE, name });
    if (found === undefined) throw new Error(`there is no ${name}`);
    return found;
  }

  #followRoutes(): void {
    const present = new Map(
      this.context.routes.list().map(route => [keyText({ ...route.metadata, name: route.metadata.name ?? "" }), route]),
    );
    for (const [key, route] of this.#known) if (!present.has(key)) this.#references.update(route, "deleted");
    for (const route of present.values()) this.#references.update(route, "modified");
    this.#known.clear();
    for (const [key, route] of present) this.#known.set(key, route);
  }
}
