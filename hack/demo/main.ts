import process from "node:process";
import { Command } from "commander";
import { currentCluster } from "../cluster/current-cluster.ts";
import { clusterName, downCluster, ensureCluster } from "../cluster/cluster.ts";
import { gatewayAddress, installFairway, loadImages, type LoadedImages } from "../kit/install.ts";
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
  .option("--name <name>", "the local cluster (default: FAIRWAY_CLUSTER, else fairway)")
  .option("--use-current", "use the cluster of KUBECONFIG, whose nodes have the images (npm run images -- build all)")
  .parse()
  .opts<{ once?: true; down?: true; name?: string; useCurrent?: true }>();

const begun = Date.now();
function say(line: string): void {
  console.log(`[${((Date.now() - begun) / 1000).toFixed(1).padStart(6)} s] ${line}`);
}

try {
  if (options.down === true) {
    const name = clusterName(options.name, process.env);
    say((await downCluster(name)) ? `cluster ${name} has ended` : `there is no cluster ${name} to end`);
  } else {
    const { kubeconfig, images } = await prepareCluster();
    const kube = new Kube(kubeconfig);
    await installFairway(kube, say, images);
    const gateway = await gatewayAddress(kube);
    const live = process.stdout.isTTY && options.once !== true;
    await playDemo({ kube, gateway, say, view: live ? new TableView(process.stdout) : new LineView(say) });
    console.log(nextSteps(kubeconfig, gateway));
  }
} catch (error) {
  say(`demo failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

/** The kubeconfig of the cluster to use, and the images that were put on it where that is ours to do. */
async function prepareCluster(): Promise<{ readonly kubeconfig: string; readonly images?: LoadedImages }> {
  if (options.useCurrent === true) return { kubeconfig: currentCluster(process.env).kubeconfigPath };
  const cluster = await ensureCluster({ name: clusterName(options.name, process.env), progress: say });
  return { kubeconfig: cluster.kubeconfigPath, images: await loadImages(cluster.name, say) };
}
