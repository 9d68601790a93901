import { describe, expect, it } from "vitest";
import { binariesDirectory, clusterPaths, InvalidClusterNameError } from "./paths.ts";

describe("clusterPaths", () => {
  it("keeps each cluster in a directory of its own", () => {
    expect(clusterPaths("one").kubeconfig).not.toBe(clusterPaths("two").kubeconfig);
  });

  it.each(["", "Upper", "1st", "end-", "../up", "a/b", "x".repeat(31)])("refuses the name %j", name => {
    expect(() => clusterPaths(name)).toThrow(InvalidClusterNameError);
  });

  it("leaves room for the longest name in a socket's path, which has at most 107 bytes", () => {
    expect(clusterPaths("x".repeat(30)).containerdSocket.length).toBeLessThan(100);
  });
});

describe("binariesDirectory", () => {
  it("follows XDG_CACHE_HOME, and else the home directory", () => {
    expect(binariesDirectory({ XDG_CACHE_HOME: "/cache" })).toBe("/cache/fairway/cluster");
    expect(binariesDirectory({})).toMatch(/\/\.cache\/fairway\/cluster$/);
  });
});
