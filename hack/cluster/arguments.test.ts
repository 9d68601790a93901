import { describe, expect, it } from "vitest";
import { parseArguments, type Request } from "./arguments.ts";

function parse(...args: string[]): Request {
  return parseArguments(args, "fairway", command =>
    command.exitOverride().configureOutput({ writeErr: () => undefined, writeOut: () => undefined }),
  );
}

describe("parseArguments", () => {
  const local = { kind: "local", name: "fairway" };

  it.each<[string[], object]>([
    [["up"], { command: "up", target: local, parentPid: undefined }],
    [["up", "--name", "two"], { command: "up", target: { kind: "local", name: "two" }, parentPid: undefined }],
    [["up", "--parent-pid", "77"], { command: "up", target: local, parentPid: 77 }],
    [["up", "--use-current"], { command: "up", target: { kind: "current" }, parentPid: undefined }],
    [["down"], { command: "down", target: local }],
    [["status", "--use-current"], { command: "status", target: { kind: "current" } }],
    [["kubeconfig", "--name", "two"], { command: "kubeconfig", target: { kind: "local", name: "two" } }],
    [["load", "image.tar"], { command: "load", target: local, tar: "image.tar" }],
  ])("reads %j", (args, expected) => {
    expect(parse(...args)).toEqual(expected);
  });

  it("refuses a parent that is not a process id", () => {
    expect(() => parse("up", "--parent-pid", "zero")).toThrow('must be a process id, and is "zero"');
  });

  it("refuses a load of nothing, an unknown command, and none", () => {
    expect(() => parse("load")).toThrow("missing required argument 'tar'");
    expect(() => parse("stop")).toThrow("unknown command 'stop'");
    expect(() => parse()).toThrow();
  });
});
