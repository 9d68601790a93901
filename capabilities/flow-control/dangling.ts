import type { Condition } from "../../api/conditions.ts";
import { FLOW_CONTROL_API_VERSION, type FlowSchema } from "../../api/flowcontrol/v1/types.ts";
import type { PriorityLevelConfiguration } from "../../api/flowcontrol/v1/types.ts";
import type { ClusterWriter, Lister, ObjectKey, ReconcileResult, Reconciler } from "../runtime/types.ts";

const DANGLING = "Dangling";

export interface DanglingDependencies {
  readonly priorityLevels: Lister<PriorityLevelConfiguration>;
  readonly flowSchemas: Lister<FlowSchema>;
  readonly writer: Pick<ClusterWriter, "applyStatus">;
  readonly clock: { nowMs(): number };
}

/** Writes the condition Dangling of each FlowSchema: whether the priority level that it names is there. */
export class DanglingReconciler implements Reconciler {
  readonly name = "flow-schemas";
  readonly #deps: DanglingDependencies;

  constructor(dependencies: DanglingDependencies) {
    this.#deps = dependencies;
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const { flowSchemas, priorityLevels, writer, clock } = this.#deps;
    const schema = flowSchemas.get(key);
    if (schema === undefined || schema.metadata.deletionTimestamp !== undefined) return {};
    const level = schema.spec.priorityLevelConfiguration.name;
    const present = priorityLevels.get({ name: level }) !== undefined;
    const before = schema.status?.conditions?.find(condition => condition.type === DANGLING);
    const now = new Date(clock.nowMs()).toISOString().replace(/\.\d+Z$/, "Z");
    const condition = danglingCondition(level, present, before, now);
    await writer.applyStatus(
      {
        apiVersion: FLOW_CONTROL_API_VERSION,
        kind: "FlowSchema",
        metadata: { name: key.name, uid: schema.metadata.uid },
        status: { conditions: [condition] },
      },
      signal,
    );
    return {};
  }
}

/** `now` in RFC 3339; the time of the last transition stays while the status does. */
export function danglingCondition(
  level: string,
  present: boolean,
  before: { readonly status: string; readonly lastTransitionTime?: string | undefined } | undefined,
  now: string,
): Condition {
  const status = present ? "False" : "True";
  const lastTransitionTime = before?.status === status ? (before.lastTransitionTime ?? now) : now;
  return present
    ? { type: DANGLING, status, lastTransitionTime, reason: "Found", message: `priority level "${level}" exists` }
    : {
        type: DANGLING,
        status,
        lastTransitionTime,
        reason: "NotFound",
        message: `priority level "${level}" does not exist: requests that match go to the level catch-all`,
      };
}
