import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { downCluster, ensureCluster, type Cluster } from "../../hack/cluster/cluster.ts";
import { runCommand } from "../../hack/cluster/run-command.ts";
import { installFairway, loadImages, ROOT, SYSTEM_NAMESPACE } from "../../hack/kit/install.ts";
import { Kube } from "../../hack/kit/kube.ts";
import { waitFor } from "../../hack/kit/wait.ts";
import { ownClusterName, service, serviceRef } from "./support.ts";

/** A cluster of its own: what is taken away here the other tests need. */
const CLUSTER = ownClusterName("uninstall");
const INSTALL = join(ROOT, "manifests", "install.yaml");
const USERS = "users";

/** Kinds a cluster has with and without Fairway, in which it must leave nothing. */
const CLUSTER_KINDS = [
  ["apiextensions.k8s.io/v1", "CustomResourceDefinition"],
  ["rbac.authorization.k8s.io/v1", "ClusterRole"],
  ["rbac.authorization.k8s.io/v1", "ClusterRoleBinding"],
  ["admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"],
  ["admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"],
  ["v1", "Namespace"],
] as const;
const NAMESPACED_KINDS = [
  ["apps/v1", "Deployment"],
  ["apps/v1", "ReplicaSet"],
  ["v1", "Pod"],
  ["v1", "Service"],
  ["v1", "ConfigMap"],
  ["v1", "Secret"],
  ["v1", "ServiceAccount"],
  ["discovery.k8s.io/v1", "EndpointSlice"],
  ["coordination.k8s.io/v1", "Lease"],
  ["policy/v1", "PodDisruptionBudget"],
  ["rbac.authorization.k8s.io/v1", "Role"],
  ["rbac.authorization.k8s.io/v1", "RoleBinding"],
] as const;

describe("uninstalling", () => {
  let cluster: Cluster;
  let kube: Kube;
  beforeAll(async () => {
    const progress = (line: string): void => console.log(`uninstall: ${line}`);
    await downCluster(CLUSTER);
    cluster = await ensureCluster({ name: CLUSTER, dieWithParent: true, progress });
    kube = new Kube(cluster.kubeconfigPath);
    await loadImages(CLUSTER, progress);
  });
  afterAll(() => downCluster(CLUSTER));

  const kubectl = (...args: string[]): Promise<string> =>
    runCommand(join(cluster.binaries, "kubectl"), ["--kubeconfig", cluster.kubeconfigPath, ...args], {
      timeoutMs: 420_000,
    });

  /** All there is, but for what Kubernetes keeps for itself. */
  async function everything(): Promise<string[]> {
    const found: string[] = [];
    for (const [apiVersion, kind] of [...CLUSTER_KINDS, ...NAMESPACED_KINDS]) {
      const objects = await kube.list(apiVersion, kind);
      for (const { metadata } of objects.filter(object => object.metadata?.namespace?.startsWith("kube-") !== true))
        found.push(`${kind} ${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`);
    }
    return found;
  }

  it("by deleting install.yaml leaves nothing but what users made", { timeout: 900_000, retry: 0 }, async () => {
    await kube.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: USERS } });
    const config = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "mine", namespace: USERS } };
    await kube.create(config);
    await waitFor("the namespace's own objects", async () => (await kube.list("v1", "ServiceAccount", USERS)).length);
    await waitFor("root certificates", async () => (await kube.list("v1", "ConfigMap", USERS)).length === 2);
    const before = await everything();

    await installFairway(kube, line => console.log(`uninstall: ${line}`), undefined);
    // Kubernetes' garbage collector takes up new kinds within a minute; what it does not know yet it never collects.
    await kube.apply([service(USERS, "first")]);
    await kube.waitForCondition(serviceRef(USERS, "first"), "Ready", "True", 120_000);
    await kube.delete(serviceRef(USERS, "first"));
    const deployments = (): Promise<unknown[]> => kube.list("apps/v1", "Deployment", USERS);
    await waitFor("the first service's Deployment to go", async () => (await deployments()).length === 0, {
      timeoutMs: 180_000,
      everyMs: 500,
    });

    await kube.apply([service(USERS, "hello"), service(USERS, "absent", { image: "registry.invalid/nobody/none:1" })]);
    await kube.waitForCondition(serviceRef(USERS, "hello"), "Ready", "True", 120_000);
    await kube.waitForCondition(serviceRef(USERS, "absent"), "Ready", "False", 120_000);

    const deleted = await kubectl("delete", "-f", INSTALL, "--ignore-not-found", "--timeout=400s");
    expect(deleted).toContain(`namespace "${SYSTEM_NAMESPACE}" deleted`);
    await waitFor(
      "all of Fairway to go",
      async () => {
        const left = (await everything()).filter(object => !before.includes(object));
        if (left.length > 0) throw new Error(left.join(", "));
        return true;
      },
      { timeoutMs: 120_000, everyMs: 500 },
    );
    expect((await everything()).sort()).toEqual(before.sort());
  });
});
