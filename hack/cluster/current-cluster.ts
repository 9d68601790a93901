import { KubeConfig, VersionApi } from "@kubernetes/client-node";

/** The cluster of the user's own kubeconfig, which this tool uses and never changes. */
export interface CurrentCluster {
  readonly context: string;
  readonly server: string;
  readonly kubeconfigPath: string;
}

export class NoCurrentClusterError extends Error {
  readonly code = "NO_CURRENT_CLUSTER";
}

/** @throws NoCurrentClusterError when KUBECONFIG is not set or names no current context */
export function currentCluster(env: NodeJS.ProcessEnv): CurrentCluster {
  const kubeconfigPath = env["KUBECONFIG"];
  if (kubeconfigPath === undefined || kubeconfigPath === "") {
    throw new NoCurrentClusterError(
      "--use-current: KUBECONFIG is not set; set it to the kubeconfig of the cluster to use",
    );
  }
  const config = load(kubeconfigPath);
  const server = config.getCurrentCluster()?.server;
  if (server === undefined) {
    throw new NoCurrentClusterError(`--use-current: ${kubeconfigPath} has no current context with a cluster`);
  }
  return { context: config.getCurrentContext(), server, kubeconfigPath };
}

/**
 * Asks the cluster for its version, to see that it can be reached.
 * @throws NoCurrentClusterError
 */
export async function reachCurrentCluster(cluster: CurrentCluster): Promise<string> {
  try {
    return (await load(cluster.kubeconfigPath).makeApiClient(VersionApi).getCode()).gitVersion;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new NoCurrentClusterError(`context ${cluster.context} (${cluster.server}) cannot be reached: ${reason}`);
  }
}

/** How to bring an image from a file into the common kinds of clusters. */
export function loadAdvice(cluster: CurrentCluster, tar: string): string {
  return (
    `images of context ${cluster.context} are not this tool's to load. Load ${tar} by the cluster's own means:\n` +
    `  kind:     kind load image-archive ${tar}\n` +
    `  minikube: minikube image load ${tar}\n` +
    `  k3d:      k3d image import ${tar}\n` +
    `or push it to a registry that the cluster pulls from.`
  );
}

function load(kubeconfigPath: string): KubeConfig {
  const config = new KubeConfig();
  try {
    config.loadFromFile(kubeconfigPath);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new NoCurrentClusterError(`${kubeconfigPath}: ${reason}`);
  }
  return config;
}
