import { describe, expect, it } from "vitest";
import { Transitions } from "./transitions.ts";

describe("Transitions", () => {
  it("tells a change once, and again when it changed in between", () => {
    const told: string[] = [];
    const transitions = new Transitions({ event: (_object, _type, reason) => told.push(reason) });
    const object = { metadata: { uid: "u" } };
    const tell = (topic: string, reason: string): void => transitions.tell(object, topic, "Normal", reason, "text");
    tell("ready", "Ready");
    tell("created", "Created");
    tell("ready", "Ready");
    tell("ready", "Failed");
    tell("ready", "Ready");
    transitions.tell({ metadata: { uid: "v" } }, "ready", "Normal", "Ready", "text");
    expect(told).toEqual(["Ready", "Created", "Failed", "Ready", "Ready"]);
  });
});
