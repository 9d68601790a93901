import { parseArguments, type Request } from "./arguments.ts";
import {
  ClusterAbsentError,
  clusterName,
  clusterStatus,
  downCluster,
  ensureCluster,
  findCluster,
  loadImage,
  type ClusterStatus,
} from "./cluster.ts";
import { currentCluster, loadAdvice, reachCurrentCluster } from "./current-cluster.ts";
import { requireSupportedHost } from "./prerequisites.ts";
import { runCommand } from "./run-command.ts";
import { join } from "node:path";

const KUBECTL_TIMEOUT_MS = 30_000;

/** Progress goes to standard error, so that standard output is only the answer. */
const progress = (line: string): void => console.error(line);

async function main(): Promise<number> {
  const request = parseArguments(process.argv.slice(2), clusterName(undefined, process.env));
  return request.target.kind === "current" ? withCurrent(request) : withLocal(request, request.target.name);
}

async function withLocal(request: Request, name: string): Promise<number> {
  requireSupportedHost(process.platform, process.getuid?.());
  switch (request.command) {
    case "up": {
      const { parentPid } = request;
      const cluster = await ensureCluster({ name, progress, ...(parentPid === undefined ? {} : { parentPid }) });
      console.log(`export KUBECONFIG=${cluster.kubeconfigPath}`);
      progress(`node ports are at ${cluster.nodeIp}; kubectl is ${join(cluster.binaries, "kubectl")}`);
      return 0;
    }
    case "down":
      progress((await downCluster(name)) ? `cluster ${name} is gone` : `there is no cluster ${name}`);
      return 0;
    case "status":
      return showStatus(await clusterStatus(name));
    case "kubeconfig": {
      const cluster = await findCluster(name);
      if (cluster === undefined) throw new ClusterAbsentError(`cluster ${name} is not running: npm run cluster -- up`);
      console.log(cluster.kubeconfigPath);
      return 0;
    }
    case "load":
      for (const image of await loadImage(request.tar, name)) console.log(image);
      return 0;
  }
}

async function withCurrent(request: Request): Promise<number> {
  const cluster = currentCluster(process.env);
  switch (request.command) {
    case "up":
    case "status": {
      const version = await reachCurrentCluster(cluster);
      console.log(`context ${cluster.context} (${cluster.server}) answers: Kubernetes ${version}`);
      return 0;
    }
    case "down":
      progress(`context ${cluster.context} is not this tool's to end; nothing was changed`);
      return 0;
    case "kubeconfig":
      console.log(cluster.kubeconfigPath);
      return 0;
    case "load":
      progress(loadAdvice(cluster, request.tar));
      return 1;
  }
}

async function showStatus(status: ClusterStatus): Promise<number> {
  switch (status.kind) {
    case "absent":
      console.log(`cluster ${status.name}: none. Make it: npm run cluster -- up`);
      return 1;
    case "crashed":
      console.log(`cluster ${status.name}: not running, but its state is there (logs: ${status.logs})`);
      console.log("Make it anew: npm run cluster -- up");
      return 1;
    case "running": {
      const { cluster, checks } = status;
      console.log(`cluster ${status.name}: process ${status.launcherPid} (its end ends everything)`);
      for (const [what, problem] of checks) console.log(`  ${what}: ${problem ?? "ok"}`);
      for (const [component, { restarts, lastExit }] of Object.entries(status.components)) {
        if (restarts > 0) console.log(`  ${component}: restarted ${restarts} times, last after ${lastExit ?? "?"}`);
      }
      console.log(
        `  node IP:    ${cluster.nodeIp}\n  kubeconfig: ${cluster.kubeconfigPath}\n  logs:       ${status.logs}`,
      );
      const kubectl = ["--kubeconfig", cluster.kubeconfigPath, "get", "nodes,pods", "--all-namespaces", "-o", "wide"];
      console.log(await runCommand(join(cluster.binaries, "kubectl"), kubectl, { timeoutMs: KUBECTL_TIMEOUT_MS }));
      return [...checks.values()].every(problem => problem === undefined) ? 0 : 1;
    }
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`cluster: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
