import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { ImageContext } from "./fairway-image.ts";
import { COMMON_ENTRIES, type ImageDescription, NONROOT, ociArchitecture } from "./image.ts";
import { goBuild } from "./make-archive.ts";

/** The app of tests and demo: one static program on an empty base, which starts in a few milliseconds. */
export async function describeSampleImage(context: ImageContext): Promise<ImageDescription> {
  const architecture = ociArchitecture(process.arch);
  const directory = join(context.root, "dist", "sample");
  const program = join(directory, "sample");
  context.progress("compiling test/images/sample");
  await mkdir(directory, { recursive: true });
  await goBuild(join(context.root, "test", "images", "sample"), program, { GOOS: "linux", GOARCH: architecture });
  return {
    ref: `fairway.dev/sample:${context.version}`,
    architecture,
    user: String(NONROOT),
    workingDir: "/",
    entrypoint: ["/app/sample"],
    cmd: [],
    env: ["PATH=/usr/local/bin:/usr/bin:/bin"],
    labels: {
      "org.opencontainers.image.title": "fairway sample",
      "org.opencontainers.image.version": context.version,
      "org.opencontainers.image.licenses": "Apache-2.0",
    },
    layers: [
      { comment: "users", entries: COMMON_ENTRIES },
      { comment: "sample", entries: [{ path: "app/sample", file: program, mode: 0o755 }] },
    ],
  };
}
