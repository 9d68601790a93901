import { Capability } from "pepr";
import type { CapabilityModule } from "../runtime/capability.ts";
import { revisions } from "../runtime/kinds.ts";
import type { ProgrammedRoutes } from "../services/context.ts";
import type { RevisionScaling } from "../services/revision-scaling.ts";
import { buildAutoscaler } from "./autoscaler.ts";
import { DecisionStore } from "./decision-store.ts";
import { GatewayRegistry } from "./gateway-registry.ts";
import { ScalingBoard } from "./scaling-board.ts";

/** The capability, and what other capabilities see of it. */
export interface Autoscaling {
  readonly scaling: RevisionScaling;
  readonly programmed: ProgrammedRoutes;
  readonly capability: CapabilityModule;
}

export function createAutoscaling(): Autoscaling {
  let readyGateways: readonly string[] = [];
  const board = new ScalingBoard();
  const registry = new GatewayRegistry(() => readyGateways);
  const decisions = new DecisionStore();
  return {
    scaling: board,
    programmed: registry,
    capability: runtime => {
      const capability = new Capability({
        name: "autoscaling",
        description: "Decides the number of pods of each revision, and writes it",
      });
      const controller = buildAutoscaler(runtime, {
        board,
        registry,
        decisions,
        onReadyGateways: ready => (readyGateways = ready),
      });
      capability.When(revisions.model, revisions).IsCreatedOrUpdated().Watch(controller.hint);
      capability.When(revisions.model, revisions).IsDeleted().Watch(controller.hint);
      return capability;
    },
  };
}
