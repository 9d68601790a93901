import process from "node:process";
import type { TestProject } from "vitest/node";
import { downCluster, ensureCluster } from "../../hack/cluster/cluster.ts";
import { gatewayAddress, installFairway, loadImages } from "../../hack/kit/install.ts";
import { Kube } from "../../hack/kit/kube.ts";

declare module "vitest" {
  export interface ProvidedContext {
    kubeconfigPath: string;
    clusterName: string;
    gateway: { address: string; port: number };
  }
}

/** The way to zero is tested often: its grace period is shortened. */
const SHORT_GRACE = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "config-autoscaler", namespace: "fairway-system" },
  data: { "scale-to-zero-grace-period": "6s", "allow-zero-initial-scale": "true" },
};

/**
 * One cluster for all end-to-end tests, with Fairway installed as a user would. `FAIRWAY_E2E_CLUSTER=NAME` uses, and
 * leaves running, a cluster of that name; otherwise the cluster ends with this process.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const kept = process.env["FAIRWAY_E2E_CLUSTER"];
  const name = kept ?? "fairway-e2e";
  const progress = (line: string): void => console.log(`e2e: ${line}`);
  const cluster = await ensureCluster({ name, dieWithParent: kept === undefined, progress });
  const images = await loadImages(cluster.name, progress);
  const kube = new Kube(cluster.kubeconfigPath);
  await installFairway(kube, progress, images);
  await kube.apply([SHORT_GRACE]);
  project.provide("kubeconfigPath", cluster.kubeconfigPath);
  project.provide("clusterName", cluster.name);
  project.provide("gateway", await gatewayAddress(kube));
  return async () => {
    if (kept === undefined) await downCluster(name);
  };
}
