import { z } from "zod";

/**
 * What a gateway shows of its flow control on its admin port (9090), for `fairway flow top` and `fairway flow explain`. Fields that
 * are named here are relied on, others are passed on.
 */

const count = () => z.number().int().nonnegative();

/** One priority level: limits and use in seats, requests by what became of them since the gateway started. */
export const FlowLevelViewSchema = z.looseObject({
  name: z.string(),
  type: z.enum(["Limited", "Exempt"]),
  /** Named by no object any more; goes with its last request. */
  quiescing: z.boolean(),
  nominal: count(),
  min: count(),
  max: count(),
  /** The limit that holds now, between min and max. */
  currentLimit: count(),
  seatsInUse: count(),
  executing: count(),
  waiting: count(),
  dispatched: count(),
  rejected: count(),
  timedOut: count(),
});
export type FlowLevelView = z.infer<typeof FlowLevelViewSchema>;

/** `GET /debug/flow-control`. */
export const FlowControlViewSchema = z.looseObject({
  levels: z.array(FlowLevelViewSchema),
  /** Schemas that name a level which does not exist. */
  dangling: z.array(z.looseObject({ schema: z.string(), level: z.string() })),
  /** Levels that cannot work. */
  broken: z.array(z.looseObject({ level: z.string(), problem: z.string() })),
  /** Queues for seats in which somebody waits, or whose requests run. */
  queues: z.array(z.looseObject({ level: z.string(), index: count(), waiting: count(), executing: count() })),
  /** Who has waited longest for a seat, at most ten. */
  longestWaiting: z.array(
    z.looseObject({ level: z.string(), schema: z.string(), flow: z.string(), queue: count(), waitedMs: z.number() }),
  ),
});
export type FlowControlView = z.infer<typeof FlowControlViewSchema>;

/** `GET /debug/revisions`: the revisions of the gateway, by `namespace/name`. */
export const RevisionsViewSchema = z.record(
  z.string(),
  z.looseObject({
    /** Places at its pods, held or free. */
    places: z.union([count(), z.literal("unlimited")]),
    /** Requests at pods, and requests that wait for a place. */
    inFlight: count(),
    waiting: count(),
    /** Priority levels with requests, as the place queue's snapshot has them. */
    levels: z.array(z.looseObject({ level: z.string(), waiting: count(), inUse: count() })).optional(),
  }),
);
export type RevisionsView = z.infer<typeof RevisionsViewSchema>;

export const FLOW_CONTROL_VIEW_PATH = "/debug/flow-control";
export const REVISIONS_VIEW_PATH = "/debug/revisions";
