import {
  buildConditions,
  conditionFalse,
  conditionTrue,
  conditionUnknown,
  findCondition,
  type Observation,
} from "../../api/conditions.ts";
import { isClusterLocal, routeHost } from "../../api/config/domain.ts";
import { clusterHost, routeServiceName } from "../../api/names.ts";
import { SERVING_API_VERSION, type Route, type RouteStatus, type TrafficTarget } from "../../api/serving/v1/types.ts";
import { routeFingerprint } from "../../api/wire/programmed.ts";
import { keyText } from "../runtime/resource.ts";
import type { ObjectKey, ReconcileResult, Reconciler } from "../runtime/types.ts";
import { applyChild } from "./apply-child.ts";
import { buildRouteService, coreServiceName } from "./build/route-service.ts";
import type { ServicesContext } from "./context.ts";
import { NotOwnedError } from "./ownership.ts";
import { afterAttempts, asError } from "./refusal.ts";
import { resolveTraffic } from "./status/route-traffic.ts";

type RouteConditions = Partial<Record<"AllTrafficAssigned" | "CertificateProvisioned" | "IngressReady", Observation>>;

type CoreServicesOutcome =
  | { readonly kind: "applied" }
  | { readonly kind: "taken"; readonly error: NotOwnedError }
  | { readonly kind: "failed"; readonly error: Error };

/**
 * Route -> what the gateways route (its own status) and the core Services by which it is reached inside the cluster. It is
 * Ready only when all gateways route what the status says.
 */
export class RouteReconciler implements Reconciler {
  readonly name = "route";
  readonly #context: ServicesContext;

  constructor(context: ServicesContext) {
    this.#context = context;
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const route = this.#context.routes.get(key);
    if (route === undefined || route.metadata.deletionTimestamp !== undefined) return {};
    const { namespace } = key;
    const resolution = resolveTraffic(route, {
      configuration: name => this.#context.configurations.get({ namespace, name }),
      revision: name => this.#context.revisions.get({ namespace, name }),
    });
    if (resolution.kind === "unresolved") {
      await this.#write(route, this.#unresolved(route, resolution.condition), signal);
      return {};
    }

    const status = this.#assigned(route, resolution.traffic);
    if ("failure" in status) {
      await this.#write(route, this.#unresolved(route, status.failure), signal);
      return {};
    }
    const services = await this.#applyCoreServices(route, status.next.traffic ?? [], signal);
    const IngressReady =
      services.kind === "taken"
        ? conditionFalse("NotOwned", services.error.message)
        : this.#ingressReady(route, key, status.next);
    const conditions = { AllTrafficAssigned: conditionTrue(), CertificateProvisioned: NO_TLS, IngressReady };
    await this.#write(route, { ...status.next, ...this.#observe(route, conditions) }, signal);
    if (services.kind === "taken")
      this.#context.transitions.tell(route, "services", "Warning", "NotOwned", services.error.message);
    return afterAttempts(services.kind === "applied" ? undefined : services.error);
  }

  /** Traffic stays where it is; a change that nobody has programmed yet must not look ready. */
  #unresolved(route: Route, condition: Observation): RouteStatus {
    const unseen = route.metadata.generation !== route.status?.observedGeneration;
    return {
      ...route.status,
      ...this.#observe(route, {
        AllTrafficAssigned: condition,
        CertificateProvisioned: NO_TLS,
        ...(unseen ? { IngressReady: NOT_CONFIGURED } : {}),
      }),
    };
  }

  /** The status that the gateways go by: URLs and traffic. */
  #assigned(
    route: Route,
    traffic: readonly TrafficTarget[],
  ): { readonly next: RouteStatus } | { readonly failure: Observation } {
    const { domain, network, clusterDomain } = this.#context.settings();
    const scheme = isClusterLocal(route.metadata.labels) ? "http" : network.defaultExternalScheme;
    const urlOf = (tag?: string): string => `${scheme}://${routeHost(domain, network, route, tag)}`;
    try {
      const { name = "", namespace = "" } = route.metadata;
      return {
        next: {
          url: urlOf(),
          address: { url: `http://${clusterHost(routeServiceName(name), namespace, clusterDomain)}` },
          traffic: traffic.map(target => (target.tag ? { ...target, url: urlOf(target.tag) } : target)),
        },
      };
    } catch (error) {
      // The domain template asks for something this Route does not have.
      return { failure: conditionFalse("ErrorConfig", error instanceof Error ? error.message : String(error)) };
    }
  }

  /**
   * True once all gateways reported this table, and from then on until it changes: a gateway that starts later takes no traffic
   * before it has all routes, and a new leader, who has heard of none yet, must not take readiness back.
   */
  #ingressReady(route: Route, key: ObjectKey, next: RouteStatus): Observation {
    const fingerprint = routeFingerprint({ ...route, status: next });
    const wasReady = findCondition(route, "IngressReady")?.status === "True" && routeFingerprint(route) === fingerprint;
    return wasReady || this.#context.programmed.isProgrammed(keyText(key), fingerprint) ? conditionTrue() : WAITING;
  }

  /**
   * One core Service for the Route, one for each tag; those of tags that are gone go. What goes wrong is told and not thrown: the
   * gateways must learn of the traffic in any case.
   */
  async #applyCoreServices(
    route: Route,
    traffic: readonly TrafficTarget[],
    signal: AbortSignal,
  ): Promise<CoreServicesOutcome> {
    const { coreServices, settings, writer } = this.#context;
    const { name = "", namespace, uid = "" } = route.metadata;
    const tags = new Set(["", ...traffic.map(({ tag }) => tag ?? "")]);
    const wanted = new Set([...tags].map(tag => coreServiceName(name, tag)));
    try {
      for (const tag of tags) {
        const cached = coreServices.get({ namespace, name: coreServiceName(name, tag) });
        const desired = buildRouteService(route, tag, cached, settings());
        await applyChild(this.#context, { desired, cached }, { object: route, kind: "Route" }, signal);
      }
      for (const { metadata } of coreServices.ownedBy(uid)) {
        if (metadata?.name === undefined || wanted.has(metadata.name)) continue;
        await writer.delete(
          { apiVersion: "v1", kind: "Service", namespace, name: metadata.name, uid: metadata.uid ?? "" },
          signal,
        );
      }
      return { kind: "applied" };
    } catch (error) {
      if (error instanceof NotOwnedError) return { kind: "taken", error };
      return { kind: "failed", error: asError(error) };
    }
  }

  #observe(route: Route, conditions: RouteConditions): Pick<RouteStatus, "observedGeneration" | "conditions"> {
    return {
      observedGeneration: route.metadata.generation,
      conditions: buildConditions("Route", conditions, route.status?.conditions, this.#context.clock.nowMs()),
    };
  }

  async #write(route: Route, status: RouteStatus, signal: AbortSignal): Promise<void> {
    await this.#context.writer.applyStatus(
      { apiVersion: SERVING_API_VERSION, kind: "Route", metadata: route.metadata, status },
      signal,
    );
  }
}

const NO_TLS = conditionTrue("TLSNotEnabled", "Certificates for external domains are not enabled.");
const NOT_CONFIGURED = conditionUnknown("IngressNotConfigured", "The gateways have not been told of this change yet.");
const WAITING = conditionUnknown("Uninitialized", "Waiting for load balancer to be ready");
