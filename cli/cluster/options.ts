import type { Command } from "commander";
import type { ConnectionOptions } from "./cluster-api.ts";

/** The options of every command that talks to a cluster; they stand before or after its name. */
export interface ClusterOptions extends ConnectionOptions {
  readonly systemNamespace: string;
}

export function addClusterOptions(program: Command): Command {
  return program
    .option("--kubeconfig <file>", "kubeconfig to use (default: $KUBECONFIG, ~/.kube/config, or the pod's own)")
    .option("--context <name>", "context of the kubeconfig (default: its current one)")
    .option("-n, --namespace <name>", "namespace (default: the context's)")
    .option("--system-namespace <name>", "where Fairway is installed", "fairway-system");
}

/** The options of a command with those of the program. */
export const clusterOptionsOf = (command: Command): ClusterOptions => command.optsWithGlobals<ClusterOptions>();
