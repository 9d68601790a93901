/** The part of a Route that a gateway programs; both sides derive it from the same object. */
export interface ProgrammableRoute {
  readonly metadata: {
    readonly uid?: string | undefined;
    readonly labels?: Readonly<Record<string, string>> | undefined;
  };
  readonly status?:
    | {
        readonly url?: string | undefined;
        readonly traffic?:
          | readonly {
              readonly revisionName?: string | undefined;
              readonly percent?: number | undefined;
              readonly tag?: string | undefined;
              readonly url?: string | undefined;
            }[]
          | undefined;
      }
    | undefined;
}

/**
 * A text that is equal exactly when two observations of a Route lead to the same routing table. The operator writes
 * `status.traffic` and waits until every ready gateway reports this text before it calls the Route ready.
 */
export function routeFingerprint(route: ProgrammableRoute): string {
  return JSON.stringify([
    route.metadata.uid ?? "",
    route.metadata.labels?.["networking.knative.dev/visibility"] ?? "",
    route.status?.url ?? "",
    (route.status?.traffic ?? []).map(t => [t.revisionName ?? "", t.percent ?? 0, t.tag ?? "", t.url ?? ""]),
  ]);
}
