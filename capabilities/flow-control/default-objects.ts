import { setFlowSchemaDefaults, setPriorityLevelDefaults } from "../../api/flowcontrol/v1/defaults.ts";
import {
  FLOW_CONTROL_API_VERSION,
  type FlowSchema,
  type PriorityLevelConfiguration,
} from "../../api/flowcontrol/v1/types.ts";
import {
  MANDATORY_FLOW_SCHEMAS,
  MANDATORY_PRIORITY_LEVELS,
  SUGGESTED_FLOW_SCHEMAS,
  SUGGESTED_PRIORITY_LEVELS,
  type BootstrapObject,
} from "../../core/flowcontrol/bootstrap.ts";
import { planMaintenance, type MaintenanceAction, type ObservedObject } from "../../core/flowcontrol/maintenance.ts";
import { jsonEqual } from "../runtime/equality.ts";
import type { ClusterWriter, KubeObject, Lister, ObjectKey, ReconcileResult, Reconciler } from "../runtime/types.ts";

/** How often mandatory and suggested objects are looked at even when nothing happened to them. */
const PASS_EVERY_MS = 60_000;

export interface DefaultObjectsDependencies {
  readonly priorityLevels: Lister<PriorityLevelConfiguration>;
  readonly flowSchemas: Lister<FlowSchema>;
  readonly writer: Pick<ClusterWriter, "apply" | "replaceSpec" | "patchMetadata" | "delete">;
  readonly onAction: (kind: string, action: string, name: string) => void;
}

/**
 * Keeps the mandatory and suggested objects: a pass when a replica begins to lead, every minute, and when one of the objects
 * changed. There is one key; it stands for the pass as a whole.
 */
export class DefaultObjects implements Reconciler {
  static readonly key: ObjectKey = { name: "defaults" };
  readonly name = "flow-control-defaults";
  readonly #deps: DefaultObjectsDependencies;

  constructor(dependencies: DefaultObjectsDependencies) {
    this.#deps = dependencies;
  }

  async reconcile(_key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    // Levels before schemas: a new schema is not dangling even for a moment.
    await this.#pass(
      "PriorityLevelConfiguration",
      this.#deps.priorityLevels.list(),
      { mandatory: MANDATORY_PRIORITY_LEVELS, suggested: SUGGESTED_PRIORITY_LEVELS },
      spec => setPriorityLevelDefaults({ metadata: {}, spec } as PriorityLevelConfiguration).spec,
      signal,
    );
    await this.#pass(
      "FlowSchema",
      this.#deps.flowSchemas.list(),
      { mandatory: MANDATORY_FLOW_SCHEMAS, suggested: SUGGESTED_FLOW_SCHEMAS },
      spec => setFlowSchemaDefaults({ metadata: {}, spec } as FlowSchema).spec,
      signal,
    );
    return { requeueAfterMs: PASS_EVERY_MS };
  }

  async #pass<Spec extends object>(
    kind: string,
    objects: readonly (KubeObject & { readonly spec?: unknown })[],
    wanted: {
      readonly mandatory: readonly BootstrapObject<Spec>[];
      readonly suggested: readonly BootstrapObject<Spec>[];
    },
    withDefaults: (spec: Spec) => unknown,
    signal: AbortSignal,
  ): Promise<void> {
    const actions = planMaintenance<Spec>({
      ...wanted,
      observed: objects.map(observe<Spec>),
      sameSpec: (a, b) => jsonEqual(withDefaults(a), withDefaults(b)),
    });
    const uids = new Map(objects.map(({ metadata }) => [metadata?.name, metadata?.uid]));
    for (const action of actions) await this.#act(kind, action, uids.get(action.name) ?? "", signal);
  }

  async #act<Spec extends object>(
    kind: string,
    action: MaintenanceAction<Spec>,
    uid: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { writer, onAction } = this.#deps;
    const type = { apiVersion: FLOW_CONTROL_API_VERSION, kind };
    const ref = { ...type, name: action.name };
    switch (action.kind) {
      case "create":
        await writer.apply<KubeObject & { readonly spec: Spec }>(
          { ...type, metadata: { name: action.name, annotations: action.annotations }, spec: action.spec },
          signal,
        );
        break;
      case "update":
        if (action.spec === undefined) await writer.patchMetadata(ref, { annotations: action.annotations }, signal);
        else await writer.replaceSpec({ ...ref, uid }, action.spec, action.annotations, signal);
        break;
      case "remove":
        await writer.delete({ ...ref, uid }, signal);
        break;
    }
    onAction(kind, action.kind, action.name);
  }
}

function observe<Spec>({ metadata, spec }: KubeObject & { readonly spec?: unknown }): ObservedObject<Spec> {
  return {
    name: metadata?.name ?? "",
    annotations: metadata?.annotations ?? {},
    generation: metadata?.generation ?? 0,
    spec: spec as Spec,
  };
}
