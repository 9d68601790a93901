import { isIP } from "node:net";
import type { ClusterWriter, Reconciler } from "./types.ts";

export interface StatsEndpoint {
  readonly namespace: string;
  readonly podIp: string;
  readonly podName: string;
  readonly port: number;
}

/** The selectorless Service that gateways send their statistics to; it ships with the manifests. */
export const STATS_SERVICE = "fairway-autoscaler";

/** The EndpointSlice that makes the leader, and no other replica, the end of the Service `fairway-autoscaler`. */
export function buildStatsEndpointSlice({ namespace, podIp, podName, port }: StatsEndpoint) {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: STATS_SERVICE,
      namespace,
      labels: {
        "app.kubernetes.io/name": "fairway",
        "app.kubernetes.io/component": "operator",
        "app.kubernetes.io/managed-by": "fairway",
        "kubernetes.io/service-name": STATS_SERVICE,
        "endpointslice.kubernetes.io/managed-by": "fairway",
      },
    },
    addressType: isIP(podIp) === 6 ? "IPv6" : "IPv4",
    ports: [{ name: "http", port, protocol: "TCP" }],
    endpoints: [
      {
        addresses: [podIp],
        conditions: { ready: true },
        targetRef: { kind: "Pod", namespace, name: podName },
      },
    ],
  };
}

/** Keeps this replica, which leads, the end of the Service; the next leader does the same, so nothing is taken back. */
export function createStatsEndpointReconciler(writer: ClusterWriter, endpoint: StatsEndpoint): Reconciler {
  return {
    name: "stats-endpoint",
    async reconcile(_key, signal) {
      await writer.apply(buildStatsEndpointSlice(endpoint), signal);
      return {};
    },
  };
}
