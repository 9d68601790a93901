import type { RequestAttributes } from "../../../core/flowcontrol/classifier.ts";
import type { FlowTicket } from "../../../core/flowcontrol/flow-controller.ts";
import { FlowController } from "../../../core/flowcontrol/flow-controller.ts";
import type { FlowSchemaSpec, PriorityLevelSpec } from "../../../core/flowcontrol/objects.ts";
import { dumpPages } from "../../../dataplane/gateway/flow-control/dumps.ts";
import { mustEqual } from "./unequal.ts";

/** A request as objects.go writes it. */
export interface Attributes {
  readonly user: string;
  readonly groups: readonly string[];
  readonly verb: string;
  readonly isResource?: boolean;
  readonly apiGroup?: string;
  readonly resource?: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly path?: string;
}

export interface Named<Spec> {
  readonly name: string;
  readonly spec: Spec;
}

interface Limits {
  readonly name: string;
  readonly quiescing?: boolean;
  readonly nominal: number;
  readonly min: number;
  readonly max: number;
  readonly current: number;
  readonly smoothed?: number;
  readonly high?: number;
}

/** See controller.go. */
interface Step {
  readonly ns: number;
  readonly op: "configure" | "request" | "finish" | "cancel" | "adjust" | "dump";
  readonly id?: number;
  readonly a?: Attributes;
  readonly seats?: number;
  readonly schema?: string;
  readonly level?: string;
  readonly mode?: "rejected" | "waiting" | "executing";
  readonly levels?: readonly Named<PriorityLevelSpec>[];
  readonly schemas?: readonly Named<FlowSchemaSpec>[];
  readonly dangling?: readonly string[];
  readonly limits?: readonly Limits[];
  readonly d?: Readonly<Record<string, readonly number[]>>;
  readonly state?: Readonly<Record<string, readonly [number, number, number, number]>>;
  readonly dumps?: Readonly<Record<string, readonly string[]>>;
}

/** When every scenario begins: clock.go. */
const EPOCH_MS = 1_700_000_000_000;
/** A line of dump_queues about one without requests: dumps.go. */
const IDLE_QUEUE = /^[^,]+, +\d+, +0, +0, .*ss$/;

export interface ControllerScenario {
  readonly n: number;
  readonly kind: "controller";
  readonly totalSeats: number;
  readonly steps: readonly Step[];
}

/** Upstream's requests are either for a resource or for a path. */
export function attributesOf(a: Attributes): RequestAttributes {
  const resource = {
    apiGroup: a.apiGroup ?? "",
    resource: a.resource ?? "",
    subresource: a.subresource ?? "",
    namespace: a.namespace ?? "",
    name: "",
  };
  return {
    user: a.user,
    groups: a.groups,
    verb: a.verb,
    resource: a.isResource === true ? resource : undefined,
    path: a.isResource === true ? undefined : (a.path ?? ""),
    header: () => undefined,
  };
}

const withUid = <Spec>(object: Named<Spec>): Named<Spec> & { readonly uid: string } => ({
  ...object,
  uid: object.name,
});

export function replayController({ totalSeats, steps }: ControllerScenario): void {
  const tickets = new Map<number, FlowTicket<number>>();
  let dispatched: Record<string, number[]> = {};
  let nowNs = 0;
  const hooks = {
    dispatched: ({ payload, classification }: FlowTicket<number>) => {
      (dispatched[classification.level.name] ??= []).push(payload);
    },
    expired: () => {
      throw new Error("nothing expires here");
    },
  };
  const controller = new FlowController<number>({ totalSeats, maxWaitMs: Infinity, hooks }, 0);
  for (const [i, step] of steps.entries()) {
    const where = `step ${i} ${step.op} ${step.id ?? ""}`;
    nowNs += step.ns;
    const nowMs = nowNs / 1e6;
    dispatched = {};
    switch (step.op) {
      case "configure": {
        const levels = (step.levels ?? []).map(withUid);
        const report = controller.configure(levels, (step.schemas ?? []).map(withUid), nowMs);
        const dangling = report.dangling.map(({ schema }) => schema);
        mustEqual(where, "dangling", dangling, step.dangling ?? []);
        break;
      }
      case "request": {
        const attributes = attributesOf(step.a!);
        const classification = controller.classify(attributes);
        const { schema, level } = classification;
        mustEqual(where, "schema and level", [schema.name, level.name], [step.schema, step.level]);
        mustEqual(where, "explained schema", controller.explain(attributes).classification.schema.name, step.schema);
        const result = controller.start({ classification, seats: step.seats!, payload: step.id! }, nowMs);
        if (result.kind !== "rejected") tickets.set(step.id!, result.ticket);
        const mode = { execute: "executing", queued: "waiting", rejected: "rejected" }[result.kind];
        mustEqual(where, "outcome", mode, step.mode);
        break;
      }
      case "finish":
        mustEqual(where, "finished", controller.finish(tickets.get(step.id!)!, nowMs), true);
        break;
      case "cancel":
        mustEqual(where, "cancelled", controller.cancel(tickets.get(step.id!)!, nowMs), true);
        break;
      case "adjust":
        mustEqual(where, "time of the adjustment", controller.nextEventMs(), nowMs);
        controller.tick(nowMs);
        break;
      case "dump": {
        const pages = dumpPages(controller, () => EPOCH_MS);
        for (const [url, theirs] of Object.entries(step.dumps!)) {
          const { pathname, searchParams } = new URL(url, "http://gateway");
          const [head, ...lines] = pages[pathname]!(searchParams).split("\n");
          mustEqual(where, `dump ${url}`, [head, ...lines.filter(line => !IDLE_QUEUE.test(line)).sort()], theirs);
        }
        break;
      }
    }
    mustEqual(where, "dispatched", dispatched, step.d ?? {});
    const status = controller.status().sort((a, b) => (a.level.name < b.level.name ? -1 : 1));
    if (step.limits !== undefined) {
      const ours = status.map(({ level, quiescing, limits, currentLimit, demand }) => ({
        name: level.name,
        ...(quiescing ? { quiescing } : {}),
        ...limits,
        current: currentLimit,
        ...(demand.smoothed > 0 ? { smoothed: demand.smoothed } : {}),
        ...(demand.highWatermark > 0 ? { high: demand.highWatermark } : {}),
      }));
      mustEqual(where, "limits", ours, step.limits);
    }
    for (const [name, theirs] of Object.entries(step.state ?? {})) {
      const level = status.find(candidate => candidate.level.name === name);
      const ours = level && [level.waiting, level.executing, level.seatsInUse, level.seatsWaiting];
      mustEqual(where, `level ${name}: waiting, executing, seats in use, seats waiting`, ours, theirs);
    }
  }
}
