import type { FlowControlView } from "../../../api/wire/flow.ts";
import type { RouteTarget } from "../routing/compiled-route.ts";
import type { FlowControl } from "./flow-control.ts";
import { ANONYMOUS, authenticated } from "../identity/identity.ts";
import { serviceRequestAttributes } from "../../../core/flowcontrol/service-request.ts";

/**
 * What `fairway flow` shows of this gateway. `/debug/flow-control`: levels with their limits and who waits, and what is wrong
 * with the objects. `/debug/flow-control/explain?user=&group=&method=&host=&path=&header=Name:value`: which schema takes
 * such a request, what stood against those before it, and the queue it would join.
 *
 * @param find where a host leads
 * @param nowMs by the clock that requests arrive by
 */
export function flowControlViews(
  flowControl: FlowControl,
  find: (host: string) => RouteTarget<unknown> | undefined,
  nowMs: () => number,
): Readonly<Record<string, (query: URLSearchParams) => unknown>> {
  return {
    "/debug/flow-control": () => ({
      levels: flowControl.status().map(({ level, limits, demand, counts, ...status }) => ({
        name: level.name,
        type: level.spec.type,
        ...limits,
        ...status,
        demand: demand.smoothed,
        ...counts,
      })),
      ...flowControl.report,
      ...queuesAndWaiting(flowControl, nowMs()),
    }),
    "/debug/flow-control/explain": query => {
      const host = query.get("host") ?? "";
      const target = find(host);
      if (target === undefined) return { error: `no service is routed for host ${JSON.stringify(host)}` };
      const user = query.get("user");
      const identity = user === null ? ANONYMOUS : authenticated(user, query.getAll("group"));
      const headers = new Map(
        query.getAll("header").map(text => {
          const colon = text.indexOf(":");
          return [text.slice(0, colon).trim().toLowerCase(), text.slice(colon + 1).trim()];
        }),
      );
      const request = {
        method: query.get("method") ?? "GET",
        target: query.get("path") ?? "/",
        header: (name: string) => headers.get(name),
      };
      const { classification, missed, queue } = flowControl.explain(
        serviceRequestAttributes(request, target, identity),
      );
      const { schema, level, flow, maxSeats } = classification;
      const status = flowControl.status().find(candidate => candidate.level.name === level.name);
      return {
        identity,
        service: `${target.namespace}/${target.service}`,
        ...(target.tag === "" ? {} : { tag: target.tag }),
        missed: missed.map(({ schema: { name }, mismatches }) => ({ schema: name, mismatches })),
        schema: schema.name,
        level: level.name,
        flow,
        maxSeats,
        queue,
        ...(status === undefined
          ? {}
          : { limits: status.limits, currentLimit: status.currentLimit, waiting: status.waiting }),
      };
    },
  };
}

/** Requests that are shown. */
const MOST_WAITING = 10;

function queuesAndWaiting(flowControl: FlowControl, nowMs: number): Pick<FlowControlView, "queues" | "longestWaiting"> {
  const queues = flowControl
    .dump()
    .flatMap(({ level, queues }) =>
      queues.map(({ waiting, executing }, index) => ({ level, index, waiting, executing })),
    );
  return {
    queues: queues
      .map(queue => ({ ...queue, waiting: queue.waiting.length, executing: queue.executing.length }))
      .filter(({ waiting, executing }) => waiting + executing > 0),
    longestWaiting: queues
      .flatMap(({ level, index, waiting }) =>
        waiting.map(({ classification: { schema, flow }, arrivedMs }) => {
          return { level, schema: schema.name, flow, queue: index, waitedMs: Math.round(nowMs - arrivedMs) };
        }),
      )
      .sort((a, b) => b.waitedMs - a.waitedMs)
      .slice(0, MOST_WAITING),
  };
}
