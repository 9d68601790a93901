import { normalizeHost } from "../../api/hosts.ts";
import { routeHosts } from "../../api/serving/v1/route-hosts.ts";
import type { Route } from "../../api/serving/v1/types.ts";

/** The service that a host leads to. */
export interface Target {
  readonly namespace: string;
  readonly service: string;
  /** Empty for the service's own host. */
  readonly tag: string;
  /** Revisions with their parts of the traffic, in percent. */
  readonly revisions: readonly { readonly name: string; readonly percent: number }[];
}

const CLUSTER_DOMAIN = "cluster.local";

/** As a gateway would: by the hosts of the Routes' status and the names inside the cluster; the older Route has a host of two. */
export function findTarget(host: string, routes: readonly Route[]): Target | undefined {
  const wanted = normalizeHost(host);
  const found = byAge(routes)
    .flatMap(route => routeHosts(route, CLUSTER_DOMAIN))
    .find(({ internal }) => internal.includes(wanted));
  if (found === undefined) return undefined;
  const { namespace, service, tag, shares } = found;
  const revisions = shares
    .filter(({ percent }) => percent > 0)
    .map(({ revision, percent }) => ({ name: revision, percent }));
  return { namespace, service, tag, revisions };
}

function byAge(routes: readonly Route[]): Route[] {
  const age = ({ metadata }: Route): string =>
    [metadata.creationTimestamp ?? "", metadata.namespace, metadata.name].join("\n");
  return routes.toSorted((a, b) => (age(a) < age(b) ? -1 : 1));
}

const MOST_HOSTS = 5;

/** What to tell somebody whose host leads nowhere: the hosts there are, those that begin alike first. */
export function noTargetInWords(host: string, routes: readonly Route[]): string {
  const problem = `no route leads from host "${host}" to a service`;
  const hosts = routes.flatMap(route =>
    routeHosts(route, CLUSTER_DOMAIN).flatMap(({ internal }) => internal.slice(0, 1)),
  );
  if (hosts.length === 0) return `${problem}: there is no route at all`;
  const [label = ""] = normalizeHost(host).split(".");
  const isAlike = (candidate: string): boolean => label !== "" && candidate.split(".")[0] === label;
  const shown = [...hosts.filter(isAlike), ...hosts.filter(one => !isAlike(one))].slice(0, MOST_HOSTS);
  const more = hosts.length > shown.length ? `, and ${hosts.length - shown.length} more` : "";
  return `${problem}; hosts with a route: ${shown.join(", ")}${more}`;
}
