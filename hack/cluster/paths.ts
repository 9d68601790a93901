import { homedir } from "node:os";
import { join } from "node:path";

const CLUSTERS_DIRECTORY = "/var/lib/fairway-cluster";
const NAME_PATTERN = /^[a-z]([a-z0-9-]{0,28}[a-z0-9])?$/;

/** Where everything of one cluster is, all of it outside the source tree. */
export interface ClusterPaths {
  readonly state: string;
  readonly record: string;
  readonly plan: string;
  readonly boxPid: string;
  readonly componentStates: string;
  /** Exists once the objects of config/system.yaml do. */
  readonly systemReady: string;
  readonly kubeconfig: string;
  readonly pki: string;
  readonly config: string;
  readonly logs: string;
  readonly boxLog: string;
  readonly etcd: string;
  readonly kubelet: string;
  readonly varLog: string;
  readonly containerd: string;
  readonly containerdSocket: string;
}

export class InvalidClusterNameError extends Error {
  readonly code = "INVALID_CLUSTER_NAME";
}

export function clustersDirectory(): string {
  return CLUSTERS_DIRECTORY;
}

/** @throws InvalidClusterNameError unless the name can be a node's name and a part of a socket's path */
export function clusterPaths(name: string): ClusterPaths {
  if (!NAME_PATTERN.test(name)) {
    throw new InvalidClusterNameError(
      `cluster name "${name}": must be 1 to 30 of a-z, 0-9 and -, start with a letter and not end with -`,
    );
  }
  const state = join(CLUSTERS_DIRECTORY, name);
  return {
    state,
    record: join(state, "cluster.json"),
    plan: join(state, "plan.json"),
    boxPid: join(state, "box.pid"),
    componentStates: join(state, "components.json"),
    systemReady: join(state, "system-ready"),
    kubeconfig: join(state, "kubeconfig"),
    pki: join(state, "pki"),
    config: join(state, "config"),
    logs: join(state, "logs"),
    boxLog: join(state, "logs", "box.log"),
    etcd: join(state, "etcd"),
    kubelet: join(state, "kubelet"),
    varLog: join(state, "var-log"),
    containerd: join(state, "containerd"),
    containerdSocket: join(state, "containerd.sock"),
  };
}

/** Where built programs are kept, one directory per version: `$XDG_CACHE_HOME/fairway/cluster`. */
export function binariesDirectory(env: NodeJS.ProcessEnv): string {
  const cache = env["XDG_CACHE_HOME"];
  return join(cache === undefined || cache === "" ? join(homedir(), ".cache") : cache, "fairway", "cluster");
}
