/** Where a request came in: from outside the cluster, or by the cluster-local Service. */
export type ListenerName = "external" | "internal";
