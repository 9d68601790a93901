import process from "node:process";
import type { TestProject } from "vitest/node";
import { downCluster, ensureCluster } from "../../hack/cluster/cluster.ts";
import { install } from "../../hack/kit/install.ts";

declare module "vitest" {
  export interface ProvidedContext {
    kubeconfigPath: string;
    clusterName: string;
    gateway: { address: string; port: number };
  }
}

/**
 * One cluster for all end-to-end tests, with Fairway installed as a user would. `FAIRWAY_E2E_CLUSTER=NAME` uses, and
 * leaves running, a cluster of that name; otherwise the cluster ends with this process.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const kept = process.env["FAIRWAY_E2E_CLUSTER"];
  const name = kept ?? "fairway-e2e";
  const progress = (line: string): void => console.log(`e2e: ${line}`);
  const cluster = await ensureCluster({ name, dieWithParent: kept === undefined, progress });
  const { gateway } = await install(cluster, progress);
  project.provide("kubeconfigPath", cluster.kubeconfigPath);
  project.provide("clusterName", cluster.name);
  project.provide("gateway", gateway);
  return async () => {
    if (kept === undefined) await downCluster(name);
  };
}
