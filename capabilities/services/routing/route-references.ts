import { isFailed, isReady } from "../../../api/conditions.ts";
import { LABEL, STATE_ANNOTATION } from "../../../api/labels.ts";
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

/** The entries of an annotation that is a list. */
export const listOf = (annotation: string | undefined): readonly string[] =>
  (annotation ?? "").split(",").filter(entry => entry !== "");

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
    const referring = [
      ...this.routesOfRevision({ namespace, name }).map(key => key.name),
      ...(configuration !== undefined && isLatest(revision, configuration) ? this.routesOfLatest(configuration) : []),
    ];
    const leaving = carried.filter(route => {
      const known = this.#targets.get(keyText({ namespace, name: route }));
      return known !== undefined && !isReady(known.route) && !isFailed(known.route);
    });
    return [...new Set([...referring, ...leaving])].toSorted();
  }

  /** Names of the Routes that take a Configuration's latest revision, with those that are about to be made. */
  routesOfLatest({ metadata }: Configuration): readonly string[] {
    const { namespace, name = "" } = metadata;
    const announced = listOf(metadata.annotations?.[STATE_ANNOTATION.routes]).filter(
      route => !this.#targets.has(keyText({ namespace, name: route })),
    );
    const known = this.routesOfConfiguration({ namespace, name }).map(key => key.name);
    return [...new Set([...known, ...announced])].toSorted();
  }

  #keys(routes: ReadonlySet<string> | undefined): ObjectKey[] {
    return [...(routes ?? NOTHING)].flatMap(key => {
      const { namespace, name = "" } = this.#targets.get(key)?.route.metadata ?? {};
      return name === "" ? [] : [{ namespace, name }];
    });
  }
}

/** Made of the present template, or what the Configuration calls its latest: it may have to take traffic. */
function isLatest({ metadata }: Revision, configuration: Configuration): boolean {
  const { latestCreatedRevisionName, latestReadyRevisionName } = configuration.status ?? {};
  return (
    metadata.name === latestCreatedRevisionName ||
    metadata.name === latestReadyRevisionName ||
    metadata.labels?.[LABEL.configurationGeneration] === String(configuration.metadata.generation)
  );
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
