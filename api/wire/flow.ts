import { z } from "zod";

/**
 * What a gateway answers to `GET /debug/flow/state` (port 9090), for `fairway flow top` and `fairway flow explain`: its priority
 * levels with their seats and queues, the places of its revisions, and who waits longest. Beside the three dumps at upstream's
 * paths, which are text for people; this is one moment, for programs. `?requests=N` sets how many requests are told of
 * (default 20, at most 1000; those that have waited longest come first).
 */

const count = () => z.number().int().nonnegative();

/** One queue of a level that has requests. */
export const FlowQueueSchema = z.looseObject({
  index: count(),
  waiting: count(),
  executing: count(),
});

export const FlowLevelSchema = z.looseObject({
  name: z.string(),
  /** Empty for a mandatory one that has no object. */
  uid: z.string(),
  type: z.enum(["Limited", "Exempt"]),
  /** Named by no object any more; goes with its last request. */
  quiescing: z.boolean(),
  /** Seats: by shares, least and most, and the limit that holds now. */
  nominalLimit: count(),
  minLimit: count(),
  maxLimit: count(),
  currentLimit: count(),
  seatsInUse: count(),
  executing: count(),
  waiting: count(),
  /** Only those with requests. */
  queues: z.array(FlowQueueSchema),
  /** Since the gateway started. */
  dispatched: count(),
  rejected: count(),
  timedOut: count(),
});
export type FlowLevel = z.infer<typeof FlowLevelSchema>;

/** The places of one revision at this gateway. */
export const FlowPlacesSchema = z.looseObject({
  namespace: z.string(),
  revision: z.string(),
  /** Absent: no limit. */
  capacity: count().optional(),
  inUse: count(),
  waiting: count(),
  policy: z.enum(["fair", "fifo"]),
  /** Levels with requests, as PlaceQueue's snapshot has them. */
  levels: z.array(
    z.looseObject({ level: z.string(), waiting: count(), inUse: count(), queueLengths: z.array(count()) }),
  ),
});
export type FlowPlaces = z.infer<typeof FlowPlacesSchema>;

/** One request that waits. */
export const FlowRequestSchema = z.looseObject({
  /** For a place at its revision, or for a seat at the gateway. */
  waitsFor: z.enum(["place", "seat"]),
  waitedMs: z.number().nonnegative(),
  level: z.string(),
  schema: z.string(),
  /** What makes the flow within the schema; empty: all its requests are one. */
  flow: z.string(),
  user: z.string(),
  verb: z.string(),
  namespace: z.string(),
  service: z.string(),
  /** Without the query. */
  path: z.string(),
});
export type FlowRequest = z.infer<typeof FlowRequestSchema>;

export const FlowStateSchema = z.looseObject({
  /** The gateway's name: its pod. */
  gateway: z.string(),
  /** By the gateway's clock, milliseconds since the epoch. */
  atMs: z.number(),
  /** Seats of this gateway, all levels together. */
  totalSeats: count(),
  levels: z.array(FlowLevelSchema),
  /** Revisions with requests. */
  places: z.array(FlowPlacesSchema),
  requests: z.array(FlowRequestSchema),
});
export type FlowState = z.infer<typeof FlowStateSchema>;

export const FLOW_STATE_PATH = "/debug/flow/state";
