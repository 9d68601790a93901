import { Capability } from "pepr";
import type { CapabilityModule } from "../runtime/capability.ts";
import { flowSchemas } from "../runtime/kinds.ts";
import { buildFlowControl } from "./controllers.ts";

/** Keeps the mandatory and suggested objects, and says of each FlowSchema whether it dangles. */
export const flowControlCapability: CapabilityModule = runtime => {
  const capability = new Capability({
    name: "flow-control",
    description: "Keeps priority levels and flow schemas, and judges them",
  });
  const controllers = buildFlowControl(runtime);
  capability.When(flowSchemas.model, flowSchemas).IsCreatedOrUpdated().Watch(controllers.flowSchema.hint);
  return capability;
};
