import {
  buildConditions,
  conditionFalse,
  conditionTrue,
  conditionUnknown,
  findCondition,
  type Observation,
} from "../../api/conditions.ts";
import { LABEL } from "../../api/labels.ts";
import {
  SERVING_API_VERSION,
  type Configuration,
  type Route,
  type Service,
  type ServiceStatus,
  type TrafficTarget,
} from "../../api/serving/v1/types.ts";
import { jsonEqual } from "../runtime/equality.ts";
import type { ObjectKey, ReconcileResult, Reconciler } from "../runtime/types.ts";
import { applyChild } from "./apply-child.ts";
import { buildConfiguration } from "./build/configuration.ts";
import { isControlledBy } from "./build/metadata.ts";
import { buildRoute } from "./build/route.ts";
import type { ServicesContext } from "./context.ts";
import { NotOwnedError } from "./ownership.ts";

/** Service -> Configuration and Route of its name; its status is theirs. */
export class ServiceReconciler implements Reconciler {
  readonly name = "service";
  readonly #context: ServicesContext;

  constructor(context: ServicesContext) {
    this.#context = context;
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const service = this.#context.services.get(key);
    if (service === undefined || service.metadata.deletionTimestamp !== undefined) return {};
    const status = await this.#converge(service, key, signal);
    await this.#context.writer.applyStatus(
      { apiVersion: SERVING_API_VERSION, kind: "Service", metadata: service.metadata, status },
      signal,
    );
    this.#tell(service, status);
    return {};
  }

  async #converge(service: Service, key: ObjectKey, signal: AbortSignal): Promise<ServiceStatus> {
    const configuration = await this.#child<Configuration>(service, "Configuration", key, signal);
    if (configuration === "taken") return this.#status(service, { ConfigurationsReady: taken("Configuration", key) });

    const observed = isObserved(configuration);
    const configurationsReady = observed ? readyOf(configuration) : OUT_OF_DATE;
    const ownName = configuration.spec.template.metadata?.name;
    // A name of the user's own may be taken; the Route must not move to a revision before that is known.
    if (ownName && !observed) return this.#status(service, { ConfigurationsReady: OUT_OF_DATE }, { configuration });
    if (ownName && this.#isNameTaken(configuration, ownName)) {
      const RoutesReady = conditionFalse(
        "RevisionNameTaken",
        `The revision name "${ownName}" belongs to another revision: traffic stays where it is.`,
      );
      return this.#status(service, { ConfigurationsReady: configurationsReady, RoutesReady }, { configuration });
    }

    const route = await this.#child<Route>(service, "Route", key, signal);
    if (route === "taken") {
      const conditions = { ConfigurationsReady: configurationsReady, RoutesReady: taken("Route", key) };
      return this.#status(service, conditions, { configuration });
    }
    return this.#status(
      service,
      { ConfigurationsReady: configurationsReady, RoutesReady: routesReady(route, configuration) },
      { configuration, route },
    );
  }

  async #child<T extends Configuration | Route>(
    service: Service,
    kind: "Configuration" | "Route",
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<T | "taken"> {
    const desired = (kind === "Configuration" ? buildConfiguration(service) : buildRoute(service)) as T;
    const cached = kind === "Configuration" ? this.#context.configurations.get(key) : this.#context.routes.get(key);
    try {
      return await applyChild(this.#context, { desired, cached }, { object: service, kind: "Service" }, signal);
    } catch (error) {
      if (error instanceof NotOwnedError) return "taken";
      throw error;
    }
  }

  /** A revision of this name exists that this Configuration's present template did not make. */
  #isNameTaken(configuration: Configuration, name: string): boolean {
    const { namespace, generation } = configuration.metadata;
    const revision = this.#context.revisions.get({ namespace, name });
    if (revision === undefined) return false;
    if (!isControlledBy(revision, configuration)) return true;
    return (
      revision.metadata.labels?.[LABEL.configurationGeneration] !== String(generation) &&
      !jsonEqual(revision.spec, configuration.spec.template.spec)
    );
  }

  #status(
    service: Service,
    conditions: Readonly<Partial<Record<"ConfigurationsReady" | "RoutesReady", Observation>>>,
    children: { readonly configuration?: Configuration; readonly route?: Route } = {},
  ): ServiceStatus {
    const { status: before } = service;
    const { configuration, route } = children;
    const names = configuration === undefined ? before : configuration.status;
    const routed = route === undefined ? before : route.status;
    return defined({
      observedGeneration: service.metadata.generation,
      conditions: buildConditions("Service", conditions, before?.conditions, this.#context.clock.nowMs()),
      latestCreatedRevisionName: names?.latestCreatedRevisionName,
      latestReadyRevisionName: names?.latestReadyRevisionName,
      url: routed?.url,
      address: routed?.address,
      traffic: routed?.traffic,
    });
  }

  /** What happened since the last status, for whoever looks at the Service. */
  #tell(service: Service, status: ServiceStatus): void {
    const { transitions } = this.#context;
    const before = service.status;
    const created = status.latestCreatedRevisionName;
    if (created !== undefined && created !== before?.latestCreatedRevisionName) {
      transitions.tell(service, "created", "Normal", "RevisionCreated", `Created revision "${created}"`);
    }
    const ready = findCondition({ status }, "Ready");
    const readyBefore = findCondition(service, "Ready");
    if (ready?.status === "True" && readyBefore?.status !== "True") {
      const latest = status.latestReadyRevisionName ?? "";
      transitions.tell(service, "ready", "Normal", "Ready", `Revision "${latest}" serves at ${status.url ?? "no URL"}`);
    }
    if (ready?.status === "False" && (readyBefore?.status !== "False" || readyBefore.reason !== ready.reason)) {
      transitions.tell(service, "ready", "Warning", ready.reason ?? "Failed", ready.message ?? "not ready");
    }
  }
}

