import type { Oracle } from "../oracle.ts";
import { replay } from "./replay.ts";

/** Knative's autoscaler and metric windows, knative.dev/serving v0.51.0. */
export const oracle: Oracle = {
  name: "kpa",
  module: "kpa",
  scenarios: 50_000,
  vectors: { file: "test/vectors/kpa/scenarios.jsonl.br", scenarios: 320 },
  replay,
};
