import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { ImageDescription } from "./image.ts";

export async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

/** One text for all files of a directory, its subdirectories included. */
export async function sha256OfDirectory(directory: string): Promise<string> {
  const found = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = found.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name));
  const hash = createHash("sha256");
  for (const file of files.sort()) hash.update(`${file}\0${await sha256OfFile(file)}\n`);
  return hash.digest("hex");
}

/**
 * A text that is equal exactly when the description and the contents of every file in it are equal, and `tool` (the
 * program that reads it) is the same.
 */
export async function imageFingerprint(image: ImageDescription, tool: string): Promise<string> {
  const hash = createHash("sha256").update(tool);
  for (const layer of image.layers) {
    for (const entry of layer.entries) {
      const source = "file" in entry ? entry.file : "deb" in entry ? entry.deb : undefined;
      if (source !== undefined) hash.update(await sha256OfFile(source));
    }
  }
  return hash.update(JSON.stringify(image)).digest("hex");
}
