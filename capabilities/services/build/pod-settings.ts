import type { DeploymentConfig } from "../../../api/config/deployment.ts";
import type { FeaturesConfig } from "../../../api/config/features.ts";
import type { ObservabilityConfig } from "../../../api/config/observability.ts";

/** What the cluster's configuration says about the pods of every revision. */
export interface PodSettings {
  readonly deployment: DeploymentConfig;
  readonly features: FeaturesConfig;
  readonly observability: ObservabilityConfig;
  /** For revisions that say nothing of it; undefined: left to Kubernetes. */
  readonly enableServiceLinks: boolean | undefined;
  /** For revisions that say nothing of it and name no ServiceAccount. */
  readonly automountServiceAccountToken: boolean;
  /** Unless config-deployment names one. */
  readonly queueProxyImage: string;
}

/** Ports a queue-proxy listens on; the other side of `DEFAULT_PORTS` in the data plane. */
export const QUEUE_PROXY_PORTS = { http1: 8012, h2c: 8013, admin: 8022, metrics: 9091 } as const;

export const QUEUE_PROXY_CONTAINER = "queue-proxy";
