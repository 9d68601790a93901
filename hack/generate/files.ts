import { join } from "node:path";
import { stringify } from "yaml";
import { KINDS, toCustomResourceDefinition } from "./crd.ts";
import { apiReference, configurationReference } from "./reference.ts";
import { renderInstall } from "./install.ts";

const NOTICE = "# Made by `npm run generate` from the schemas in api/. Do not edit.\n";

/** Path from the root -> content, of every generated file. */
export async function generatedFiles(): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for (const kind of KINDS) {
    const yaml = stringify(toCustomResourceDefinition(kind), { lineWidth: 0, aliasDuplicateObjects: false });
    files.set(`crds/${kind.group}_${kind.plural}.yaml`, NOTICE + yaml);
  }
  const resources = [...files.keys()].map(path => path.slice("crds/".length));
  files.set(
    "crds/kustomization.yaml",
    NOTICE + stringify({ apiVersion: "kustomize.config.k8s.io/v1beta1", kind: "Kustomization", resources }),
  );
  files.set("manifests/install.yaml", await renderInstall(join(import.meta.dirname, "../.."), files));
  files.set("docs/reference/api.md", apiReference(KINDS));
  files.set("docs/reference/configuration.md", configurationReference());
  return files;
}
