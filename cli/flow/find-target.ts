import { LABEL } from "../../api/labels.ts";
import { tagServiceName } from "../../api/names.ts";
import type { DomainMapping } from "../../api/serving/v1beta1/types.ts";
import type { Route } from "../../api/serving/v1/types.ts";

/** The service that a host leads to. */
export interface Target {
  readonly namespace: string;
  readonly service: string;
  /** Empty for the service's own host. */
  readonly tag: string;
  /** Revisions with their parts of the traffic. */
  readonly revisions: readonly { readonly name: string; readonly percent: number }[];
}

/** Lower case, without port and trailing dot. */
function normalized(host: string): string {
  return host.replace(/:\d+$/, "").replace(/\.$/, "").toLowerCase();
}

function hostOf(url: string | undefined): string | undefined {
  return url !== undefined && URL.canParse(url) ? normalized(new URL(url).host) : undefined;
}

const inCluster = (service: string, namespace: string): string[] =>
  ["", ".svc", ".svc.cluster.local"].map(suffix => `${service}.${namespace}${suffix}`);

/** As a gateway would: by the hosts in the Routes' status, names inside the cluster, and DomainMappings. */
export function findTarget(
  host: string,
  routes: readonly Route[],
  mappings: readonly DomainMapping[],
): Target | undefined {
  const wanted = normalized(host);
  const mapped = mappings.find(({ metadata }) => metadata.name?.toLowerCase() === wanted);
  for (const route of routes) {
    const { name = "", namespace = "", labels } = route.metadata;
    const traffic = route.status?.traffic ?? [];
    const target = (tag: string, shares: typeof traffic): Target => ({
      namespace,
      service: labels?.[LABEL.service] ?? name,
      tag,
      revisions: shares
        .filter(share => share.revisionName !== undefined)
        .map(share => ({ name: share.revisionName ?? "", percent: tag === "" ? (share.percent ?? 0) : 100 })),
    });
    const isMapped = mapped?.spec.ref.name === name && mapped.metadata.namespace === namespace;
    const hosts = [hostOf(route.status?.url), ...inCluster(name, namespace)];
    if (isMapped || hosts.includes(wanted)) {
      return target(
        "",
        traffic.filter(share => (share.percent ?? 0) > 0),
      );
    }
    for (const share of traffic) {
      const { tag = "", url } = share;
      if (tag === "") continue;
      const tagged = [hostOf(url), ...inCluster(tagServiceName(name, tag), namespace)];
      if (tagged.includes(wanted)) return target(tag, [share]);
    }
  }
  return undefined;
}
