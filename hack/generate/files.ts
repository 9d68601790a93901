import { stringify } from "yaml";
import { KINDS, toCustomResourceDefinition } from "./crd.ts";

const NOTICE = "# Made by `npm run generate` from the schemas in api/. Do not edit.\n";

/** Path from the root -> content, of every generated file. */
export async function generatedFiles(): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for (const kind of KINDS) {
    const yaml = stringify(toCustomResourceDefinition(kind), { lineWidth: 0, aliasDuplicateObjects: false });
    files.set(`crds/${kind.group}_${kind.plural}.yaml`, NOTICE + yaml);
  }
  return files;
}
