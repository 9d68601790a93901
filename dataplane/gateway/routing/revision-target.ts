import { parseClusterHost } from "../../../api/hosts.ts";
import type { RouteTarget } from "./compiled-route.ts";
import { TrafficDeck } from "./traffic-deck.ts";

export interface RevisionTargetOptions<T> {
  readonly clusterDomain: string;
  /** What stands for a revision that is known, and the Service it belongs to. */
  readonly find: (namespace: string, name: string) => { readonly revision: T; readonly service: string } | undefined;
}

/** Looks up the host of a revision's own Service: `<revision>.<namespace>`, `.svc`, `.svc.<domain>`. */
export function revisionTargets<T>(options: RevisionTargetOptions<T>): (host: string) => RouteTarget<T> | undefined {
  return host => {
    const parsed = parseClusterHost(host, options.clusterDomain);
    const found = parsed && options.find(parsed.namespace, parsed.service);
    if (parsed === undefined || found === undefined) return undefined;
    const { revision, service } = found;
    const deck = new TrafficDeck([{ target: revision, percent: 100 }], () => 0);
    return { namespace: parsed.namespace, route: "", service, tag: "", deck };
  };
}
