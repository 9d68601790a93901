import { routeHosts } from "../../../api/serving/v1/route-hosts.ts";
import type { Route } from "../../../api/serving/v1/types.ts";
import { routeFingerprint } from "../../../api/wire/programmed.ts";
import { TrafficDeck } from "./traffic-deck.ts";

/** Where the requests of one host go. `T` is whatever stands for a revision. */
export interface RouteTarget<T> {
  readonly namespace: string;
  readonly route: string;
  /** The Knative Service that owns the Route; the Route's own name when none does. */
  readonly service: string;
  /** Empty for the Route's own host. */
  readonly tag: string;
  readonly deck: TrafficDeck<T>;
}

/** A Route, ready to be looked up. */
export interface CompiledRoute<T> {
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly fingerprint: string;
  readonly createdAt: string;
  readonly uid: string;
  readonly external: ReadonlyMap<string, RouteTarget<T>>;
  readonly internal: ReadonlyMap<string, RouteTarget<T>>;
  /** Names of all revisions it leads to. */
  readonly revisions: ReadonlySet<string>;
}

export interface CompileOptions<T> {
  readonly clusterDomain: string;
  readonly random: () => number;
  /** Gives what stands for a revision; the same for the same name. */
  readonly revision: (namespace: string, name: string) => T;
}

/**
 * The hosts of a Route and where they lead, from its status alone: what the operator has decided. Hosts inside the cluster are
 * served on the internal listener only; public hosts on both, since pods may use them too.
 */
export function compileRoute<T>(route: Route, options: CompileOptions<T>): CompiledRoute<T> {
  const { name = "", namespace = "", uid = "", creationTimestamp } = route.metadata;
  const { clusterDomain, random, revision } = options;
  const external = new Map<string, RouteTarget<T>>();
  const internal = new Map<string, RouteTarget<T>>();
  const revisions = new Set<string>();
  for (const { shares, ...hosts } of routeHosts(route, clusterDomain)) {
    const deck = new TrafficDeck(
      shares.map(share => ({ target: revision(namespace, share.revision), percent: share.percent })),
      random,
    );
    const { route: routeName, service, tag } = hosts;
    const target: RouteTarget<T> = { namespace, route: routeName, service, tag, deck };
    for (const host of hosts.external) external.set(host, target);
    for (const host of hosts.internal) internal.set(host, target);
    for (const share of shares) revisions.add(share.revision);
  }
  return {
    key: `${namespace}/${name}`,
    namespace,
    fingerprint: routeFingerprint(route),
    createdAt: String(creationTimestamp ?? ""),
    uid,
    external,
    internal,
    revisions,
  };
}
