import { clusterHosts, hostOfUrl, isClusterHost } from "../../hosts.ts";
import { LABEL, VISIBILITY_CLUSTER_LOCAL } from "../../labels.ts";
import { tagServiceName } from "../../names.ts";
import type { Route } from "./types.ts";

/** One target of a Route and the hosts that lead to it. */
export interface RouteHosts {
  readonly namespace: string;
  readonly route: string;
  /** The Knative Service that owns the Route; the Route's own name when none does. */
  readonly service: string;
  /** Empty for the Route's own hosts. */
  readonly tag: string;
  /** In percent; all of it for a tag. */
  readonly shares: readonly { readonly revision: string; readonly percent: number }[];
  /** Served to clients outside the cluster. */
  readonly external: readonly string[];
  /** Served to those inside: names of the Service, and public hosts, since pods may use them too. */
  readonly internal: readonly string[];
}

/** The hosts of a Route and where they lead, from its status alone: what the operator has decided. */
export function routeHosts(route: Route, clusterDomain: string): RouteHosts[] {
  const { name = "", namespace = "", labels } = route.metadata;
  const traffic = (route.status?.traffic ?? []).filter(target => (target.revisionName ?? "") !== "");
  const isLocal = labels?.[LABEL.visibility] === VISIBILITY_CLUSTER_LOCAL;
  const of = (tag: string, url: string | undefined, kubeService: string, shares: RouteHosts["shares"]): RouteHosts => {
    const host = hostOfUrl(url);
    const isPublic = host !== undefined && !isLocal && !isClusterHost(host, clusterDomain);
    return {
      namespace,
      route: name,
      service: labels?.[LABEL.service] ?? name,
      tag,
      shares,
      external: isPublic ? [host] : [],
      internal: [...(host === undefined ? [] : [host]), ...clusterHosts(kubeService, namespace, clusterDomain)],
    };
  };
  const shares = traffic.map(({ revisionName = "", percent = 0 }) => ({ revision: revisionName, percent }));
  const own = shares.some(({ percent }) => percent > 0) ? [of("", route.status?.url, name, shares)] : [];
  const tagged = traffic
    .filter(({ tag = "" }) => tag !== "")
    .map(({ tag = "", revisionName = "", url }) =>
      of(tag, url, tagServiceName(name, tag), [{ revision: revisionName, percent: 100 }]),
    );
  return [...own, ...tagged];
}
