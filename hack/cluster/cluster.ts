import { existsSync, createReadStream } from "node:fs";
import { mkdir, readFile, readdir, rm, statfs, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { addressPlan, freeAddressPlan, routedRanges, type AddressPlan } from "./address-plan.ts";
import { ensureBinaries } from "./binaries.ts";
import { awaitLinkGone, endBox, findBox, launchBox, linkExists } from "./box.ts";
import { boxPlan } from "./box-plan.ts";
import { makeCgroup, removeCgroup } from "./cgroups.ts";
import { CLIENTS, configFiles, kubeconfig, type Client } from "./config-files.ts";
import { importedImageNames } from "./image-names.ts";
import { withLock } from "./lock.ts";
import { writePauseImage } from "./pause-image.ts";
import { clusterPaths, clustersDirectory, type ClusterPaths } from "./paths.ts";
import { ensureSystemPrograms, requireSupportedHost } from "./prerequisites.ts";
import { apiCheck, awaitCheck, NotReadyError, tryProbe, usableChecks, type ApiAccess } from "./readiness.ts";
import { runCommand } from "./run-command.ts";

export const DEFAULT_CLUSTER_NAME = "fairway";

const LOCK_TIMEOUT_MS = 10 * 60_000;
const READY_TIMEOUT_MS = 90_000;
const ANSWER_TIMEOUT_MS = 30_000;
const COMMAND_TIMEOUT_MS = 60_000;
const LOAD_TIMEOUT_MS = 5 * 60_000;
const SHOWN_LOG_LINES = 20;
/** statfs types on which the kernel refuses to stack one more overlay. */
const OVERLAY_FILE_SYSTEM = 0x794c7630;

export interface EnsureOptions {
  /** Default: `FAIRWAY_CLUSTER`, else `fairway`. */
  readonly name?: string;
  /** A new cluster ends when this process does, even by SIGKILL. A cluster that is found running is left as it is. */
  readonly dieWithParent?: boolean;
  /** Like `dieWithParent`, for another process than this one. */
  readonly parentPid?: number;
  readonly env?: NodeJS.ProcessEnv;
  readonly progress?: (line: string) => void;
}

export interface Cluster {
  readonly name: string;
  readonly kubeconfigPath: string;
  readonly nodeIp: string;
  /** Directory of the programs, kubectl among them. */
  readonly binaries: string;
  /** Whether this call made it. */
  readonly created: boolean;
}

export type ClusterStatus =
  | { readonly kind: "absent"; readonly name: string }
  | { readonly kind: "crashed"; readonly name: string; readonly logs: string }
  | {
      readonly kind: "running";
      readonly name: string;
      readonly cluster: Cluster;
      readonly launcherPid: number;
      readonly logs: string;
      /** Each condition of a usable cluster: undefined when it holds, else what is the case instead. */
      readonly checks: ReadonlyMap<string, string | undefined>;
      readonly components: Readonly<Record<string, ComponentState>>;
    };

/** How often a component of a box ended and was started again; see node/box/supervise.go. */
export interface ComponentState {
  readonly pid: number;
  readonly restarts: number;
  readonly lastExit?: string;
}

export class ClusterAbsentError extends Error {
  readonly code = "CLUSTER_ABSENT";
}

interface ClusterRecord {
  readonly index: number;
  readonly binaries: string;
}

export function clusterName(name: string | undefined, env: NodeJS.ProcessEnv): string {
  return name ?? (env["FAIRWAY_CLUSTER"] || DEFAULT_CLUSTER_NAME);
}

/**
 * Finds the cluster of this name running, or makes it; what a crashed one left is removed first.
 * @throws UnsupportedHostError, BuildFailedError, or NotReadyError with the end of the log that explains it
 */
export async function ensureCluster(options: EnsureOptions = {}): Promise<Cluster> {
  const env = options.env ?? process.env;
  const progress = options.progress ?? (() => undefined);
  const name = clusterName(options.name, env);
  const paths = clusterPaths(name);
  requireSupportedHost(process.platform, process.getuid?.());
  const lock = {
    timeoutMs: LOCK_TIMEOUT_MS,
    onWait: () => progress(`waiting for another process that works on cluster ${name}`),
  };
  return withLock(`cluster/${name}`, lock, async () => {
    const found = await findCluster(name, paths);
    if (found !== undefined) {
      await awaitAnswer(found, paths);
      progress(`cluster ${name} is running`);
      return found;
    }
    const parentPid = options.parentPid ?? (options.dieWithParent === true ? process.pid : undefined);
    return create(name, paths, parentPid, env, progress);
  });
}

/** Ends a cluster and removes all of it but the built programs; gives false if there was none. */
export async function downCluster(name: string = DEFAULT_CLUSTER_NAME): Promise<boolean> {
  const paths = clusterPaths(name);
  requireSupportedHost(process.platform, process.getuid?.());
  return withLock(`cluster/${name}`, { timeoutMs: LOCK_TIMEOUT_MS }, async () => {
    const existed = existsSync(paths.state);
    await removeCluster(name, paths);
    return existed;
  });
}

/**
 * Imports the images of a tar (an OCI layout, or as `docker save` writes it) and gives their names.
 * @throws ClusterAbsentError, CommandFailedError
 */
export async function loadImage(tar: string, name: string = DEFAULT_CLUSTER_NAME): Promise<string[]> {
  const paths = clusterPaths(name);
  const cluster = await findCluster(name, paths);
  if (cluster === undefined) throw new ClusterAbsentError(`cluster ${name} is not running: npm run cluster -- up`);
  return importImages(cluster.binaries, paths, tar);
}

export async function clusterStatus(name: string): Promise<ClusterStatus> {
  const paths = clusterPaths(name);
  if (!existsSync(paths.state)) return { kind: "absent", name };
  const box = await findBox(paths);
  const cluster = await findCluster(name, paths);
  if (box === undefined || cluster === undefined) return { kind: "crashed", name, logs: paths.logs };
  const access = await adminAccess(paths, cluster.nodeIp);
  const checks = new Map<string, string | undefined>();
  for (const check of [apiCheck(access), ...usableChecks(access, name)]) checks.set(check.what, await tryProbe(check));
  return {
    kind: "running",
    name,
    cluster,
    launcherPid: box.launcherPid,
    logs: paths.logs,
    checks,
    components: JSON.parse(await readFile(paths.componentStates, "utf8")) as Record<string, ComponentState>,
  };
}

/** The running cluster of this name, or undefined. */
export async function findCluster(
  name: string,
  paths: ClusterPaths = clusterPaths(name),
): Promise<Cluster | undefined> {
  const record = await readRecord(paths);
  // The kubeconfig is written last, so a cluster without one never came up.
  if (record === undefined || !existsSync(paths.kubeconfig) || (await findBox(paths)) === undefined) return undefined;
  const { nodeIp, hostLink } = addressPlan(record.index);
  if (!linkExists(hostLink)) return undefined;
  return { name, kubeconfigPath: paths.kubeconfig, nodeIp, binaries: record.binaries, created: false };
}

async function create(
  name: string,
  paths: ClusterPaths,
  parentPid: number | undefined,
  env: NodeJS.ProcessEnv,
  progress: (line: string) => void,
): Promise<Cluster> {
  const startedMs = Date.now();
  const programs = await ensureSystemPrograms(env, progress);
  const binaries = await ensureBinaries(env, progress);
  if (existsSync(paths.state)) progress(`removing what an earlier cluster ${name} left`);
  await removeCluster(name, paths);

  const addresses = await withLock("addresses", { timeoutMs: LOCK_TIMEOUT_MS }, () => claimAddresses(paths, binaries));
  await awaitLinkGone(addresses.hostLink);
  for (const directory of [
    paths.pki,
    paths.config,
    paths.logs,
    paths.etcd,
    paths.kubelet,
    paths.varLog,
    paths.containerd,
  ]) {
    await mkdir(directory, { recursive: true, mode: 0o700 });
  }
  // The mount point of the kubelet's directory: some of its paths cannot be configured.
  await mkdir("/var/lib/kubelet", { recursive: true });

  const cgroup = cgroupName(name);
  await makeCgroup(cgroup);
  const certificates = [paths.pki, name, addresses.nodeIp, addresses.apiServiceIp];
  await runCommand(join(binaries, "certificates"), certificates, { timeoutMs: COMMAND_TIMEOUT_MS });
  const inputs = {
    name,
    addresses,
    paths,
    binaries,
    runc: programs.runc,
    snapshotter: (await statfs(paths.containerd)).type === OVERLAY_FILE_SYSTEM ? "native" : "overlayfs",
    cgroup,
  };
  for (const [file, content] of configFiles(inputs)) await writePrivate(join(paths.config, file), content);
  for (const client of CLIENTS) {
    await writePrivate(
      join(paths.config, `${client}.kubeconfig`),
      await clientKubeconfig(name, paths, addresses, client),
    );
  }
  const systemPath = [dirname(programs.nft), dirname(programs.runc), "/usr/sbin:/usr/bin:/sbin:/bin"].join(":");
  const plan = boxPlan({ name, addresses, paths, binaries, systemPath });
  await writePrivate(paths.plan, JSON.stringify(plan, null, 2));

  progress(
    `starting cluster ${name}: node ${addresses.nodeIp}, pods ${addresses.podRange}, services ${addresses.serviceRange}`,
  );
  launchBox(binaries, paths, parentPid);
  try {
    await bringUp(name, paths, addresses, binaries, startedMs);
  } catch (error) {
    const explained = await explain(error, paths);
    const box = await findBox(paths);
    if (box !== undefined) await endBox(paths, box, addresses.hostLink);
    throw explained;
  }
  progress(`cluster ${name} is ready after ${((Date.now() - startedMs) / 1000).toFixed(1)} s`);
  return { name, kubeconfigPath: paths.kubeconfig, nodeIp: addresses.nodeIp, binaries, created: true };
}

/** A component of a running cluster may just be starting again. */
async function awaitAnswer(cluster: Cluster, paths: ClusterPaths): Promise<void> {
  const isAlive = async (): Promise<boolean> => (await findBox(paths)) !== undefined;
  try {
    await awaitCheck(apiCheck(await adminAccess(paths, cluster.nodeIp)), ANSWER_TIMEOUT_MS, isAlive);
  } catch (error) {
    throw await explain(error, paths);
  }
}

async function bringUp(
  name: string,
  paths: ClusterPaths,
  addresses: AddressPlan,
  binaries: string,
  launchedMs: number,
): Promise<void> {
  // The launcher writes the box's process id once the links are made; until then only its absence for long is telling.
  const graceEndsMs = Math.max(launchedMs, Date.now()) + 5_000;
  const isAlive = async (): Promise<boolean> => Date.now() < graceEndsMs || (await findBox(paths)) !== undefined;
  const access = await adminAccess(paths, addresses.nodeIp);
  const adminKubeconfig = join(paths.config, "admin.kubeconfig");

  const images = (async () => {
    const tar = join(paths.containerd, "pause.tar");
    await writePauseImage(join(binaries, "pause"), tar);
    await awaitCheck(containerdCheck(binaries, paths), READY_TIMEOUT_MS, isAlive);
    await importImages(binaries, paths, tar);
  })();
  const objects = (async () => {
    await awaitCheck(apiCheck(access), READY_TIMEOUT_MS, isAlive);
    const apply = [
      "--kubeconfig",
      adminKubeconfig,
      "apply",
      "--server-side",
      "--validate=false",
      "-f",
      join(paths.config, "system.yaml"),
    ];
    await runCommand(join(binaries, "kubectl"), apply, { timeoutMs: COMMAND_TIMEOUT_MS });
    await writePrivate(paths.systemReady, "");
  })();
  await Promise.all([images, objects]);
  for (const check of usableChecks(access, name)) await awaitCheck(check, READY_TIMEOUT_MS, isAlive);
  await writePrivate(paths.kubeconfig, await readFile(adminKubeconfig, "utf8"));
}

function containerdCheck(binaries: string, paths: ClusterPaths): Parameters<typeof awaitCheck>[0] {
  return {
    what: "container runtime",
    component: "containerd",
    probe: async () => {
      if (!existsSync(paths.containerdSocket)) return "has no socket yet";
      await runCommand(join(binaries, "ctr"), ["--address", paths.containerdSocket, "version"], {
        timeoutMs: COMMAND_TIMEOUT_MS,
      });
      return undefined;
    },
  };
}

async function importImages(binaries: string, paths: ClusterPaths, tar: string): Promise<string[]> {
  const args = ["--address", paths.containerdSocket, "--namespace", "k8s.io", "images", "import", "-"];
  const output = await runCommand(join(binaries, "ctr"), args, {
    input: createReadStream(tar),
    timeoutMs: LOAD_TIMEOUT_MS,
  });
  return importedImageNames(output);
}

/** Adds the end of the log of the component that is to blame. */
async function explain(error: unknown, paths: ClusterPaths): Promise<unknown> {
  if (!(error instanceof NotReadyError)) return error;
  const log = join(paths.logs, `${error.component}.log`);
  const lines = existsSync(log) ? (await readFile(log, "utf8")).trimEnd().split("\n").slice(-SHOWN_LOG_LINES) : [];
  return new NotReadyError(`${error.message}\nThe end of ${log}:\n${lines.join("\n")}`, error.component);
}

async function removeCluster(name: string, paths: ClusterPaths): Promise<void> {
  if (!existsSync(paths.state)) return;
  const box = await findBox(paths);
  const record = await readRecord(paths);
  if (box !== undefined && record !== undefined) await endBox(paths, box, addressPlan(record.index).hostLink);
  await removeCgroup(cgroupName(name));
  await rm(paths.state, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

async function claimAddresses(paths: ClusterPaths, binaries: string): Promise<AddressPlan> {
  const used = new Set<number>();
  await mkdir(clustersDirectory(), { recursive: true });
  for (const other of await readdir(clustersDirectory())) {
    const record = await readRecord(clusterPaths(other));
    if (record !== undefined) used.add(record.index);
  }
  const ownLinks = new Set([...used].map(index => addressPlan(index).hostLink));
  const addresses = freeAddressPlan(used, routedRanges(await readFile("/proc/net/route", "utf8"), ownLinks));
  const record: ClusterRecord = { index: addresses.index, binaries };
  await writePrivate(paths.record, JSON.stringify(record));
  return addresses;
}

async function readRecord(paths: ClusterPaths): Promise<ClusterRecord | undefined> {
  if (!existsSync(paths.record)) return undefined;
  return JSON.parse(await readFile(paths.record, "utf8")) as ClusterRecord;
}

async function adminAccess(paths: ClusterPaths, nodeIp: string): Promise<ApiAccess> {
  const [authority, certificate, key] = await Promise.all(
    ["ca.crt", "admin.crt", "admin.key"].map(file => readFile(join(paths.pki, file), "utf8")),
  );
  return { nodeIp, authority: authority ?? "", certificate: certificate ?? "", key: key ?? "" };
}

async function clientKubeconfig(
  name: string,
  paths: ClusterPaths,
  addresses: AddressPlan,
  client: Client,
): Promise<string> {
  const [authority, certificate, key] = await Promise.all(
    ["ca.crt", `${client}.crt`, `${client}.key`].map(file => readFile(join(paths.pki, file), "utf8")),
  );
  return kubeconfig({
    name,
    nodeIp: addresses.nodeIp,
    authority: authority ?? "",
    certificate: certificate ?? "",
    key: key ?? "",
  });
}

async function writePrivate(path: string, content: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, content, { mode: 0o600 });
}

function cgroupName(name: string): string {
  return `fairway-cluster-${name}`;
}
