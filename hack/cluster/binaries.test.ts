import { describe, expect, it } from "vitest";
import { cacheKey, versionFlags } from "./binaries.ts";

const GO_MOD = `module example

require (
	github.com/containerd/containerd/v2 v2.4.2
	k8s.io/kubernetes v1.37.2
)

replace k8s.io/api => k8s.io/api v0.37.2
`;

describe("versionFlags", () => {
  it("tells the programs the versions that go.mod requires", () => {
    const flags = versionFlags(GO_MOD);
    expect(flags).toContain("-X k8s.io/component-base/version.gitVersion=v1.37.2");
    expect(flags).toContain("-X k8s.io/component-base/version.gitMinor=37");
    expect(flags).toContain("-X github.com/containerd/containerd/v2/version.Version=v2.4.2");
  });

  it("names the module whose version is missing", () => {
    expect(() => versionFlags("module example\n")).toThrow("go.mod requires no version of k8s.io/kubernetes");
  });
});

describe("cacheKey", () => {
  const sources = new Map([
    ["go.mod", GO_MOD],
    ["box/main.go", "package main"],
  ]);

  it("is the same for the same sources in another order", () => {
    expect(cacheKey(new Map([...sources].reverse()))).toBe(cacheKey(sources));
  });

  it("changes with a version, and with what stands in which file", () => {
    const keys = [
      sources,
      new Map([...sources, ["go.mod", GO_MOD.replace("v2.4.2", "v2.4.3")]]),
      new Map([...sources, ["box/main.go", "package main\n"]]),
      new Map([["go.mod", GO_MOD + "box/main.go\0" + "package main"]]),
    ].map(cacheKey);
    expect(new Set(keys).size).toBe(keys.length);
  });
});
