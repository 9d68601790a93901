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
import { NotOwnedError, PredecessorError } from "./ownership.ts";
import { afterAttempts, isRefusal } from "./refusal.ts";

type Child<T> =
  | { readonly kind: "made"; readonly child: T }
  | { readonly kind: "failed"; readonly condition: Observation; readonly error: Error };

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
    const { status, error } = await this.#converge(service, key, signal);
    await this.#context.writer.applyStatus(
      { apiVersion: SERVING_API_VERSION, kind: "Service", metadata: service.metadata, status },
      signal,
    );
    this.#tell(service, status);
    return afterAttempts(error);
  }

  async #converge(
    service: Service,
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<{ readonly status: ServiceStatus; readonly error?: Error }> {
    const { configurations, routes } = this.#context;
    const made = await this.#child(service, buildConfiguration(service), configurations.get(key), signal);
    if (made.kind === "failed") {
      return { status: this.#status(service, { ConfigurationsReady: made.condition }), error: made.error };
    }
    const configuration = made.child;
    const ConfigurationsReady = isObserved(configuration) ? readyOf(configuration) : OUT_OF_DATE;
    const ownName = configuration.spec.template.metadata?.name;
    // A name of the user's own may be taken; the Route must not move to a revision before that is known.
    if (ownName && !isObserved(configuration)) {
      return { status: this.#status(service, { ConfigurationsReady }, { configuration }) };
    }
    if (ownName && this.#isNameTaken(configuration, ownName)) {
      const RoutesReady = conditionFalse(
        "RevisionNameTaken",
        `The revision name "${ownName}" belongs to another revision: traffic stays where it is.`,
      );
      return { status: this.#status(service, { ConfigurationsReady, RoutesReady }, { configuration }) };
    }

    const routed = await this.#child(service, buildRoute(service), routes.get(key), signal);
    if (routed.kind === "failed") {
      const conditions = { ConfigurationsReady, RoutesReady: routed.condition };
      return { status: this.#status(service, conditions, { configuration }), error: routed.error };
    }
    const route = routed.child;
    const RoutesReady = routesReady(route, configuration);
    return { status: this.#status(service, { ConfigurationsReady, RoutesReady }, { configuration, route }) };
  }

  /** The child as it is now, or what to say when it cannot be had. Errors that another attempt may cure are thrown. */
  async #child<T extends Configuration | Route>(
    service: Service,
    desired: T,
    cached: T | undefined,
    signal: AbortSignal,
  ): Promise<Child<T>> {
    try {
      const owner = { object: service, kind: "Service" };
      return { kind: "made", child: await applyChild(this.#context, { desired, cached }, owner, signal) };
    } catch (error) {
      if (error instanceof NotOwnedError) {
        return { kind: "failed", condition: conditionFalse("NotOwned", error.message), error };
      }
      if (error instanceof PredecessorError) return { kind: "failed", condition: OUT_OF_DATE, error };
      if (isRefusal(error)) return { kind: "failed", condition: conditionFalse(error.reason, error.detail), error };
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
