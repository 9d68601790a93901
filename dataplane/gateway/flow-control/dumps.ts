import type { Classification, FlowTicket, LevelDump, LevelStatus } from "../../../core/flowcontrol/flow-controller.ts";
import { DEFAULT_QUEUES } from "../../../core/flowcontrol/objects.ts";
import { formatTable } from "./dump-table.ts";

/**
 * Who waits and who runs, as three tables: paths, columns and formats of k8s.io/apiserver's dumps (apf_controller_debug.go). Levels
 * stand in the order of their names; upstream's second and third table have them in any order.
 */
export const DUMP_PATHS = {
  levels: "/debug/api_priority_and_fairness/dump_priority_levels",
  queues: "/debug/api_priority_and_fairness/dump_queues",
  requests: "/debug/api_priority_and_fairness/dump_requests",
} as const;

/** What is dumped: a gateway's flow control, or the controller in it. */
export interface Dumped {
  status(): readonly LevelStatus[];
  dump(): readonly LevelDump<unknown>[];
}

/** Version of the API that the services are of; a request names none. */
const SERVICE_API_VERSION = "v1";
/** Index of who is in no queue, and place of who does not wait. */
const NONE = -1;

/** The pages by their paths. @param epochMs when the clock of the tickets was 0, in milliseconds since the Unix epoch */
export function dumpPages(
  dumped: Dumped,
  epochMs: () => number,
): Readonly<Record<string, (query: URLSearchParams) => string>> {
  return {
    [DUMP_PATHS.levels]: () => dumpLevels(dumped),
    [DUMP_PATHS.queues]: () => dumpQueues(dumped),
    [DUMP_PATHS.requests]: query => {
      const hasDetails = (query.get("includeRequestDetails") ?? "") !== "";
      return dumpRequests(dumped, { epochMs: epochMs(), hasDetails });
    },
  };
}

export function dumpLevels(dumped: Dumped): string {
  const activeQueues = new Map(
    dumped.dump().map(({ level, queues }) => [level, queues.filter(({ waiting }) => waiting.length > 0).length]),
  );
  return formatTable(
    [
      "PriorityLevelName",
      "ActiveQueues",
      "IsIdle",
      "IsQuiescing",
      "WaitingRequests",
      "ExecutingRequests",
      "DispatchedRequests",
      "RejectedRequests",
      "TimedoutRequests",
      "CancelledRequests",
    ],
    byName(dumped.status(), ({ level }) => level.name).map(({ level, quiescing, waiting, executing, counts }) => {
      const { dispatched, rejected, timedOut, cancelled } = counts;
      // As upstream, who left the queue without a seat was rejected, too.
      const allRejected = rejected + timedOut + cancelled;
      const isIdle = waiting + executing === 0;
      const active = activeQueues.get(level.name) ?? 0;
      return [level.name, active, isIdle, quiescing, waiting, executing, dispatched, allRejected, timedOut, cancelled];
    }),
  );
}

export function dumpQueues(dumped: Dumped): string {
  return formatTable(
    [
      "PriorityLevelName",
      "Index",
      "PendingRequests",
      "ExecutingRequests",
      "SeatsInUse",
      "NextDispatchR",
      "InitialSeatsSum",
      "MaxSeatsSum",
      "TotalWorkSum",
    ],
    byName(dumped.dump(), ({ level }) => level).flatMap(({ level, queues }) =>
      queues.map((queue, index) => [
        level,
        index,
        queue.waiting.length,
        queue.executing.length,
        queue.seatsInUse,
        seatSeconds(queue.nextDispatchR),
        queue.waitingInitialSeats,
        queue.waitingMaxSeats,
        seatSeconds(queue.waitingWork),
      ]),
    ),
  );
}

export interface RequestDumpOptions {
  /** When the clock of the tickets was 0, in milliseconds since the Unix epoch. */
  readonly epochMs: number;
  /** With who sends it and what for. */
  readonly hasDetails: boolean;
}

/** Requests that wait, then those that run. */
export function dumpRequests(dumped: Dumped, { epochMs, hasDetails }: RequestDumpOptions): string {
  const row = (level: string, queue: number, place: number, ticket: FlowTicket<unknown>) => [
    level,
    ticket.classification.schema.name,
    queue,
    place,
    flowAmongQueues(ticket.classification),
    timestamp(epochMs, ticket.arrivedMs),
    ticket.seats,
    // No request is expected to go on working after its end, as writes are upstream.
    0,
    "0s",
    timestamp(epochMs, ticket.startedMs),
    ...(hasDetails ? detailsOf(ticket) : []),
  ];
  return formatTable(
    [
      "PriorityLevelName",
      "FlowSchemaName",
      "QueueIndex",
      "RequestIndexInQueue",
      "FlowDistingsher",
      "ArriveTime",
      "InitialSeats",
      "FinalSeats",
      "AdditionalLatency",
      "StartTime",
      ...(hasDetails
        ? ["UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource"]
        : []),
    ],
    byName(dumped.dump(), ({ level }) => level).flatMap(({ level, queues, unqueued }) => [
      ...queues.flatMap(({ waiting, executing }, index) => [
        ...waiting.map((ticket, place) => row(level, index, place, ticket)),
        ...executing.map(ticket => row(level, index, NONE, ticket)),
      ]),
      ...unqueued.map(ticket => row(level, NONE, NONE, ticket)),
    ]),
  );
}

/** Upstream tells flows apart only where there is more than one queue for them. */
function flowAmongQueues({ level, flow }: Classification): string {
  const response = level.spec.limited?.limitResponse;
  const queues = response?.type === "Queue" ? (response.queuing?.queues ?? DEFAULT_QUEUES) : 0;
  return queues > 1 ? flow : "";
}

function detailsOf({ classification }: FlowTicket<unknown>): string[] {
  const { user, verb, path = "", resource } = classification.request;
  const apiVersion =
    resource === undefined ? "" : [resource.apiGroup, SERVICE_API_VERSION].filter(part => part !== "").join("/");
  const { namespace = "", name = "", resource: kind = "", subresource = "" } = resource ?? {};
  return [user, verb, path, namespace, name, apiVersion, kind, subresource];
}

function byName<T>(list: readonly T[], nameOf: (one: T) => string): T[] {
  return list.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

const seatSeconds = (value: number): string => `${value.toFixed(8)}ss`;

/** Go's RFC3339Nano in UTC; its zero time for what has not been. */
function timestamp(epochMs: number, ms: number): string {
  if (Number.isNaN(ms)) return "0001-01-01T00:00:00Z";
  const allNs = Math.round(ms * 1e6);
  const wholeMs = Math.floor(allNs / 1e6);
  const ns = allNs - wholeMs * 1e6;
  const iso = new Date(Math.round(epochMs) + wholeMs).toISOString().slice(0, -1);
  const fraction = `${iso.slice(20)}${String(ns).padStart(6, "0")}`.replace(/0+$/, "");
  return `${iso.slice(0, 19)}${fraction === "" ? "" : `.${fraction}`}Z`;
}
