import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, inject } from "vitest";
import { downCluster } from "../../hack/cluster/cluster.ts";
import { ROOT } from "../../hack/kit/install.ts";
import { Kube, type AnyObject, type Ref } from "../../hack/kit/kube.ts";
import { send, type Answer, type RequestOptions, type Target } from "../../hack/kit/load.ts";
import { waitFor } from "../../hack/kit/wait.ts";
import { startTestCluster, type TestCluster } from "./cluster.ts";

const version = (JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string }).version;
export const SAMPLE_IMAGE = `fairway.dev/sample:${version}`;
export const SERVING = "serving.knative.dev/v1";

let own: TestCluster | undefined;

/** The cluster of this file's tests: the shared one, or its own. */
export function cluster(): TestCluster {
  return own ?? inject("cluster");
}

/** Names of clusters beside the shared one begin with its name: two runs on one machine do not meet. */
export function ownClusterName(name: string): string {
  return `${inject("cluster").clusterName}-${name}`;
}

/**
 * A cluster of the test file's own, for what would disturb other files that run at the same time. Call it before `ownNamespace`.
 * It ends with the file's tests.
 */
export function ownCluster(name: string): void {
  const clusterName = ownClusterName(name);
  beforeAll(async () => {
    await downCluster(clusterName);
    const progress = (line: string): void => console.log(`${name}: ${line}`);
    own = await startTestCluster({ name: clusterName, dieWithParent: true, progress });
  });
  afterAll(() => downCluster(clusterName));
}

const clients = new Map<string, Kube>();

/** The client of the cluster; it keeps its connections. */
export function kube(): Kube {
  const { kubeconfigPath } = cluster();
  const client = clients.get(kubeconfigPath) ?? new Kube(kubeconfigPath);
  clients.set(kubeconfigPath, client);
  return client;
}

/**
 * A namespace of the test file's own, made before its tests and deleted after them. Its pods have to go soon; the namespace
 * itself follows when Kubernetes looks again, which is after half of the longest grace period that its pods were given.
 */
export function ownNamespace(prefix: string): string {
  const name = `${prefix}-${Date.now().toString(36)}`;
  const ref: Ref = { apiVersion: "v1", kind: "Namespace", name };
  beforeAll(() => kube().create({ apiVersion: "v1", kind: "Namespace", metadata: { name } }));
  afterAll(async () => {
    await kube().delete(ref);
    await waitForNoPods(name, undefined, 120_000);
  });
  return name;
}

/** Names of objects by what they are for: unused ones also when the test is tried again, which finds those of its first try. */
export function freshNames(): (purpose: string) => string {
  const uses = new Map<string, number>();
  return purpose => {
    const use = (uses.get(purpose) ?? 0) + 1;
    uses.set(purpose, use);
    return use === 1 ? purpose : `${purpose}-try-${use}`;
  };
}

/** Waits until no pod that the selector matches is left; its grace period (300 s) must not be what ends it. */
export async function waitForNoPods(namespace: string, labelSelector?: string, timeoutMs = 90_000): Promise<void> {
  await waitFor(
    `pods of ${namespace} ${labelSelector ?? ""} to go`,
    async () => {
      const pods = await kube().list("v1", "Pod", namespace, labelSelector);
      if (pods.length === 0) return true;
      throw new Error(pods.map(pod => pod.metadata?.name).join(", "));
    },
    { timeoutMs },
  );
}

export interface ServiceOptions {
  readonly annotations?: Readonly<Record<string, string>>;
  /** On the Service itself. */
  readonly metadata?: {
    readonly annotations?: Readonly<Record<string, string>>;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly env?: Readonly<Record<string, string>>;
  readonly image?: string;
  readonly containerConcurrency?: number;
  readonly timeoutSeconds?: number;
  readonly container?: Readonly<Record<string, unknown>>;
  /** Further fields of the template's spec. */
  readonly pod?: Readonly<Record<string, unknown>>;
  readonly spec?: Readonly<Record<string, unknown>>;
}

/** A Service of the sample server, as a user would write it. */
export function service(namespace: string, name: string, options: ServiceOptions = {}): AnyObject {
  return {
    apiVersion: SERVING,
    kind: "Service",
    metadata: { name, namespace, ...options.metadata },
    spec: {
      template: {
        metadata: { annotations: { ...options.annotations } },
        spec: {
          ...(options.containerConcurrency === undefined ? {} : { containerConcurrency: options.containerConcurrency }),
          ...(options.timeoutSeconds === undefined ? {} : { timeoutSeconds: options.timeoutSeconds }),
          ...options.pod,
          containers: [
            {
              image: options.image ?? SAMPLE_IMAGE,
              env: Object.entries(options.env ?? {}).map(([key, value]) => ({ name: key, value })),
              resources: { requests: { cpu: "5m", memory: "16Mi" } },
              ...options.container,
            },
          ],
        },
      },
      ...options.spec,
    },
  };
}

export function serviceRef(namespace: string, name: string): Ref {
  return { apiVersion: SERVING, kind: "Service", namespace, name };
}

/** Applies a Service and waits until it is Ready. */
export async function applyReady(object: AnyObject, timeoutMs = 90_000): Promise<AnyObject> {
  await kube().apply([object]);
  const { name, namespace } = object.metadata ?? {};
  return kube().waitForCondition(serviceRef(namespace ?? "", name ?? ""), "Ready", "True", timeoutMs);
}

/** How the gateway is reached for a service: by the host of its URL. */
export function target(namespace: string, name: string): Target {
  return { ...cluster().gateway, host: `${name}.${namespace}.example.com` };
}

export function request(namespace: string, name: string, options: RequestOptions = {}): Promise<Answer> {
  return send(target(namespace, name), options);
}

/** The revision's Deployment has so many replicas wanted. */
export async function replicas(namespace: string, revision: string): Promise<number | undefined> {
  const deployment = await kube().get({
    apiVersion: "apps/v1",
    kind: "Deployment",
    namespace,
    name: `${revision}-deployment`,
  });
  return deployment?.spec?.["replicas"] as number | undefined;
}

export async function waitForReplicas(
  namespace: string,
  revision: string,
  matches: (count: number) => boolean,
  timeoutMs = 90_000,
): Promise<number> {
  return waitFor(
    `replicas of ${revision}`,
    async () => {
      const count = await replicas(namespace, revision);
      if (count !== undefined && matches(count)) return { count };
      throw new Error(`${count} replicas`);
    },
    { timeoutMs },
  ).then(found => found.count);
}

export function latestReadyRevision(object: AnyObject): string {
  const name = object.status?.["latestReadyRevisionName"];
  if (typeof name !== "string") throw new Error(`no latestReadyRevisionName in ${JSON.stringify(object.status)}`);
  return name;
}
