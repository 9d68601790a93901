import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { binariesDirectory } from "../cluster/paths.ts";
import { withLock } from "../cluster/lock.ts";
import { describeFairwayImage, type ImageContext } from "./fairway-image.ts";
import type { ImageDescription } from "./image.ts";
import { type Archive, makeArchive } from "./make-archive.ts";
import { describeSampleImage } from "./sample-image.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const LOCK_TIMEOUT_MS = 15 * 60_000;

/** Every image the project makes. */
export const IMAGES = {
  fairway: describeFairwayImage,
  sample: describeSampleImage,
} as const satisfies Record<string, (context: ImageContext) => Promise<ImageDescription>>;
export type ImageName = keyof typeof IMAGES;

export const IMAGE_NAMES = Object.keys(IMAGES) as ImageName[];

export interface BuiltImage extends Archive {
  readonly name: ImageName;
  readonly ref: string;
}

/**
 * Builds images one after the other into `dist/images/<name>.tar`; those whose inputs did not change are left alone.
 * Two runs at a time wait for each other.
 */
export async function buildImages(
  names: readonly ImageName[],
  env: NodeJS.ProcessEnv,
  progress: (line: string) => void,
): Promise<BuiltImage[]> {
  const manifest = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as { readonly version: string };
  const cache = join(dirname(binariesDirectory(env)), "images");
  const context = { root: ROOT, version: manifest.version, cache, env, progress };
  const options = { timeoutMs: LOCK_TIMEOUT_MS, onWait: () => progress("waiting for another build of images") };
  return withLock("images", options, async () => {
    const built: BuiltImage[] = [];
    for (const name of names) {
      const description = await IMAGES[name](context);
      const archive = await makeArchive(name, description, join(ROOT, "dist", "images"), cache);
      built.push({ name, ref: description.ref, ...archive });
    }
    return built;
  });
}
