import { describe, expect, it } from "vitest";
import type { Revision } from "../../api/serving/v1/types.ts";
import { isReachable } from "./reachability.ts";

function revision(state: string | undefined, conditions: { type: string; status: string }[]): Revision {
  return {
    metadata: { name: "r", labels: state === undefined ? {} : { "serving.knative.dev/routingState": state } },
    spec: { containers: [] },
    status: { conditions },
  } as unknown as Revision;
}

describe("isReachable", () => {
  it.each([
    ["active", [], true],
    ["reserve", [], false],
    ["pending", [], true],
    [undefined, [], true],
    ["pending", [{ type: "ContainerHealthy", status: "False" }], false],
    ["active", [{ type: "ContainerHealthy", status: "False" }], true],
    ["pending", [{ type: "ResourcesAvailable", status: "Unknown" }], true],
  ])("routing state %s with %j: %s", (state, conditions, expected) => {
    expect(isReachable(revision(state, conditions))).toBe(expected);
  });
});
