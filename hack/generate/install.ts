import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";

interface Kustomization {
  readonly resources: readonly string[];
}

/** Path from the root -> content, of files made in the same run; they count instead of what is on the disk. */
type Made = ReadonlyMap<string, string>;

const HEADER =
  "# Made by `npm run generate` from manifests/ and crds/. Install: kubectl apply --server-side -f install.yaml\n";

/**
 * The text of manifests/install.yaml, the one file a user applies: the resources of manifests/kustomization.yaml in
 * its order (so that namespaces and CRDs come before what needs them). Only files and folders with a
 * kustomization.yaml are understood: the same list serves `kubectl apply -k`.
 */
export async function renderInstall(root: string, made: Made): Promise<string> {
  const texts = await resources(root, "manifests", made);
  return HEADER + texts.map(text => `---\n${text.replace(/^(?:---\n)+/, "").trimEnd()}\n`).join("");
}

async function resources(root: string, folder: string, made: Made): Promise<readonly string[]> {
  const read = (path: string): Promise<string> => {
    const content = made.get(path);
    return content === undefined ? readFile(join(root, path), "utf8") : Promise.resolve(content);
  };
  const { resources: entries } = parse(await read(join(folder, "kustomization.yaml"))) as Kustomization;
  const texts = await Promise.all(
    entries.map(async entry => {
      const path = join(folder, entry);
      return entry.endsWith(".yaml") ? [await read(path)] : resources(root, path, made);
    }),
  );
  return texts.flat();
}
