import { Counter } from "prom-client";
import { watching, type Controller, type OperatorRuntime } from "../runtime/capability.ts";
import { flowSchemas, priorityLevels } from "../runtime/kinds.ts";
import { keyOf } from "../runtime/resource.ts";
import { DanglingReconciler } from "./dangling.ts";
import { DefaultObjects } from "./default-objects.ts";

export interface FlowControlControllers {
  readonly defaults: Controller;
  readonly flowSchema: Controller;
}

/** Wires the two reconcilers to the runtime. */
export function buildFlowControl(runtime: OperatorRuntime): FlowControlControllers {
  const log = runtime.logger("flow-control");
  const actions = new Counter({
    name: "fairway_flowcontrol_maintenance_actions_total",
    help: "Mandatory and suggested objects that were created, updated or removed",
    labelNames: ["kind", "action"],
    registers: [runtime.metrics],
  });
  const levels = runtime.lister(priorityLevels);
  const schemas = runtime.lister(flowSchemas);
  const aPass = () => [DefaultObjects.key];
  return {
    defaults: runtime.registerController({
      name: "flow-control-defaults",
      concurrency: 1,
      reconciler: new DefaultObjects({
        priorityLevels: levels,
        flowSchemas: schemas,
        writer: runtime.writer,
        onAction: (kind, action, name) => {
          actions.inc({ kind, action });
          log.info({ kind, action, name }, "mandatory or suggested object kept");
        },
      }),
      watches: [watching(priorityLevels, aPass), watching(flowSchemas, aPass)],
      initialKeys: [DefaultObjects.key],
    }),
    flowSchema: runtime.registerController({
      name: "flow-schemas",
      reconciler: new DanglingReconciler({
        priorityLevels: levels,
        flowSchemas: schemas,
        writer: runtime.writer,
        clock: runtime.clock,
      }),
      watches: [
        watching(priorityLevels, level =>
          schemas
            .list()
            .filter(schema => schema.spec.priorityLevelConfiguration.name === level.metadata.name)
            .map(keyOf),
        ),
      ],
    }),
  };
}
