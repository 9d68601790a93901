/** Our side of the comparison: plays what the Go program wrote through core/flowcontrol. */
import type { Difference } from "../oracle.ts";
import type { ControllerScenario } from "./replay-controller.ts";
import { replayController } from "./replay-controller.ts";
import type { PartScenario } from "./replay-parts.ts";
import { replayPart } from "./replay-parts.ts";
import type { QueueSetScenario } from "./replay-queue-set.ts";
import { replayQueueSet } from "./replay-queue-set.ts";
import { Unequal } from "./unequal.ts";

type Scenario = QueueSetScenario | ControllerScenario | PartScenario;

/** Plays one line of the Go program's; undefined when every result is equal, else the first difference. */
export function replay(line: string): Difference | undefined {
  const scenario = JSON.parse(line) as Scenario;
  try {
    if (scenario.kind === "queueset") replayQueueSet(scenario);
    else if (scenario.kind === "controller") replayController(scenario);
    else replayPart(scenario);
    return undefined;
  } catch (error) {
    if (!(error instanceof Unequal)) throw error;
    return { scenario: scenario.n, label: scenario.kind, where: error.where, detail: error.message };
  }
}