const OUT_OF_DATE = conditionUnknown("OutOfDate", "The latest change has not been taken up yet.");

const taken = (kind: string, { name }: ObjectKey): Observation =>
  conditionFalse("NotOwned", `There is a ${kind} "${name}" that does not belong to this Service.`);

const isObserved = ({ metadata, status }: Configuration | Route): boolean =>
  metadata.generation !== undefined && metadata.generation === status?.observedGeneration;

function readyOf(child: Configuration | Route): Observation {
  const ready = findCondition(child, "Ready");
  if (ready === undefined) return conditionUnknown();
  return ready.status === "True" ? conditionTrue() : ready;
}

/** The Route's own word; not yet, while it still leads to what was the latest revision before. */
function routesReady(route: Route, configuration: Configuration): Observation {
  if (!isObserved(route)) return OUT_OF_DATE;
  const ready = readyOf(route);
  if (ready.status !== "True") return ready;
  const latest = configuration.status?.latestReadyRevisionName;
  const wanted = (route.spec?.traffic ?? []).map(target => share(target, latest));
  const routed = (route.status?.traffic ?? []).map(target => share(target, latest));
  return jsonEqual(sumOf(wanted), sumOf(routed))
    ? ready
    : conditionUnknown("TrafficNotMigrated", "Traffic has not moved to the latest revision yet.");
}

interface Share {
  readonly id: string;
  readonly percent: number;
}

const share = (target: TrafficTarget, latest: string | undefined): Share => ({
  id: JSON.stringify([target.tag ?? "", target.revisionName || latest]),
  percent: target.percent ?? 0,
});

function sumOf(shares: readonly Share[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const { id, percent } of shares) sums[id] = (sums[id] ?? 0) + percent;
  return sums;
}

/** Without the members that are undefined: server-side apply must not see them. */
function defined<T extends object>(value: { readonly [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T;
}
