import { createHash } from "node:crypto";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { withLock } from "./lock.ts";
import { binariesDirectory } from "./paths.ts";

/** The Go module that pins and builds every program of the cluster. */
const MODULE_DIRECTORY = join(import.meta.dirname, "node");
const KUBE_PROGRAMS = [
  "etcd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-proxy",
  "kube-scheduler",
  "kubectl",
  "kubelet",
];
const OWN_PACKAGES = ["./box", "./certificates", "./coredns", "./kube", "./pause"];
const COLD_BUILD_TIMEOUT_MS = 60 * 60_000;
const PROGRESS_INTERVAL_MS = 10_000;
/** About as many packages as a cold build compiles: only for the progress line. */
const EXPECTED_PACKAGES = 3800;

export class BuildFailedError extends Error {
  readonly code = "CLUSTER_BUILD_FAILED";
}

/**
 * The directory with the cluster's programs (box, certificates, containerd, coredns, ctr, kubectl, kubelet, the CNI
 * plugins, ...), built by Go unless a build of the same versions and sources is in the cache.
 * @throws BuildFailedError
 */
export async function ensureBinaries(env: NodeJS.ProcessEnv, progress: (line: string) => void): Promise<string> {
  const sources = await moduleSources();
  const key = cacheKey(sources);
  const directory = join(binariesDirectory(env), key);
  if (existsSync(directory)) return directory;
  const lock = {
    timeoutMs: COLD_BUILD_TIMEOUT_MS,
    onWait: () => progress("waiting for another process that builds the cluster's programs"),
  };
  await withLock(`build/${key}`, lock, async () => {
    if (existsSync(directory)) return;
    const building = `${directory}.building`;
    await rm(building, { recursive: true, force: true });
    await mkdir(building, { recursive: true });
    await build(building, versionFlags(sources.get("go.mod") ?? ""), env, progress);
    for (const program of KUBE_PROGRAMS) await symlink("kube", join(building, program));
    await rename(building, directory);
  });
  return directory;
}

/** Name of a build: it changes with any version, checksum or source line. */
export function cacheKey(sources: ReadonlyMap<string, string>): string {
  const hash = createHash("sha256").update(`${process.platform}/${process.arch}\0`);
  for (const [path, content] of [...sources].sort(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`${path}\0${content.length}\0${content}`);
  }
  return hash.digest("hex").slice(0, 16);
}

/** The linker's flags that tell the programs their version, as go.mod pins it. */
export function versionFlags(goMod: string): string {
  const kubernetes = requiredVersion(goMod, "k8s.io/kubernetes");
  const containerd = requiredVersion(goMod, "github.com/containerd/containerd/v2");
  const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(kubernetes) ?? [];
  const kubernetesPackages = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];
  const variables = [
    ...kubernetesPackages.flatMap(path => [
      `${path}.gitVersion=${kubernetes}`,
      `${path}.gitMajor=${major ?? ""}`,
      `${path}.gitMinor=${minor ?? ""}`,
      `${path}.gitTreeState=clean`,
    ]),
    `github.com/containerd/containerd/v2/version.Version=${containerd}`,
  ];
  return ["-s", "-w", ...variables.map(variable => `-X ${variable}`)].join(" ");
}

function requiredVersion(goMod: string, module: string): string {
  const version = goMod
    .split("\n")
    .map(line => line.trim().split(/\s+/))
    .find(([path, version]) => path === module && version?.startsWith("v"))?.[1];
  if (version === undefined) throw new BuildFailedError(`go.mod requires no version of ${module}`);
  return version;
}

async function moduleSources(): Promise<Map<string, string>> {
  const files = await readdir(MODULE_DIRECTORY, { recursive: true });
  const sources = files.filter(file => /(\.go|^go\.(mod|sum))$/.test(file));
  return new Map(
    await Promise.all(sources.map(async file => [file, await readFile(join(MODULE_DIRECTORY, file), "utf8")] as const)),
  );
}

async function build(
  directory: string,
  linkerFlags: string,
  env: NodeJS.ProcessEnv,
  progress: (line: string) => void,
): Promise<void> {
  progress("building the cluster's programs from the Go module proxy (once per version; some minutes when cold)");
  const startedMs = Date.now();
  let compiled = 0;
  const timer = setInterval(() => {
    const seconds = Math.round((Date.now() - startedMs) / 1000);
    progress(
      `  ${seconds} s: ${compiled} of about ${EXPECTED_PACKAGES} packages compiled (fewer when some are cached)`,
    );
  }, PROGRESS_INTERVAL_MS);
  try {
    const flags = [
      "-v",
      "-trimpath",
      "-buildvcs=false",
      "-mod=readonly",
      "-ldflags",
      linkerFlags,
      "-o",
      `${directory}/`,
    ];
    await runGo(["build", ...flags, ...OWN_PACKAGES, "tool"], { ...env, CGO_ENABLED: "0", GOWORK: "off" }, line => {
      if (isPackagePath(line)) compiled++;
    });
  } finally {
    clearInterval(timer);
  }
  progress(`  built in ${Math.round((Date.now() - startedMs) / 1000)} s`);
}

/** `go build -v` reports a package by its path alone, and everything else in sentences. */
function isPackagePath(line: string): boolean {
  return /^[^\s:]+$/.test(line);
}

async function runGo(args: readonly string[], env: NodeJS.ProcessEnv, onLine: (line: string) => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const go = spawn("go", args, {
    cwd: MODULE_DIRECTORY,
    env,
    stdio: ["ignore", "ignore", "pipe"],
    timeout: COLD_BUILD_TIMEOUT_MS,
  });
  const otherLines: string[] = [];
  createInterface({ input: go.stderr }).on("line", line => {
    onLine(line);
    if (!isPackagePath(line)) otherLines.push(line);
  });
  go.on("error", error => {
    const hint =
      "code" in error && error.code === "ENOENT" ? ": install Go (https://go.dev/dl/), see go.mod for the version" : "";
    reject(new BuildFailedError(`go: ${error.message}${hint}`));
  });
  go.on("close", (exitCode, signal) => {
    if (exitCode === 0) resolve();
    else
      reject(
        new BuildFailedError(
          `go build: ended by ${signal ?? `exit code ${exitCode}`}\n${otherLines.slice(-20).join("\n")}`,
        ),
      );
  });
  return promise;
}
