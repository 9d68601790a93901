import { z } from "zod";

/**
 * What the leading operator answers to `GET /debug/scaling?namespace=NS&revision=NAME` (port 9090), for `fairway why`: the last
 * decision about one revision as the core made it, and that decision in words. 404: nothing was decided about it (yet); 503: this
 * replica does not lead.
 *
 * `decision` is the decision as it is, through JSON: fields that are named here are relied on, others are passed on.
 */

const count = () => z.number().int().nonnegative();
const time = () => z.number();

/** The decision in words: `explain` of core/autoscaling. */
export const ScalingExplanationSchema = z.looseObject({
  /** Pods wanted in the end; absent while unknown. */
  pods: count().optional(),
  /** The rule that fixed the number. */
  winner: z.string(),
  lines: z.array(
    z.looseObject({
      rule: z.string(),
      /** The number the rule stands for, if any. */
      pods: z.number().optional(),
      text: z.string(),
      won: z.boolean(),
    }),
  ),
  /** What has to happen before the number changes by itself. */
  waitsFor: z.string().optional(),
  /** When the wait ends by time alone, milliseconds since the epoch. */
  untilMs: time().optional(),
});
export type ScalingExplanation = z.infer<typeof ScalingExplanationSchema>;

export const ScalingDecisionSchema = z.looseObject({
  /** Milliseconds since the epoch, as all times. */
  atMs: time(),
  spec: z.looseObject({ policy: z.looseObject({ kind: z.string() }) }),
  observation: z.looseObject({
    /** Absent when they could not be counted. */
    readyPods: count().optional(),
    load: z.discriminatedUnion("kind", [
      z.looseObject({ kind: z.literal("measured"), stable: z.number(), panic: z.number() }),
      z.looseObject({ kind: z.literal("none"), reason: z.string() }),
    ]),
    gatewaysInPathSinceMs: time().optional(),
  }),
  outcome: z.looseObject({
    decision: z.looseObject({
      valid: z.boolean(),
      /** Why there was none. */
      reason: z.string().optional(),
      /** Cloud Run's policy only. */
      demoted: z.array(z.looseObject({ name: z.string(), group: z.string(), sinceMs: time() })).optional(),
      pendingTimeoutMs: z.number().optional(),
    }),
    desired: count().optional(),
    held: z.boolean(),
    excessBurstCapacity: z.number(),
    step: z.looseObject({
      replicas: count().optional(),
      wanted: count().optional(),
      mode: z.enum(["proxy", "serve"]),
      rule: z.string(),
      bound: z.string(),
      recheckAtMs: time().optional(),
    }),
    next: z.looseObject({
      lifecycle: z.looseObject({
        activity: z.looseObject({ phase: z.string(), sinceMs: time(), reason: z.string().optional() }),
        initialScaleReached: z.boolean(),
      }),
    }),
  }),
  /** `.spec.replicas` before it. */
  replicasBefore: count().optional(),
  /** Pods that exist and are not being deleted. */
  livePods: count(),
});
export type ScalingDecision = z.infer<typeof ScalingDecisionSchema>;

/** The last decision that changed the number of pods. */
export const NumberChangeSchema = z.looseObject({
  atMs: time(),
  from: count(),
  to: count(),
  /** The rule that fixed the number. */
  winner: z.string(),
  /** When a gateway told at once that requests need a pod, where that led to it. */
  pokedMs: time().optional(),
});

/** Who is to tell of the revision's load, and when each last did. */
export const LoadSourcesSchema = z.looseObject({
  /** Absent time: not heard yet. */
  gateways: z.array(z.looseObject({ name: z.string(), heardMs: time().optional() })),
  /** Whether its pods are asked: not where all requests are sure to pass the gateways. */
  scraped: z.boolean(),
  /** When enough of its pods last answered; absent: not yet. */
  answeredMs: time().optional(),
});

/** One instance's maximum of requests in flight, by adaptive concurrency. */
export const AdaptationSchema = z.looseObject({
  name: z.string(),
  rule: z.string(),
  maximum: count(),
  /** Part of its CPU in use over the last second; absent where it cannot be measured. */
  cpu: z.number().optional(),
});

export const ScalingDebugSchema = z.looseObject({
  namespace: z.string(),
  revision: z.string(),
  decision: ScalingDecisionSchema,
  explanation: ScalingExplanationSchema,
  /** Absent: none since this operator leads. */
  lastChange: NumberChangeSchema.optional(),
  sources: LoadSourcesSchema.optional(),
  /** Cloud Run's policy with adaptive concurrency only. */
  adaptations: z.array(AdaptationSchema).optional(),
});
export type ScalingDebug = z.infer<typeof ScalingDebugSchema>;

/** Path and port of the answer on an operator's pod. */
export const SCALING_DEBUG_PATH = "/debug/scaling";
export const ADMIN_PORT = 9090;
