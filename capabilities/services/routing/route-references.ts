import { isFailed, isReady } from "../../../api/conditions.ts";
import type { Configuration, Revision, Route } from "../../../api/serving/v1/types.ts";
import type { ObjectKey } from "../../runtime/types.ts";
import { keyText } from "../../runtime/resource.ts";

/** What one Route leads to or is about to lead to. */
interface Targets {
  readonly route: Route;
  readonly revisions: ReadonlySet<string>;
  /** Configurations whose latest revision it takes. */
  readonly configurations: ReadonlySet<string>;
}

const NOTHING: ReadonlySet<string> = new Set();

/** Which Routes refer to which Revisions and Configurations, kept as Routes change: no reconciler has to look at all Routes. */
export class RouteReferences {
  readonly #targets = new Map<string, Targets>();
  readonly #byRevision = new Map<string, Set<string>>();
  readonly #byConfiguration = new Map<string, Set<string>>();

  /** Takes over a Route, or its end. Returns the revisions and configurations it refers to now or did before. */
  update(
    route: Route,
    phase: "added" | "modified" | "deleted",
  ): { readonly revisions: readonly ObjectKey[]; readonly configurations: readonly ObjectKey[] } {
    const { namespace = "", name = "" } = route.metadata;
    const routeKey = keyText({ namespace, name });
    const before = this.#targets.get(routeKey);
    const after = phase === "deleted" ? undefined : targetsOf(route);
    const change = (
      index: Map<string, Set<string>>,
      old: ReadonlySet<string>,
      now: ReadonlySet<string>,
    ): ObjectKey[] => {
      for (const target of old) if (!now.has(target)) remove(index, keyText({ namespace, name: target }), routeKey);
      for (const target of now) add(index, keyText({ namespace, name: target }), routeKey);
      return [...new Set([...old, ...now])].map(target => ({ namespace, name: target }));
    };
    const revisions = change(this.#byRevision, before?.revisions ?? NOTHING, after?.revisions ?? NOTHING);
    const configurations = change(
      this.#byConfiguration,
      before?.configurations ?? NOTHING,
      after?.configurations ?? NOTHING,
    );
    if (after === undefined) this.#targets.delete(routeKey);
    else this.#targets.set(routeKey, after);
    return { revisions, configurations };
  }

  /** Keys of the Routes that refer to a Revision by name. */
  routesOfRevision(revision: ObjectKey): readonly ObjectKey[] {
    return this.#keys(this.#byRevision.get(keyText(revision)));
  }

  /** Keys of the Routes that take a Configuration's latest revision. */
  routesOfConfiguration(configuration: ObjectKey): readonly ObjectKey[] {
    return this.#keys(this.#byConfiguration.get(keyText(configuration)));
  }

  /**
   * Names of the Routes that lead to a revision, sorted. `carried` are those it says now: one of them that is on its way to
   * other targets counts until all gateways have followed, since requests may still come.
   */
  routeNames(
    revision: Revision,
    configuration: Configuration | undefined,
    carried: readonly string[],
  ): readonly string[] {
    const { namespace, name = "" } = revision.metadata;
    const { latestCreatedRevisionName, latestReadyRevisionName } = configuration?.status ?? {};
    const isLatest = name === latestCreatedRevisionName || name === latestReadyRevisionName;
    const referring = [
      ...this.routesOfRevision({ namespace, name }),
      ...(isLatest ? this.routesOfConfiguration({ namespace, name: configuration?.metadata.name ?? "" }) : []),
    ].map(key => key.name);
    const leaving = carried.filter(route => {
      const known = this.#targets.get(keyText({ namespace, name: route }));
      return known !== undefined && !isReady(known.route) && !isFailed(known.route);
    });
    return [...new Set([...referring, ...leaving])].toSorted();
  }

  #keys(routes: ReadonlySet<string> | undefined): ObjectKey[] {
    return [...(routes ?? NOTHING)].flatMap(key => {
      const { namespace, name = "" } = this.#targets.get(key)?.route.metadata ?? {};
      return name === "" ? [] : [{ namespace, name }];
    });
  }
}

/** What is routed now, and what the spec asks for: a revision that is to get traffic must not go to zero before. */
function targetsOf(route: Route): Targets {
  const targets = [...(route.status?.traffic ?? []), ...(route.spec?.traffic ?? [])];
  return {
    route,
    revisions: new Set(targets.flatMap(({ revisionName }) => (revisionName ? [revisionName] : []))),
    configurations: new Set(
      targets.flatMap(({ configurationName, revisionName }) =>
        configurationName && !revisionName ? [configurationName] : [],
      ),
    ),
  };
}

function add(index: Map<string, Set<string>>, target: string, route: string): void {
  const routes = index.get(target);
  if (routes === undefined) index.set(target, new Set([route]));
  else routes.add(route);
}

function remove(index: Map<string, Set<string>>, target: string, route: string): void {
  const routes = index.get(target);
  routes?.delete(route);
  if (routes?.size === 0) index.delete(target);
}
