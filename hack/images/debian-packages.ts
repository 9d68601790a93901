import { existsSync } from "node:fs";
import { mkdir, rename } from "node:fs/promises";
import { basename, join } from "node:path";
import { findProgram } from "../cluster/prerequisites.ts";
import { runCommand } from "../cluster/run-command.ts";
import { sha256OfFile } from "./fingerprint.ts";

const APT_TIMEOUT_MS = 5 * 60_000;

export class PackagesUnavailableError extends Error {
  readonly code = "PACKAGES_UNAVAILABLE";
}

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly sha256: string;
}

/** A package together with the file that has it. */
export interface FetchedPackage extends DebianPackage {
  readonly path: string;
}

/**
 * Downloads packages of the system's own distribution through apt, which verifies them; nothing is installed. What is
 * in `directory` already is not downloaded again.
 * @throws PackagesUnavailableError where there is no apt
 */
export async function fetchPackages(
  names: readonly string[],
  directory: string,
  env: NodeJS.ProcessEnv,
  progress: (line: string) => void,
): Promise<FetchedPackage[]> {
  for (const program of ["apt-get", "dpkg-deb"]) {
    if (findProgram(program, env) === undefined) {
      throw new PackagesUnavailableError(
        `${program} not found: images are assembled from Debian packages on Debian and Ubuntu. ` +
          "Elsewhere build the same image from Containerfile: docker build -f Containerfile -t fairway .",
      );
    }
  }
  await mkdir(directory, { recursive: true });
  try {
    return await fetchListed(names, directory, progress);
  } catch (error) {
    // The lists are absent on a fresh machine, and behind when the repository replaced a package.
    progress(`apt-get update (${error instanceof Error ? (error.message.split("\n").at(-1) ?? "") : String(error)})`);
    await runCommand("apt-get", ["update", "-qq"], { timeoutMs: APT_TIMEOUT_MS });
    return fetchListed(names, directory, progress);
  }
}

async function fetchListed(
  names: readonly string[],
  directory: string,
  progress: (line: string) => void,
): Promise<FetchedPackage[]> {
  const listed = await runCommand("apt-get", ["download", "--print-uris", ...names], { timeoutMs: APT_TIMEOUT_MS });
  const packages = parsePrintUris(listed);
  const missing = names.filter(name => !packages.some(found => found.name === name));
  if (missing.length > 0) throw new PackagesUnavailableError(`apt knows no package ${missing.join(", ")}`);
  const fetched: FetchedPackage[] = [];
  for (const found of packages) {
    const path = join(directory, `${found.sha256}.deb`);
    if (!existsSync(path)) {
      progress(`downloading ${found.name} ${found.version}`);
      await runCommand("apt-get", ["download", "-qq", `${found.name}=${found.version}`], {
        cwd: directory,
        timeoutMs: APT_TIMEOUT_MS,
      });
      const arrived = join(directory, found.file);
      const sha256 = await sha256OfFile(arrived);
      if (sha256 !== found.sha256) {
        throw new PackagesUnavailableError(
          `${found.file}: SHA-256 ${sha256}, the list of packages says ${found.sha256}`,
        );
      }
      await rename(arrived, path);
    }
    fetched.push({ name: found.name, version: found.version, sha256: found.sha256, path });
  }
  return fetched.sort((a, b) => a.name.localeCompare(b.name, "en"));
}

/**
 * Reads `apt-get download --print-uris`: per line the quoted address, the file's name (in which `:` of a version is
 * `%3a`), its size and its digest.
 */
export function parsePrintUris(output: string): (DebianPackage & { readonly file: string })[] {
  return output
    .split("\n")
    .filter(line => line.trim() !== "")
    .map(line => {
      const match = /^'[^']+' (\S+)_(\S+)_[^_\s]+\.deb \d+ SHA256:([0-9a-f]{64})$/.exec(line.trim());
      const [, name, version, sha256] = match ?? [];
      if (name === undefined || version === undefined || sha256 === undefined) {
        throw new PackagesUnavailableError(`apt-get download --print-uris: not understood: ${line}`);
      }
      const file = basename(line.trim().split(" ")[1] ?? "");
      return { name, version: decodeURIComponent(version), sha256, file };
    });
}
