import type { Configuration, Revision, Route, Service } from "../../api/serving/v1/types.ts";
import type { ClusterWriter, KubeObject, Lister, ObjectRef } from "../runtime/types.ts";
import type { CoreService, Deployment, EndpointSlice, Pod } from "./kinds.ts";
import type { RevisionScaling } from "./revision-scaling.ts";
import type { RouteReferences } from "./routing/route-references.ts";
import type { ServicesSettings } from "./settings.ts";
import type { Transitions } from "./transitions.ts";

/** Whether the gateways route what a Route's status says. Implemented by the registry of gateways' reports; never blocks. */
export interface ProgrammedRoutes {
  /** True when every ready gateway, and at least one, reported this fingerprint. `routeKey`: `namespace/name`. */
  isProgrammed(routeKey: string, fingerprint: string): boolean;
  /** `listener` hears routes about which a gateway reported something; it only enqueues. */
  onChange(listener: (routeKey: string) => void): void;
}

/** What the reconcilers of this capability share. Listers may be behind; everything that is written goes by `writer`. */
export interface ServicesContext {
  readonly services: Lister<Service>;
  readonly configurations: Lister<Configuration>;
  readonly revisions: Lister<Revision>;
  readonly routes: Lister<Route>;
  readonly deployments: Lister<Deployment>;
  readonly coreServices: Lister<CoreService>;
  /** Of revisions: their private and public Services'. */
  readonly endpointSlices: Lister<EndpointSlice>;
  /** Of the gateways' internal Service. */
  readonly gatewaySlices: () => readonly EndpointSlice[];
  readonly pods: Lister<Pod>;
  readonly writer: Omit<ClusterWriter, "replaceSpec">;
  /**
   * The object straight from the API server, or undefined. Asked before a child is made whose name an object outside the
   * caches (they hold labelled objects only) may have.
   */
  readonly find: (ref: ObjectRef, signal: AbortSignal) => Promise<KubeObject | undefined>;
  readonly transitions: Transitions;
  readonly settings: () => ServicesSettings;
  readonly scaling: RevisionScaling;
  readonly programmed: ProgrammedRoutes;
  readonly references: RouteReferences;
  readonly clock: { nowMs(): number };
}
