import { ensureCluster } from "../../hack/cluster/cluster.ts";
import { gatewayAddress, installFairway, loadImages, type GatewayAddress } from "../../hack/kit/install.ts";
import { Kube } from "../../hack/kit/kube.ts";

/** A cluster with Fairway on it, as the tests use it. */
export interface TestCluster {
  readonly clusterName: string;
  readonly kubeconfigPath: string;
  readonly gateway: GatewayAddress;
}

/** Environment variable with the TestCluster, as JSON, that whoever started the tests made ready for them. */
export const PREPARED_CLUSTER = "FAIRWAY_E2E_PREPARED";

/** The way to zero is tested often: its grace period is shortened. */
const SHORT_GRACE = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "config-autoscaler", namespace: "fairway-system" },
  data: { "scale-to-zero-grace-period": "6s", "allow-zero-initial-scale": "true" },
};

export interface TestClusterOptions {
  readonly name: string;
  /** A new cluster ends with this process. */
  readonly dieWithParent: boolean;
  readonly progress: (line: string) => void;
}

/** Finds or makes the cluster, and installs Fairway of this tree as a user would. */
export async function startTestCluster({ name, dieWithParent, progress }: TestClusterOptions): Promise<TestCluster> {
  const cluster = await ensureCluster({ name, dieWithParent, progress });
  const images = await loadImages(cluster.name, progress);
  const kube = new Kube(cluster.kubeconfigPath);
  await installFairway(kube, progress, images);
  await kube.apply([SHORT_GRACE]);
  return {
    clusterName: cluster.name,
    kubeconfigPath: cluster.kubeconfigPath,
    gateway: await gatewayAddress(kube),
  };
}
