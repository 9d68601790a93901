import "./pepr-mode.ts";
import { Capability, Log } from "pepr";
import { beforeEach, describe, expect, it } from "vitest";
import { silentLogger } from "./logging.ts";
import { takeWatchBindings, UnsupportedWatch } from "./pepr-watches.ts";
import { defineResource } from "./resource.ts";
import type { KubeObject } from "./types.ts";

Log.level = "silent";
const things = defineResource<KubeObject>("example.dev/v1", "Thing", "things");
const thing = (name: string, namespace = "a", labels: Record<string, string> = {}): KubeObject => ({
  metadata: { name, namespace, labels },
});

describe("watch chains of a capability", () => {
  let capability: Capability;
  let seen: string[];
  const note = (object: KubeObject, phase: unknown) => void seen.push(`${String(phase)} ${object.metadata?.name}`);
  const handlers = () => takeWatchBindings(capability, silentLogger).map(({ handler }) => handler);

  beforeEach(() => {
    capability = new Capability({ name: "test", description: "" });
    seen = [];
  });

  it("are taken out, so that Pepr starts no watch of its own; admission chains stay", () => {
    capability
      .When(things.model, things)
      .IsCreatedOrUpdated()
      .Mutate(() => undefined)
      .Validate(request => request.Approve())
      .Watch(note);
    const [watch, ...others] = takeWatchBindings(capability, silentLogger);
    expect(others).toEqual([]);
    expect(watch?.kind).toBe(things);
    expect(capability.bindings.map(({ isMutate, isValidate, isWatch }) => [isMutate, isValidate, isWatch])).toEqual([
      [true, undefined, undefined],
      [undefined, true, undefined],
    ]);
  });

  it("hear of the events they name", () => {
    const { When } = capability;
    When(things.model, things).IsCreatedOrUpdated().Watch(note);
    When(things.model, things).IsDeleted().Watch(note);
    When(things.model, things).IsUpdated().Watch(note);
    for (const handler of handlers()) {
      for (const phase of ["added", "modified", "deleted"] as const) handler(thing("x"), phase);
    }
    expect(seen).toEqual(["ADDED x", "MODIFIED x", "DELETED x", "MODIFIED x"]);
  });

  it("filter by namespace, name and label", () => {
    const { When } = capability;
    When(things.model, things).IsCreated().InNamespace("b").Watch(note);
    When(things.model, things).IsCreated().WithName("n").Watch(note);
    When(things.model, things).IsCreated().WithLabel("l", "1").Watch(note);
    When(things.model, things).IsCreated().WithLabel("any").Watch(note);
    const objects = [
      thing("x"),
      thing("y", "b"),
      thing("n"),
      thing("l", "a", { l: "1" }),
      thing("m", "a", { any: "2", l: "2" }),
    ];
    for (const handler of handlers()) for (const object of objects) handler(object, "added");
    expect(seen).toEqual(["ADDED y", "ADDED n", "ADDED l", "ADDED m"]);
  });

  it("are refused when they ask for what the informers do not do", () => {
    const { When } = capability;
    When(things.model, things).IsCreated().WithNameRegex(/x/).Watch(note);
    expect(() => takeWatchBindings(capability, silentLogger)).toThrow(UnsupportedWatch);
    capability = new Capability({ name: "test", description: "" });
    capability.When(things.model, { group: "example.dev", version: "v1", kind: "Thing" }).IsCreated().Watch(note);
    expect(() => takeWatchBindings(capability, silentLogger)).toThrow("pass a kind of defineResource");
  });
});
