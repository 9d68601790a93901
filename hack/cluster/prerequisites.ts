import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { runCommand } from "./run-command.ts";

const APT_TIMEOUT_MS = 5 * 60_000;
/** Administrators' programs are not on everybody's PATH. */
const SYSTEM_DIRECTORIES = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/** Programs that the cluster takes from the system, and the Debian package of each. */
const SYSTEM_PROGRAMS = { runc: "runc", nft: "nftables" } as const;

export type SystemPrograms = Readonly<Record<keyof typeof SYSTEM_PROGRAMS, string>>;

export class UnsupportedHostError extends Error {
  readonly code = "UNSUPPORTED_HOST";
}

/** @throws UnsupportedHostError that says what to use instead, unless this is Linux and the user is root */
export function requireSupportedHost(platform: NodeJS.Platform, userId: number | undefined): void {
  const alternative =
    "Use any other cluster instead, for example kind (https://kind.sigs.k8s.io):\n" +
    "  kind create cluster\n" +
    "  export KUBECONFIG=~/.kube/config\n" +
    "  npm run cluster -- up --use-current";
  if (platform !== "linux") {
    throw new UnsupportedHostError(`the local cluster needs Linux, and this is ${platform}.\n${alternative}`);
  }
  if (userId !== 0) {
    throw new UnsupportedHostError(
      `the local cluster needs root (namespaces, mounts), and this is user ${userId ?? "unknown"}. Run it with sudo.\n${alternative}`,
    );
  }
}

/** The paths of the system's programs; missing ones are installed by apt where there is apt. */
export async function ensureSystemPrograms(
  env: NodeJS.ProcessEnv,
  progress: (line: string) => void,
): Promise<SystemPrograms> {
  const missing = Object.entries(SYSTEM_PROGRAMS).filter(([program]) => findProgram(program, env) === undefined);
  if (missing.length > 0) {
    const packages = missing.map(([, debianPackage]) => debianPackage);
    if (findProgram("apt-get", env) === undefined) {
      throw new UnsupportedHostError(
        `missing programs: ${missing.map(([program]) => program).join(", ")}. Install them with this system's package manager.`,
      );
    }
    progress(`installing ${packages.join(", ")} with apt-get`);
    const apt = { env: { ...env, DEBIAN_FRONTEND: "noninteractive" }, timeoutMs: APT_TIMEOUT_MS };
    await runCommand("apt-get", ["update", "-qq"], apt);
    await runCommand("apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...packages], apt);
  }
  return { runc: requiredProgram("runc", env), nft: requiredProgram("nft", env) };
}

/** The path of a program on PATH or in the system's directories. */
export function findProgram(program: string, env: NodeJS.ProcessEnv): string | undefined {
  const directories = [...(env["PATH"] ?? "").split(delimiter), ...SYSTEM_DIRECTORIES];
  return directories
    .filter(directory => directory !== "")
    .map(directory => join(directory, program))
    .find(isExecutable);
}

function requiredProgram(program: string, env: NodeJS.ProcessEnv): string {
  const path = findProgram(program, env);
  if (path === undefined)
    throw new UnsupportedHostError(`program ${program}: not found on PATH after its installation`);
  return path;
}

function isExecutable(path: string): boolean {
  if (!existsSync(path)) return false;
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
