import { LABEL, VISIBILITY_CLUSTER_LOCAL } from "../../../api/labels.ts";
import { tagServiceName } from "../../../api/names.ts";
import type { Route } from "../../../api/serving/v1/types.ts";
import { routeFingerprint } from "../../../api/wire/programmed.ts";
import { clusterHosts, hostOfUrl, isClusterHost } from "./hosts.ts";
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
  const { name = "", namespace = "", labels, uid = "", creationTimestamp } = route.metadata;
  const { clusterDomain, random, revision } = options;
  const traffic = (route.status?.traffic ?? []).filter(target => (target.revisionName ?? "") !== "");
  const external = new Map<string, RouteTarget<T>>();
  const internal = new Map<string, RouteTarget<T>>();
  const isLocal = labels?.[LABEL.visibility] === VISIBILITY_CLUSTER_LOCAL;

  const serve = (url: string | undefined, service: string, target: RouteTarget<T>): void => {
    const host = hostOfUrl(url);
    if (host !== undefined) {
      internal.set(host, target);
      if (!isLocal && !isClusterHost(host, clusterDomain)) external.set(host, target);
    }
    for (const local of clusterHosts(service, namespace, clusterDomain)) internal.set(local, target);
  };
  const target = (tag: string, shares: readonly { readonly revision: string; readonly percent: number }[]) => ({
    namespace,
    route: name,
    service: labels?.[LABEL.service] ?? name,
    tag,
    deck: new TrafficDeck(
      shares.map(share => ({ target: revision(namespace, share.revision), percent: share.percent })),
      random,
    ),
  });

  if (traffic.length > 0) {
    const shares = traffic.map(({ revisionName = "", percent = 0 }) => ({ revision: revisionName, percent }));
    if (shares.some(share => share.percent > 0)) serve(route.status?.url, name, target("", shares));
    for (const { tag = "", revisionName = "", url } of traffic) {
      if (tag === "") continue;
      serve(url, tagServiceName(name, tag), target(tag, [{ revision: revisionName, percent: 100 }]));
    }
  }
  return {
    key: `${namespace}/${name}`,
    namespace,
    fingerprint: routeFingerprint(route),
    createdAt: String(creationTimestamp ?? ""),
    uid,
    external,
    internal,
    revisions: new Set(traffic.map(({ revisionName = "" }) => revisionName)),
  };
}
