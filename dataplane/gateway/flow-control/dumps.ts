import type { FlowControl } from "./flow-control.ts";

/** Three tables of who waits and who runs, on the paths and with the first columns of k8s.io/apiserver's dumps. */
export const DUMP_PATHS = {
  levels: "/debug/api_priority_and_fairness/dump_priority_levels",
  queues: "/debug/api_priority_and_fairness/dump_queues",
  requests: "/debug/api_priority_and_fairness/dump_requests",
} as const;

type Row = readonly (string | number | boolean)[];

function table(header: Row, rows: readonly Row[]): string {
  return [header, ...rows].map(row => row.join(", ")).join("\n");
}

export function dumpLevels(flowControl: FlowControl): string {
  const activeQueues = new Map(
    flowControl
      .dump()
      .map(({ level, queues }) => [
        level,
        queues.filter(queue => queue.waiting.length + queue.executing.length > 0).length,
      ]),
  );
  return table(
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
    flowControl.status().map(({ level, quiescing, waiting, executing }) => {
      const { dispatched, rejected, timedOut, cancelled } = flowControl.countsOf(level.name);
      const isIdle = waiting + executing === 0;
      const active = activeQueues.get(level.name) ?? 0;
      return [level.name, active, isIdle, quiescing, waiting, executing, dispatched, rejected, timedOut, cancelled];
    }),
  );
}

export function dumpQueues(flowControl: FlowControl): string {
  return table(
    ["PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests"],
    flowControl
      .dump()
      .flatMap(({ level, queues }) =>
        queues.map((queue, index) => [level, index, queue.waiting.length, queue.executing.length]),
      ),
  );
}

/** Requests that wait. @param nowMs by the clock that they arrived by */
export function dumpRequests(flowControl: FlowControl, nowMs: number): string {
  return table(
    ["PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistinguisher", "WaitedMs"],
    flowControl.dump().flatMap(({ level, queues }) =>
      queues.flatMap((queue, index) =>
        queue.waiting.map(({ classification, arrivedMs }, place) => {
          const { schema, flow } = classification;
          return [level, schema.name, index, place, JSON.stringify(flow), Math.round(nowMs - arrivedMs)];
        }),
      ),
    ),
  );
}
