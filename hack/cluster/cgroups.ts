import { constants, accessSync, existsSync, readFileSync } from "node:fs";
import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const MOUNT_POINT = "/sys/fs/cgroup";
const REMOVE_ATTEMPTS = 50;
const REMOVE_INTERVAL_MS = 100;
/** The controllers without which the kubelet refuses to keep pods in cgroups. */
const REQUIRED_CONTROLLERS = ["cpu", "cpuacct", "cpuset", "memory", "pids"];

/**
 * How containers are accounted for: in cgroups below one of the cluster's own, with enforced limits and metrics; or,
 * where cgroups cannot be made, not at all (limits are then accepted and not enforced, and there are no CPU metrics).
 */
export type CgroupSupport =
  | { readonly kind: "v1"; readonly hierarchies: readonly string[] }
  | { readonly kind: "v2" }
  | { readonly kind: "none"; readonly reason: string };

export function detectCgroups(): CgroupSupport {
  if (existsSync(join(MOUNT_POINT, "cgroup.controllers"))) {
    return isWritable(MOUNT_POINT) ? { kind: "v2" } : { kind: "none", reason: `${MOUNT_POINT} is read-only` };
  }
  const mounted = v1Hierarchies(readFileSync("/proc/mounts", "utf8"));
  const present = new Set(mounted.flatMap(hierarchy => hierarchy.controllers));
  const absent = REQUIRED_CONTROLLERS.filter(controller => !present.has(controller));
  if (absent.length > 0) return { kind: "none", reason: `no cgroup controllers ${absent.join(", ")}` };
  const readOnly = mounted.find(hierarchy => !isWritable(hierarchy.path));
  if (readOnly !== undefined) return { kind: "none", reason: `${readOnly.path} is read-only` };
  return { kind: "v1", hierarchies: mounted.map(hierarchy => hierarchy.path) };
}

/** The cgroup v1 hierarchies of a mount table (/proc/mounts). */
export function v1Hierarchies(mounts: string): { path: string; controllers: string[] }[] {
  return mounts
    .split("\n")
    .map(line => line.split(" "))
    .filter(([, path, type]) => type === "cgroup" && path?.startsWith(`${MOUNT_POINT}/`))
    .map(([, path, , options]) => ({ path: path ?? "", controllers: (options ?? "").split(",") }));
}

/** Makes the cluster's own cgroup; `name` is its path below the root. */
export async function makeCgroup(support: CgroupSupport, name: string): Promise<void> {
  switch (support.kind) {
    case "none":
      return;
    case "v2": {
      const available = (await readFile(join(MOUNT_POINT, "cgroup.controllers"), "utf8")).trim().split(/\s+/);
      const enable = available.map(controller => `+${controller}`).join(" ");
      await writeFile(join(MOUNT_POINT, "cgroup.subtree_control"), enable);
      await mkdir(join(MOUNT_POINT, name), { recursive: true });
      return;
    }
    case "v1":
      for (const hierarchy of support.hierarchies) {
        const path = join(hierarchy, name);
        await mkdir(path, { recursive: true });
        if (!existsSync(join(path, "cpuset.cpus"))) continue;
        for (const file of ["cpuset.cpus", "cpuset.mems"]) {
          await writeFile(join(path, file), await readFile(join(hierarchy, file), "utf8"));
        }
      }
  }
}

/** Removes the cluster's cgroup with all below it; the processes in it have just been killed. */
export async function removeCgroup(support: CgroupSupport, name: string): Promise<void> {
  const roots = support.kind === "v1" ? support.hierarchies : support.kind === "v2" ? [MOUNT_POINT] : [];
  for (const root of roots) await removeTree(join(root, name));
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
      if (attempt === REMOVE_ATTEMPTS) throw error;
      await delay(REMOVE_INTERVAL_MS);
    }
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
