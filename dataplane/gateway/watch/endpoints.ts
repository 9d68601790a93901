import { LABEL } from "../../../api/labels.ts";
import type { Endpoint } from "../revisions/pod.ts";

/** What is read of `discovery.k8s.io/v1` EndpointSlice. */
export interface EndpointSlice {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly addressType?: string;
  readonly endpoints?:
    | readonly {
        readonly addresses?: readonly string[];
        readonly conditions?: {
          readonly ready?: boolean | null;
          readonly terminating?: boolean | null;
        };
        readonly targetRef?: { readonly name?: string; readonly uid?: string };
      }[]
    | null;
  readonly ports?: readonly { readonly name?: string | null; readonly port?: number | null }[] | null;
}

/** The name of the revision whose pods a slice lists, by the label that its Service hands on. */
export const revisionOf = (slice: EndpointSlice): string | undefined => slice.metadata.labels?.[LABEL.revision];

/** Ports of a revision's private Service that take requests: HTTP/1.1, HTTP/2. */
const isRequestPort = (name: string): boolean => name === "http" || name === "http2";

/** The pods of slices, each once; an unset `ready` means ready (discovery.k8s.io/v1). */
export function endpointsOf(slices: Iterable<EndpointSlice>, isPort = isRequestPort): Endpoint[] {
  const byAddress = new Map<string, Endpoint>();
  for (const slice of slices) {
    const port = slice.ports?.find(candidate => isPort(candidate.name ?? ""))?.port;
    if (port === undefined || port === null) continue;
    for (const { addresses, conditions, targetRef } of slice.endpoints ?? []) {
      const host = addresses?.[0];
      if (host === undefined) continue;
      const address = `${slice.addressType === "IPv6" ? `[${host}]` : host}:${port}`;
      const terminating = conditions?.terminating === true;
      const endpoint: Endpoint = {
        podName: targetRef?.name ?? host,
        podUid: targetRef?.uid ?? "",
        address,
        ready: conditions?.ready !== false && !terminating,
        terminating,
      };
      // While an endpoint moves between slices it is in both; the one that takes requests is the newer.
      if (byAddress.get(address)?.ready !== true) byAddress.set(address, endpoint);
    }
  }
  return [...byAddress.values()];
}
