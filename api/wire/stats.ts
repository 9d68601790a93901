import { z } from "zod";

/**
 * What queue-proxies answer to `GET /stats` (port 9091) and what gateways push to the leading operator
 * (`POST /v1/stats`, port 8086). Concurrency is weighted by time over the reported second (request-seconds per second),
 * never sampled; counts are requests that began in that second.
 */

/** Whom the tokens of gateways' reports are for; the volume `report-token` of manifests/base/gateway.yaml asks for it. */
export const REPORT_AUDIENCE = "fairway-autoscaler";

/** One pod's last whole second. */
export const PodStatSchema = z.object({
  podName: z.string().min(1),
  /** End of the reported second, milliseconds since the epoch by the pod's clock. */
  timestampMs: z.number().int().nonnegative(),
  /** Since the process started. */
  uptimeMs: z.number().nonnegative(),
  /** All requests inside the pod's limit or waiting for it. */
  averageConcurrentRequests: z.number().nonnegative(),
  /** The part of the above that carries `K-Proxy-Request` (already counted by a gateway). */
  averageProxiedConcurrentRequests: z.number().nonnegative(),
  requestCount: z.number().nonnegative(),
  proxiedRequestCount: z.number().nonnegative(),
  /** CPU seconds per second used by the pod's user containers over the reported second, where it can be measured. */
  cpuUsage: z.number().nonnegative().optional(),
});
export type PodStat = z.infer<typeof PodStatSchema>;

/** One revision as one gateway saw it over the last second. */
export const RevisionStatSchema = z.object({
  namespace: z.string().min(1),
  revision: z.string().min(1),
  /** Waiting or forwarded, weighted by time. */
  averageConcurrentRequests: z.number().nonnegative(),
  requestCount: z.number().nonnegative(),
  /** Requests that wait for a place right now. */
  waiting: z.number().int().nonnegative(),
  /** Requests at pods right now. */
  inFlight: z.number().int().nonnegative(),
});
export type RevisionStat = z.infer<typeof RevisionStatSchema>;

export const GatewayReportSchema = z.object({
  /** Pod name of the gateway. */
  gateway: z.string().min(1),
  /** A value new at each start of the gateway process, so that a restart is seen. */
  instance: z.string().min(1),
  sequence: z.number().int().nonnegative(),
  timestampMs: z.number().int().nonnegative(),
  /** Revisions with traffic in the last second, and for one more report after it ended (zeros). */
  revisions: z.array(RevisionStatSchema),
  /** `namespace/route` -> fingerprint of what is programmed; all routes when `full`, else those changed since the last accepted report. */
  programmed: z.record(z.string(), z.string()),
  full: z.boolean(),
  /** True when sent at once because requests need a pod (not the regular second's report). */
  poke: z.boolean(),
});
export type GatewayReport = z.infer<typeof GatewayReportSchema>;

/** Soft state for the gateways: hints from the autoscaler. Without it a gateway goes on with defaults. */
export const RevisionHintSchema = z.object({
  /** Pods that get traffic only when every other pod is busy (Cloud Run's demotion). */
  demotedPods: z.array(z.string()),
  /** Per pod maximum of requests in flight lowered by adaptive concurrency; absent: the configured maximum. */
  podConcurrency: z.record(z.string(), z.number().int().positive()),
  /** How long a request may wait for a place, when the policy says so. */
  pendingTimeoutMs: z.number().positive().optional(),
});
export type RevisionHint = z.infer<typeof RevisionHintSchema>;

export const GatewayReplySchema = z.object({
  /** The operator does not know this gateway's programmed routes: send them all with the next report. */
  needFull: z.boolean(),
  /** `namespace/revision` -> hint, whole set. */
  hints: z.record(z.string(), RevisionHintSchema),
});
export type GatewayReply = z.infer<typeof GatewayReplySchema>;
