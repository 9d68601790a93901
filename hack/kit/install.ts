import { readFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { loadImage } from "../cluster/cluster.ts";
import { runCommand } from "../cluster/run-command.ts";
import { buildImages, IMAGE_NAMES } from "../images/build-images.ts";
import type { Kube } from "./kube.ts";
import { KubeError, parseDocuments, type AnyObject } from "./kube.ts";
import { waitFor } from "./wait.ts";

export const ROOT = join(import.meta.dirname, "..", "..");
export const SYSTEM_NAMESPACE = "fairway-system";

/** Where requests for services go. */
export interface GatewayAddress {
  readonly address: string;
  readonly port: number;
}

/** Ids of the images that were put on the node, as the status of a pod shows them. */
export type LoadedImages = ReadonlySet<string>;

/** Builds the images and puts them on the local cluster's node. */
export async function loadImages(cluster: string, progress: (line: string) => void): Promise<LoadedImages> {
  const ids = new Set<string>();
  for (const image of await buildImages(IMAGE_NAMES, process.env, progress)) {
    progress(`loading ${image.ref}`);
    await loadImage(image.path, cluster);
    ids.add(await imageId(image.path));
  }
  return ids;
}

async function imageId(archive: string): Promise<string> {
  const manifest = await runCommand("tar", ["-xOf", archive, "manifest.json"], { timeoutMs: 60_000 });
  const [image] = JSON.parse(manifest) as readonly { readonly Config: string }[];
  if (image === undefined) throw new Error(`${archive}: no image in it`);
  return image.Config;
}

/**
 * Applies manifests/install.yaml as a user would, and waits until all of it is ready. Given `loaded`, pods that run
 * another build under the same tag, which the API server cannot know of, are replaced.
 */
export async function installFairway(
  kube: Kube,
  progress: (line: string) => void,
  loaded: LoadedImages | undefined,
): Promise<void> {
  progress("applying manifests/install.yaml");
  await applyInstall(kube);
  if (loaded !== undefined) await replaceOutdated(kube, loaded, progress);
  await systemReady(kube);
  progress("Fairway is ready");
}

async function replaceOutdated(kube: Kube, loaded: LoadedImages, progress: (line: string) => void): Promise<void> {
  const outdated = async (): Promise<AnyObject[]> =>
    (await kube.list("v1", "Pod", SYSTEM_NAMESPACE, "app.kubernetes.io/name=fairway")).filter(pod =>
      imageIds(pod).some(id => !loaded.has(id)),
    );
  const pods = await outdated();
  if (pods.length === 0) return;
  progress(`replacing ${pods.length} pods of an earlier build`);
  for (const { metadata } of pods) {
    await kube.delete({ apiVersion: "v1", kind: "Pod", namespace: SYSTEM_NAMESPACE, name: metadata?.name ?? "" });
  }
  await waitFor("pods of an earlier build to go", async () => (await outdated()).length === 0, { timeoutMs: 120_000 });
}

function imageIds(pod: AnyObject): string[] {
  const statuses = (pod.status?.["containerStatuses"] ?? []) as readonly { readonly imageID: string }[];
  return statuses.map(status => status.imageID).filter(id => id !== "");
}

/** Applies install.yaml; kinds whose CRD the API server does not serve yet are tried again, as `kubectl` users do. */
export async function applyInstall(kube: Kube): Promise<void> {
  for (const object of parseDocuments(await readFile(join(ROOT, "manifests", "install.yaml"), "utf8"))) {
    await waitFor(
      `${object.kind} ${object.metadata?.name} to be applied`,
      async () => {
        await kube.apply([object]);
        return true;
      },
      { timeoutMs: 30_000, everyMs: 250 },
    );
  }
}

/** Waits until operator and gateway have all replicas available at their present generation. */
export async function systemReady(kube: Kube, timeoutMs = 180_000): Promise<void> {
  for (const name of ["fairway-operator", "fairway-gateway"]) {
    await waitFor(
      `Deployment ${name} to be available`,
      async () => {
        const deployment = await kube.get({
          apiVersion: "apps/v1",
          kind: "Deployment",
          name,
          namespace: SYSTEM_NAMESPACE,
        });
        if (deployment !== undefined && rolledOut(deployment)) return true;
        throw new Error(JSON.stringify(deployment?.status));
      },
      { timeoutMs, everyMs: 200 },
    );
  }
}

function rolledOut(deployment: AnyObject): boolean {
  const wanted = deployment.spec?.["replicas"];
  const status = deployment.status ?? {};
  return (
    status["observedGeneration"] === deployment.metadata?.generation &&
    status["updatedReplicas"] === wanted &&
    status["availableReplicas"] === wanted &&
    status["replicas"] === wanted
  );
}

/** A node's address and the node port that the gateways' Service has for one of its ports: 80, or 443 with TLS. */
export async function gatewayAddress(kube: Kube, servicePort: 80 | 443 = 80): Promise<GatewayAddress> {
  const ref = { apiVersion: "v1", kind: "Service", name: "fairway-gateway", namespace: SYSTEM_NAMESPACE };
  const service = await kube.get(ref);
  const ports = (service?.spec?.["ports"] ?? []) as readonly { readonly port: number; readonly nodePort?: number }[];
  const port = ports.find(candidate => candidate.port === servicePort)?.nodePort;
  if (port === undefined) throw new KubeError(404, `Service fairway-gateway has no nodePort for port ${servicePort}`);
  const [node] = await kube.list("v1", "Node");
  const addresses = (node?.status?.["addresses"] ?? []) as readonly {
    readonly type: string;
    readonly address: string;
  }[];
  const address = addresses.find(candidate => candidate.type === "InternalIP")?.address;
  if (address === undefined) throw new KubeError(404, "no node with an InternalIP");
  return { address, port };
}
