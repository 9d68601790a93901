import { md5Hex } from "./meta/md5.ts";

/** Names of the objects that belong to others, by Knative's rules. */

const LONGEST = 63;
const MD5_LENGTH = 32;
const HEAD = LONGEST - MD5_LENGTH;

/**
 * The name of a child: parent and suffix, cut and hashed when longer than 63 characters. The rule is kmeta.ChildName of
 * knative.dev/pkg, so an upgrade from Knative finds its objects under the same names.
 */
export function childName(parent: string, suffix: string): string {
  if (parent.length <= LONGEST - suffix.length) return parent + suffix;
  if (HEAD - suffix.length > 0) return parent.slice(0, HEAD - suffix.length) + md5Hex(parent) + suffix;
  const hashed = parent.slice(0, HEAD) + md5Hex(parent + suffix);
  return (hashed + suffix.slice(0, LONGEST - hashed.length)).replace(/[^a-zA-Z0-9]+$/, "");
}

/** Configuration, Route and core Service carry the Service's own name. */
export const configurationName = (service: string): string => service;
export const routeName = (service: string): string => service;

/** The revision made for a Configuration's generation, unless its template brings a name of its own. */
export const revisionName = (configuration: string, generation: number): string =>
  childName(configuration, `-${String(generation).padStart(5, "0")}`);

export const deploymentName = (revision: string): string => childName(revision, "-deployment");

/** The Service that selects the revision's pods. */
export const privateServiceName = (revision: string): string => childName(revision, "-private");

/** The Service that leads to gateways or pods, whichever the autoscaler says; named as the revision. */
export const publicServiceName = (revision: string): string => revision;

/** The core Service by which a Route is reached inside the cluster. */
export const routeServiceName = (route: string): string => route;

/** The core Service of a tag by the default tag template; see `api/config/network.ts` for others. Never hashed. */
export const tagServiceName = (route: string, tag: string): string => `${tag}-${route}`;

/** Host name of a Service inside the cluster. */
export const clusterHost = (service: string, namespace: string, clusterDomain = "cluster.local"): string =>
  `${service}.${namespace}.svc.${clusterDomain}`;
