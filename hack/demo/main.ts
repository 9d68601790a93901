import process from "node:process";
import { Command } from "commander";
import { currentCluster } from "../cluster/current-cluster.ts";
import { DEFAULT_CLUSTER_NAME, downCluster, ensureCluster } from "../cluster/cluster.ts";
import { gatewayAddress, installFairway, loadImages } from "../kit/install.ts";
import { Kube } from "../kit/kube.ts";
import { nextSteps } from "./next-steps.ts";
import { playDemo } from "./play.ts";
import { LineView, TableView } from "./view.ts";

/**
 * `npm run demo`: a real cluster, Fairway on it, one service from nothing to load and back to nothing, watched live.
 * Exits 0 only when every stage was really observed.
 */
const options = new Command("npm run demo --")
  .description("Brings up a local Kubernetes, installs Fairway, and shows a service scale from zero to many and back.")
  .option("--once", "print lines, and end after the stages; as without a terminal")
  .option("--down", "end the demo's cluster and everything on it")
  .option("--use-current", "use the cluster of KUBECONFIG, whose nodes have the images (npm run images -- build all)")
  .parse()
  .opts<{ once?: true; down?: true; useCurrent?: true }>();

const begun = Date.now();
function say(line: string): void {
  console.log(`[${((Date.now() - begun) / 1000).toFixed(1).padStart(6)} s] ${line}`);
}

try {
  if (options.down === true) {
    say((await downCluster(DEFAULT_CLUSTER_NAME)) ? "the demo's cluster has ended" : "there is no cluster to end");
  } else {
    const kubeconfig = await prepareCluster();
    const kube = new Kube(kubeconfig);
    await installFairway(kube, say);
    const gateway = await gatewayAddress(kube);
    const live = process.stdout.isTTY && options.once !== true;
    await playDemo({ kube, gateway, say, view: live ? new TableView(process.stdout) : new LineView(say) });
    console.log(nextSteps(kubeconfig, gateway));
  }
} catch (error) {
  say(`demo failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

/** The kubeconfig of the cluster to use, with the images on it where that is ours to do. */
async function prepareCluster(): Promise<string> {
  if (options.useCurrent === true) return currentCluster(process.env).kubeconfigPath;
  const cluster = await ensureCluster({ progress: say });
  await loadImages(cluster.name, say);
  return cluster.kubeconfigPath;
}
