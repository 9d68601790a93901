import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "../cluster/run-command.ts";
import { fetchPackages, type FetchedPackage } from "./debian-packages.ts";
import { COMMON_ENTRIES, type ImageDescription, type ImageEntry, NONROOT, ociArchitecture } from "./image.ts";

export const NODE_PATH = "/nodejs/bin/node";
export const INIT_PATH = "/usr/bin/tini-static";
/**
 * The kernel drops signals that the first process of a container has no handler for, and Node has none while it loads:
 * a pod told to go at that moment would stay for its whole grace period. So a small init is the first process.
 */
export const ENTRYPOINT = [INIT_PATH, "-s", "--", NODE_PATH];
export const APP_ENV = ["PATH=/nodejs/bin:/usr/local/bin:/usr/bin:/bin", "NODE_ENV=production"];
const UNPACK_TIMEOUT_MS = 60_000;
const BUILD_TIMEOUT_MS = 2 * 60_000;

/** The bundles of hack/build.ts. */
export const ROLE_FILES = {
  operator: "operator.cjs",
  gateway: "gateway.mjs",
  "queue-proxy": "queue-proxy.cjs",
  cli: "cli.mjs",
} as const;

export interface ImageContext {
  /** The project's root. */
  readonly root: string;
  readonly version: string;
  /** For downloads and tools, outside the tree. */
  readonly cache: string;
  readonly env: NodeJS.ProcessEnv;
  readonly progress: (line: string) => void;
}

/**
 * The one image of the project: Node and a bundle for each role, laid out as Containerfile does on a distroless base.
 * A container chooses its role by `args: ["/app/<file>"]`.
 */
export async function describeFairwayImage(context: ImageContext): Promise<ImageDescription> {
  const { root, progress, cache, env } = context;
  progress("bundling the roles");
  await runCommand(process.execPath, ["hack/build.ts"], { cwd: root, timeoutMs: BUILD_TIMEOUT_MS });
  const packages = await fetchPackages(
    ["ca-certificates", "libc6", "libgcc-s1", "libstdc++6", "tini", "tzdata"],
    join(cache, "packages"),
    env,
    progress,
  );
  // The locked npm package, whatever Node runs this script.
  const nodePackage = join(root, "node_modules", "node");
  const node = JSON.parse(await readFile(join(nodePackage, "package.json"), "utf8")) as { readonly version: string };
  return {
    ref: `fairway.dev/fairway:${context.version}`,
    architecture: ociArchitecture(process.arch),
    user: String(NONROOT),
    workingDir: "/app",
    entrypoint: ENTRYPOINT,
    cmd: [`/app/${ROLE_FILES.cli}`],
    env: APP_ENV,
    labels: {
      "org.opencontainers.image.title": "fairway",
      "org.opencontainers.image.version": context.version,
      "org.opencontainers.image.licenses": "Apache-2.0",
      "fairway.dev/node-version": node.version,
      "fairway.dev/packages": packages.map(found => `${found.name}=${found.version}`).join(","),
    },
    layers: [
      { comment: "system libraries, certificates, users", entries: await systemEntries(packages, cache) },
      { comment: "Node.js", entries: [{ path: NODE_PATH, file: join(nodePackage, "bin", "node"), mode: 0o755 }] },
      {
        comment: "fairway",
        entries: Object.values(ROLE_FILES).map(file => ({
          path: `app/${file}`,
          file: join(root, "dist", file),
          mode: 0o644,
        })),
      },
    ],
  };
}

async function systemEntries(packages: readonly FetchedPackage[], cache: string): Promise<ImageEntry[]> {
  const deb = (name: string, include: readonly string[]): ImageEntry => {
    const found = packages.find(candidate => candidate.name === name);
    if (found === undefined) throw new Error(`package ${name}: not fetched`);
    return { deb: found.path, include };
  };
  const triplet = process.arch === "arm64" ? "aarch64-linux-gnu" : "x86_64-linux-gnu";
  const library = (name: string): string => `usr/lib/${triplet}/${name}`;
  return [
    ...COMMON_ENTRIES,
    { path: "bin", link: "usr/bin" },
    { path: "lib", link: "usr/lib" },
    { path: "lib64", link: "usr/lib64" },
    { path: "sbin", link: "usr/sbin" },
    { path: "etc/nsswitch.conf", mode: 0o644, text: "passwd: files\ngroup: files\nhosts: files dns\n" },
    deb("libc6", [
      "usr/lib64/ld-linux",
      "usr/lib/ld-linux",
      ...["ld-linux", "libc.so", "libdl.so", "libm.so", "libmvec.so", "libnss_dns", "libnss_files"].map(library),
      ...["libpthread.so", "libresolv.so", "librt.so"].map(library),
      "usr/share/doc/libc6/copyright",
    ]),
    deb("libstdc++6", [library("libstdc++.so")]),
    deb("libgcc-s1", [library("libgcc_s.so")]),
    deb("tini", [INIT_PATH.slice(1), "usr/share/doc/tini/copyright"]),
    deb("tzdata", ["usr/share/zoneinfo/"]),
    { path: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, file: await certificateBundle(packages, cache) },
  ];
}

/** One file of all certificates, as the package's own installation script makes it. */
async function certificateBundle(packages: readonly FetchedPackage[], cache: string): Promise<string> {
  const found = packages.find(candidate => candidate.name === "ca-certificates");
  if (found === undefined) throw new Error("package ca-certificates: not fetched");
  const script = 'dpkg-deb --fsys-tarfile "$1" | tar -xO --wildcards "./usr/share/ca-certificates/mozilla/*.crt"';
  const bundle = await runCommand("bash", ["-o", "pipefail", "-c", script, "bash", found.path], {
    timeoutMs: UNPACK_TIMEOUT_MS,
  });
  const directory = join(cache, "certificates");
  await mkdir(directory, { recursive: true });
  const path = join(directory, `${found.sha256}.crt`);
  await writeFile(path, bundle);
  return path;
}
