import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { generatedFiles } from "./files.ts";

/**
 * `npm run generate` writes what is made from the schemas in api/ (crds/, docs/reference/); `--check` writes nothing and fails
 * when a file differs, is missing, or is left over.
 */
const root = join(import.meta.dirname, "../..");
const check = process.argv.includes("--check");
const files = await generatedFiles();
const problems: string[] = [];

for (const directory of ["crds", "docs/reference"]) {
  await mkdir(join(root, directory), { recursive: true });
  for (const name of await readdir(join(root, directory))) {
    const path = `${directory}/${name}`;
    if (files.has(path)) continue;
    if (check) problems.push(`${path}: nothing generates it`);
    else await rm(join(root, path));
  }
}

for (const [path, content] of files) {
  const present = await readFile(join(root, path), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (present === content) continue;
  if (check) problems.push(`${path}: ${present === undefined ? "missing" : "stale"}`);
  else {
    await writeFile(join(root, path), content);
    console.log(`wrote ${path}`);
  }
}

if (problems.length > 0) {
  console.error(`${problems.join("\n")}\nrun: npm run generate`);
  process.exitCode = 1;
}
