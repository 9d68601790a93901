/** Our side of the comparison: plays what the Go program wrote through core/flowcontrol. */
import type { Difference } from "../oracle.ts";
import type { QueueSetScenario } from "./replay-queue-set.ts";
import { replayQueueSet } from "./replay-queue-set.ts";
import { Unequal } from "./unequal.ts";

type Scenario = QueueSetScenario;

export function replay(line: string): Difference | undefined {
  const scenario = JSON.parse(line) as Scenario;
  try {
    switch (scenario.kind) {
      case "queueset":
        replayQueueSet(scenario);
    }
    return undefined;
  } catch (error) {
    if (!(error instanceof Unequal)) throw error;
    return { scenario: scenario.n, label: scenario.kind, where: error.where, detail: error.message };
  }
}
