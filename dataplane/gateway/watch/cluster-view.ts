import { LABEL } from "../../../api/labels.ts";
import type { Revision, Route } from "../../../api/serving/v1/types.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Endpoint } from "../revisions/pod.ts";
import { revisionSettings, type SettingsDefaults } from "../revisions/revision-settings.ts";
import type { RevisionBackend } from "../revisions/revision-backend.ts";
import type { RevisionRegistry } from "../revisions/revision-registry.ts";
import { compileRoute, type CompiledRoute } from "../routing/compiled-route.ts";
import { RoutingTable } from "../routing/routing-table.ts";
import { endpointsOf, revisionOf, type EndpointSlice } from "./endpoints.ts";
import { keyedHandler } from "./keyed-handler.ts";
import type { CollectionHandler, WatchedCollection } from "./reflector.ts";

export interface ClusterViewOptions {
  readonly registry: RevisionRegistry;
  readonly clock: Clock;
  readonly random: () => number;
  readonly clusterDomain: string;
  readonly systemNamespace: string;
  readonly defaults: SettingsDefaults;
  /** Takes the next routing table; from then on every request goes by it. */
  readonly onTable: (table: RoutingTable<RevisionBackend>) => void;
  /** Addresses (`host:port`) of the leading operator's intake, as they change. */
  readonly onAutoscaler: (addresses: readonly string[]) => void;
  /** All gateways there are, as they change. */
  readonly onGateways: (gateways: readonly Endpoint[]) => void;
}

export interface ViewedCollection {
  readonly collection: WatchedCollection;
  readonly handler: CollectionHandler;
}

/** Where the leading operator takes reports. */
const AUTOSCALER_SERVICE = "fairway-autoscaler";
/** The gateways' listeners for requests from inside the cluster. */
const GATEWAY_SERVICE = "fairway-gateway-internal";

/** A table of thousands of hosts is not made anew for each of thousands of events. */
const TABLE_DELAY_MS = 5;

/** Turns what the API server says into routing tables, revisions and their pods. */
export class ClusterView {
  readonly #options: ClusterViewOptions;
  readonly #routes = new Map<string, { readonly route: Route; readonly compiled: CompiledRoute<RevisionBackend> }>();
  readonly #revisions = new Map<string, Revision>();
  /** By revision, then by slice. */
  readonly #slices = new Map<string, Map<string, EndpointSlice>>();
  readonly #systemSlices = new Map<string, EndpointSlice>();
  #isTableDue = false;

  constructor(options: ClusterViewOptions) {
    this.#options = options;
  }

  /** Everything to be watched. */
  get collections(): readonly ViewedCollection[] {
    const { systemNamespace } = this.#options;
    return [
      {
        collection: { kind: "Revision", path: "/apis/serving.knative.dev/v1/revisions" },
        handler: keyedHandler<Revision>({
          upsert: (key, revision) => this.#setRevision(key, revision),
          remove: key => this.#removeRevision(key),
          keys: () => this.#revisions.keys(),
        }),
      },
      {
        collection: {
          kind: "EndpointSlice",
          path: "/apis/discovery.k8s.io/v1/endpointslices",
          labelSelector: `${LABEL.revision},${LABEL.endpointSliceManagedBy}=endpointslice-controller.k8s.io`,
        },
        handler: keyedHandler<EndpointSlice>({
          upsert: (key, slice) => this.#setSlice(key, slice),
          remove: key => this.#removeSlice(key),
          keys: () => [...this.#slices.values()].flatMap(slices => [...slices.keys()]),
        }),
      },
      {
        collection: { kind: "Route", path: "/apis/serving.knative.dev/v1/routes" },
        handler: keyedHandler<Route>({
          upsert: (key, route) => this.#setRoute(key, route),
          remove: key => this.#removeRoute(key),
          keys: () => this.#routes.keys(),
        }),
      },
      {
        collection: {
          kind: "system EndpointSlice",
          path: `/apis/discovery.k8s.io/v1/namespaces/${systemNamespace}/endpointslices`,
          labelSelector: `${LABEL.endpointSliceService} in (${AUTOSCALER_SERVICE},${GATEWAY_SERVICE})`,
        },
        handler: keyedHandler<EndpointSlice>({
          upsert: (key, slice) => {
            this.#systemSlices.set(key, slice);
            this.#tellSystem();
          },
          remove: key => {
            this.#systemSlices.delete(key);
            this.#tellSystem();
          },
          keys: () => this.#systemSlices.keys(),
        }),
      },
    ];
  }

  /** Makes a table that is due at once: before readiness is told. */
  flush(): void {
    this.#isTableDue = false;
    this.#options.onTable(new RoutingTable([...this.#routes.values()].map(({ compiled }) => compiled)));
  }

  #setRevision(key: string, revision: Revision): void {
    const isNew = !this.#revisions.has(key);
    this.#revisions.set(key, revision);
    this.#configure(key, revision);
    // A route counts as programmed when its revisions are known: look again.
    if (isNew) this.#tableDue();
  }

