import { describe, expect, it } from "vitest";
import { cgroupHierarchies } from "./cgroups.ts";

describe("cgroupHierarchies", () => {
  it("finds each group of controllers of version 1, and a unified hierarchy beside them", () => {
    const mounts = [
      "sysfs /sys sysfs rw,relatime 0 0",
      "tmpfs /sys/fs/cgroup tmpfs rw,mode=755 0 0",
      "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0",
      "cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0",
      "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0",
      "cgroup /elsewhere/memory cgroup rw,memory 0 0",
      "",
    ].join("\n");
    expect(cgroupHierarchies(mounts)).toEqual([
      { path: "/sys/fs/cgroup/cpu,cpuacct", controllers: ["rw", "relatime", "cpu", "cpuacct"] },
      { path: "/sys/fs/cgroup/memory", controllers: ["rw", "relatime", "memory"] },
      { path: "/sys/fs/cgroup/unified", controllers: [] },
    ]);
  });

  it("finds the one hierarchy of version 2", () => {
    expect(cgroupHierarchies("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n")).toEqual([
      { path: "/sys/fs/cgroup", controllers: [] },
    ]);
  });
});
