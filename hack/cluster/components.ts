import { readdir, readFile } from "node:fs/promises";
import { ClusterAbsentError, type ComponentState } from "./cluster.ts";
import { findBox } from "./box.ts";
import { clusterPaths } from "./paths.ts";

/** How each component of a running cluster is, by name; the process ids are those inside the box. */
export async function componentStates(cluster: string): Promise<Readonly<Record<string, ComponentState>>> {
  return JSON.parse(await readFile(clusterPaths(cluster).componentStates, "utf8")) as Record<string, ComponentState>;
}

/**
 * Sends a signal to one component, such as `kube-apiserver`, and to nothing else. One that ends is started again by the box.
 * @throws ClusterAbsentError, or Error when the component is not running
 */
export async function signalComponent(cluster: string, component: string, signal: NodeJS.Signals): Promise<void> {
  const box = await findBox(clusterPaths(cluster));
  if (box === undefined) throw new ClusterAbsentError(`cluster ${cluster} is not running`);
  const inside = (await componentStates(cluster))[component]?.pid ?? 0;
  for (const pid of (await readdir("/proc")).filter(entry => /^\d+$/.test(entry))) {
    const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
    const parent = Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]);
    const innermost = Number(/^NSpid:.*\s(\d+)$/m.exec(status)?.[1]);
    if (parent !== box.initPid || innermost !== inside) continue;
    process.kill(Number(pid), signal);
    return;
  }
  throw new Error(`component ${component} of cluster ${cluster}: no process ${inside} below ${box.initPid}`);
}
