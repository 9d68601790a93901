import type { Oracle } from "../oracle.ts";
import { replay } from "./replay.ts";

/** Priority and fairness of Kubernetes' API server: queue sets, dealer, limits, classification; k8s.io/apiserver v0.37.2. */
export const oracle: Oracle = {
  name: "flowcontrol",
  module: "flowcontrol",
  scenarios: 20_000,
  vectors: { file: "test/vectors/flowcontrol/scenarios.jsonl.br", scenarios: 300 },
  replay,
};
