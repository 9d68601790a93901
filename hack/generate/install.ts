import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";

interface Kustomization {
  readonly resources: readonly string[];
}

/**
 * The text of manifests/install.yaml, the one file a user applies: the resources of manifests/kustomization.yaml in
 * its order (so that namespaces and CRDs come before what needs them). Only files and folders with a
 * kustomization.yaml are understood: the same list serves `kubectl apply -k`.
 */
export async function renderInstall(root: string): Promise<string> {
  const files = await resources(join(root, "manifests"));
  const texts = await Promise.all(files.map(file => readFile(file, "utf8")));
  const header =
    "# Made by `npm run generate` from manifests/ and crds/. Install: kubectl apply --server-side -f install.yaml\n";
  return header + texts.map(text => `---\n${text.replace(/^(?:---\n)+/, "").trimEnd()}\n`).join("");
}

async function resources(folder: string): Promise<string[]> {
  const names = await readdir(folder);
  if (!names.includes("kustomization.yaml")) throw new Error(`${folder}: no kustomization.yaml`);
  const { resources: entries } = parse(await readFile(join(folder, "kustomization.yaml"), "utf8")) as Kustomization;
  const nested = entries.map(entry =>
    entry.endsWith(".yaml") ? Promise.resolve([join(folder, entry)]) : resources(join(folder, entry)),
  );
  return (await Promise.all(nested)).flat();
}
