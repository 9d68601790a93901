import process from "node:process";
import type { TestProject } from "vitest/node";
import { downCluster } from "../../hack/cluster/cluster.ts";
import { PREPARED_CLUSTER, startTestCluster, type TestCluster } from "./cluster.ts";

declare module "vitest" {
  export interface ProvidedContext {
    cluster: TestCluster;
  }
}

/** Both projects of end-to-end tests are set up in one process, each with its own copy of this module. */
const shared = globalThis as { fairwayTestCluster?: Promise<TestCluster> };

/**
 * One cluster for all end-to-end tests but those that need their own, with Fairway installed as a user would.
 * `FAIRWAY_E2E_CLUSTER=NAME` uses, and leaves running, a cluster of that name; otherwise the cluster ends with this process.
 */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const prepared = process.env[PREPARED_CLUSTER];
  if (prepared !== undefined) {
    project.provide("cluster", JSON.parse(prepared) as TestCluster);
    return undefined;
  }
  const kept = process.env["FAIRWAY_E2E_CLUSTER"];
  const name = kept ?? "fairway-e2e";
  shared.fairwayTestCluster ??= startTestCluster({
    name,
    dieWithParent: kept === undefined,
    progress: line => console.log(`e2e: ${line}`),
  });
  project.provide("cluster", await shared.fairwayTestCluster);
  return async () => {
    if (kept === undefined) await downCluster(name);
  };
}
