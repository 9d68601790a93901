import { LABEL } from "../../api/labels.ts";
import {
  labelledWith,
  ownedBy,
  settling,
  watching,
  type Controller,
  type OperatorRuntime,
} from "../runtime/capability.ts";
import {
  configMaps,
  configurations,
  coreServices,
  deployments,
  endpointSlices,
  pods,
  revisions,
  routes,
  services,
  systemEndpointSlices,
} from "../runtime/kinds.ts";
import { keyOf } from "../runtime/resource.ts";
import type { KubeObject, Lister, ObjectKey } from "../runtime/types.ts";
import { INTERNAL_GATEWAY_SERVICE } from "./build/route-service.ts";
import type { ProgrammedRoutes, ServicesContext } from "./context.ts";
import type { CoreService, Deployment, EndpointSlice, Pod } from "./kinds.ts";
import { PodEndingReconciler, tellPodEnds } from "./pod-ending.ts";
import { ConfigurationReconciler } from "./reconcile-configuration.ts";
import { RevisionReconciler } from "./reconcile-revision.ts";
import { RouteReconciler } from "./reconcile-route.ts";
import { ServiceReconciler } from "./reconcile-service.ts";
import type { RevisionScaling } from "./revision-scaling.ts";
import { RouteReferences } from "./routing/route-references.ts";
import { SettingsStore } from "./settings.ts";
import { Transitions } from "./transitions.ts";

/**
 * A pod that starts changes its Deployment and itself ten times or so in its first second, on the same cores that start it:
 * the status of its revision follows in steps of this.
 */
const SETTLE_MS = 250;

export interface ServicesCollaborators {
  readonly scaling: RevisionScaling;
  readonly programmed: ProgrammedRoutes;
}

export interface ServicesControllers {
  readonly service: Controller;
  readonly configuration: Controller;
  readonly revision: Controller;
  readonly route: Controller;
}

/** Wires the reconcilers to the runtime: what each reads, and whose changes wake it. */
export function buildServices(runtime: OperatorRuntime, collaborators: ServicesCollaborators): ServicesControllers {
  const { config, clock, writer, events } = runtime;
  const settings = new SettingsStore(config);
  const references = new RouteReferences();
  const slicesOfSystem = runtime.lister(systemEndpointSlices);
  const context: ServicesContext = {
    services: runtime.lister(services),
    configurations: runtime.lister(configurations),
    revisions: runtime.lister(revisions),
    routes: runtime.lister(routes),
    deployments: asJson<Deployment>(runtime.lister(deployments)),
    coreServices: asJson<CoreService>(runtime.lister(coreServices)),
    endpointSlices: asJson<EndpointSlice>(runtime.lister(endpointSlices)),
    pods: asJson<Pod>(runtime.lister(pods)),
    gatewaySlices: () =>
      asJson<EndpointSlice>(slicesOfSystem).list({
        labels: { [LABEL.endpointSliceService]: INTERNAL_GATEWAY_SERVICE },
      }),
    writer,
    find: (ref, signal) => runtime.find(ref, signal),
    transitions: new Transitions(events),
    settings: () => settings.current,
    references,
    clock,
    ...collaborators,
  };

  const revisionsOf = (configuration: ObjectKey): readonly ObjectKey[] =>
    context.revisions
      .list({ namespace: configuration.namespace, labels: { [LABEL.configuration]: configuration.name } })
      .map(keyOf);

  const service = runtime.registerController({
    name: "service",
    reconciler: new ServiceReconciler(context),
    watches: [ownedBy(configurations, services), ownedBy(routes, services)],
  });
  const configuration = runtime.registerController({
    name: "configuration",
    reconciler: new ConfigurationReconciler(context),
    watches: [labelledWith(revisions, LABEL.configuration)],
  });
  const revision = runtime.registerController({
    name: "revision",
    concurrency: 8,
    reconciler: new RevisionReconciler(context),
    watches: [
      settling(ownedBy(deployments, revisions), SETTLE_MS),
      ownedBy(coreServices, revisions),
      labelledWith(endpointSlices, LABEL.revision),
      settling(labelledWith(pods, LABEL.revision), SETTLE_MS),
      // Which one is the latest decides what Routes lead to it.
      watching(configurations, object => revisionsOf(keyOf(object))),
    ],
  });
  const route = runtime.registerController({
    name: "route",
    reconciler: new RouteReconciler(context),
    watches: [
      ownedBy(coreServices, routes),
      watching(configurations, object => references.routesOfConfiguration(keyOf(object))),
      watching(revisions, object => [
        ...references.routesOfRevision(keyOf(object)),
        ...references.routesOfConfiguration({
          namespace: object.metadata.namespace,
          name: object.metadata.labels?.[LABEL.configuration] ?? "",
        }),
      ]),
    ],
  });
  runtime.registerController({
    name: "pod-ending",
    reconciler: new PodEndingReconciler({ pods: context.pods, writer, clock, tell: tellPodEnds }),
    watches: [watching(pods, pod => (pod.metadata?.deletionTimestamp === undefined ? [] : [keyOf(pod)]))],
  });

  runtime.onChange(routes, (object, phase) => {
    const touched = references.update(object, phase);
    for (const key of [...touched.revisions, ...touched.configurations.flatMap(revisionsOf)]) revision.enqueue(key);
    // A Configuration or Revision may have come before the Route that refers to it.
    if (phase !== "deleted") route.enqueue(keyOf(object));
  });
  collaborators.scaling.onChange((key, change) => {
    revision.enqueueAfter(key, change === "report" ? SETTLE_MS : 0);
  });
  collaborators.programmed.onChange(routeKey => {
    const [namespace = "", name = ""] = routeKey.split("/");
    route.enqueue({ namespace, name });
  });
  runtime.onChange(systemEndpointSlices, slice => {
    if (slice.metadata?.labels?.[LABEL.endpointSliceService] !== INTERNAL_GATEWAY_SERVICE) return;
    for (const object of context.revisions.list()) revision.enqueue(keyOf(object));
  });
  runtime.onChange(configMaps, (configMap, phase) => {
    const name = configMap.metadata?.name ?? "";
    try {
      if (!settings.update(name, phase === "deleted" ? undefined : (configMap.data ?? {}))) return;
    } catch (error) {
      runtime.logger("services").error({ error, configMap: name }, "configuration not taken; the last good one stays");
      events.event(
        configMap,
        "Warning",
        "InvalidConfiguration",
        error instanceof Error ? error.message : String(error),
      );
      return;
    }
    for (const object of context.revisions.list()) revision.enqueue(keyOf(object));
    for (const object of context.routes.list()) route.enqueue(keyOf(object));
    for (const object of context.configurations.list()) configuration.enqueue(keyOf(object));
  });
  return { service, configuration, revision, route };
}

/** The generated client's types have Date where the objects, which are plain JSON, have texts. */
const asJson = <T extends KubeObject>(lister: Lister<KubeObject>): Lister<T> => lister as unknown as Lister<T>;
