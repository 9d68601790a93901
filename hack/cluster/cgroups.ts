import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { UnsupportedHostError } from "./prerequisites.ts";

const MOUNT_POINT = "/sys/fs/cgroup";
const REMOVE_ATTEMPTS = 50;
const REMOVE_INTERVAL_MS = 100;
/** The controllers without which the kubelet does not start. */
const REQUIRED_CONTROLLERS = ["cpu", "cpuset", "memory", "pids"];

/**
 * Makes the cluster's own cgroup, `name` below the root of each hierarchy. All containers are below it.
 * @throws UnsupportedHostError
 */
export async function makeCgroup(name: string): Promise<void> {
  const hierarchies = cgroupHierarchies(await readFile("/proc/mounts", "utf8"));
  const unified = hierarchies.find(hierarchy => hierarchy.path === MOUNT_POINT);
  try {
    const controllers =
      unified === undefined
        ? hierarchies.flatMap(hierarchy => hierarchy.controllers)
        : await enableControllers(unified.path);
    const absent = REQUIRED_CONTROLLERS.filter(controller => !controllers.includes(controller));
    if (absent.length > 0) throw new Error(`no controllers ${absent.join(", ")}`);
    for (const { path, controllers: own } of hierarchies) {
      await mkdir(join(path, name), { recursive: true });
      if (own.includes("cpuset")) await inheritCpuset(path, join(path, name));
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UnsupportedHostError(
      `the cluster's cgroup cannot be made: ${reason}. This needs a Linux host or a virtual machine, or a privileged container that may write to ${MOUNT_POINT}.`,
    );
  }
}

/** Removes the cluster's cgroup with all below it; the processes in it have been killed. */
export async function removeCgroup(name: string): Promise<void> {
  for (const { path } of cgroupHierarchies(await readFile("/proc/mounts", "utf8"))) await removeTree(join(path, name));
}

/**
 * The cgroup hierarchies of a mount table (/proc/mounts): one per group of controllers in version 1; in version 2 a
 * single one at /sys/fs/cgroup, whose controllers the table does not name.
 */
export function cgroupHierarchies(mounts: string): { path: string; controllers: string[] }[] {
  return mounts.split("\n").flatMap(line => {
    const [, path, type, options] = line.split(" ");
    if (path === undefined || (path !== MOUNT_POINT && !path.startsWith(`${MOUNT_POINT}/`))) return [];
    if (type === "cgroup") return [{ path, controllers: (options ?? "").split(",") }];
    return type === "cgroup2" ? [{ path, controllers: [] }] : [];
  });
}

/** Version 2: passes every controller on to the children of the root, and gives those that are. */
async function enableControllers(root: string): Promise<string[]> {
  const subtree = join(root, "cgroup.subtree_control");
  const available = words(await readFile(join(root, "cgroup.controllers"), "utf8"));
  const enabled = words(await readFile(subtree, "utf8"));
  for (const controller of available.filter(one => !enabled.includes(one))) await writeFile(subtree, `+${controller}`);
  return available;
}

/** Version 1: a new cpuset is empty, and takes no process until it has processors and memory. */
async function inheritCpuset(parent: string, child: string): Promise<void> {
  for (const file of ["cpuset.cpus", "cpuset.mems"]) {
    await writeFile(join(child, file), await readFile(join(parent, file), "utf8"));
  }
}

async function removeTree(path: string): Promise<void> {
  if (!existsSync(path)) return;
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await removeTree(join(path, entry.name));
  }
  for (let attempt = 1; ; attempt++) {
    try {
      await rmdir(path);
      return;
    } catch (error) {
      // The kernel lets go of a killed process's cgroup a moment later.
      if (attempt === REMOVE_ATTEMPTS) throw error;
      await delay(REMOVE_INTERVAL_MS);
    }
  }
}

function words(text: string): string[] {
  return text.split(/\s+/).filter(word => word !== "");
}