  #configure(key: string, revision: Revision): void {
    const { registry, defaults } = this.#options;
    const { name = "", namespace = "", labels } = revision.metadata;
    const service = labels?.[LABEL.service];
    const route = service === undefined ? undefined : this.#routes.get(`${namespace}/${service}`)?.route;
    registry.configure(namespace, name, revisionSettings(revision, route?.metadata.annotations, defaults));
    const slices = this.#slices.get(key);
    if (slices !== undefined) registry.setEndpoints(namespace, name, endpointsOf(slices.values()));
  }

  #removeRevision(key: string): void {
    this.#revisions.delete(key);
    const [namespace = "", name = ""] = key.split("/");
    this.#options.registry.remove(namespace, name);
    // Routes that still name it must not hold on to what is gone.
    for (const [routeKey, { route, compiled }] of this.#routes)
      if (route.metadata.namespace === namespace && compiled.revisions.has(name)) this.#compile(routeKey, route);
  }

  #setSlice(key: string, slice: EndpointSlice): void {
    const revision = revisionOf(slice);
    if (revision === undefined) return;
    const revisionKey = `${slice.metadata.namespace}/${revision}`;
    let slices = this.#slices.get(revisionKey);
    if (slices === undefined) {
      slices = new Map<string, EndpointSlice>();
      this.#slices.set(revisionKey, slices);
    }
    slices.set(key, slice);
    this.#tellPods(revisionKey);
  }

  #removeSlice(key: string): void {
    for (const [revisionKey, slices] of this.#slices) {
      if (!slices.delete(key)) continue;
      if (slices.size === 0) this.#slices.delete(revisionKey);
      this.#tellPods(revisionKey);
      return;
    }
  }

  #tellPods(revisionKey: string): void {
    // Of a revision that is gone or not seen yet nobody asks for pods.
    if (!this.#revisions.has(revisionKey)) return;
    const [namespace = "", name = ""] = revisionKey.split("/");
    const slices = this.#slices.get(revisionKey)?.values() ?? [];
    this.#options.registry.setEndpoints(namespace, name, endpointsOf(slices));
  }

  #setRoute(key: string, route: Route): void {
    const before = this.#routes.get(key)?.route;
    this.#compile(key, route);
    if (JSON.stringify(before?.metadata.annotations) === JSON.stringify(route.metadata.annotations)) return;
    for (const [revisionKey, revision] of this.#revisions)
      if (
        revision.metadata.namespace === route.metadata.namespace &&
        revision.metadata.labels?.[LABEL.service] === route.metadata.name
      )
        this.#configure(revisionKey, revision);
  }

  #compile(key: string, route: Route): void {
    const { clusterDomain, random, registry } = this.#options;
    const compiled = compileRoute(route, {
      clusterDomain,
      random,
      revision: (namespace, name) => registry.get(namespace, name),
    });
    const before = this.#routes.get(key)?.compiled;
    // The same routing keeps its deck, so that percents stay exact over changes that do not matter here.
    const isSame =
      before?.fingerprint === compiled.fingerprint &&
      targetsOf(before).every(backend => registry.find(backend.key) === backend);
    this.#routes.set(key, { route, compiled: isSame ? before : compiled });
    if (!isSame) this.#tableDue();
  }

  #removeRoute(key: string): void {
    this.#routes.delete(key);
    this.#tableDue();
  }

  #tellSystem(): void {
    const slicesOf = (service: string): EndpointSlice[] =>
      [...this.#systemSlices.values()].filter(slice => slice.metadata.labels?.[LABEL.endpointSliceService] === service);
    const intakes = endpointsOf(slicesOf(AUTOSCALER_SERVICE), () => true);
    this.#options.onAutoscaler(intakes.filter(endpoint => endpoint.ready).map(endpoint => endpoint.address));
    this.#options.onGateways(endpointsOf(slicesOf(GATEWAY_SERVICE)));
  }

  #tableDue(): void {
    if (this.#isTableDue) return;
    this.#isTableDue = true;
    this.#options.clock.after(TABLE_DELAY_MS, () => {
      if (this.#isTableDue) this.flush();
    });
  }
}

function targetsOf(route: CompiledRoute<RevisionBackend>): RevisionBackend[] {
  return [...route.internal.values()].flatMap(target => target.deck.shares.map(share => share.target));
}
