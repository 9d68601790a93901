import type { Oracle } from "../oracle.ts";
import { replay } from "./replay.ts";

/**
 * Priority and fairness of Kubernetes' API server, k8s.io/apiserver v0.37.2. Of five scenarios, four are queue sets or
 * whole controllers (20,000 of all, 300 of those committed), one compares a part.
 */
export const oracle: Oracle = {
  name: "flowcontrol",
  module: "flowcontrol",
  scenarios: 25_005,
  vectors: { file: "test/vectors/flowcontrol/scenarios.jsonl.br", scenarios: 380 },
  replay,
};
