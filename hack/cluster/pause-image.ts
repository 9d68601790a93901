import { createHash } from "node:crypto";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PAUSE_IMAGE } from "./config-files.ts";
import { runCommand } from "./run-command.ts";

const TAR_TIMEOUT_MS = 30_000;

/** Writes the image that holds each pod's namespaces, as a tar of an OCI layout: one layer with one static program. */
export async function writePauseImage(pauseProgram: string, tarPath: string): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), "fairway-pause-"));
  try {
    const root = join(work, "root");
    const layout = join(work, "layout");
    const blobs = join(layout, "blobs", "sha256");
    await mkdir(root);
    await mkdir(blobs, { recursive: true });
    await copyFile(pauseProgram, join(root, "pause"));
    const layerTar = join(work, "layer.tar");
    await runCommand("tar", ["--owner=0", "--group=0", "-cf", layerTar, "-C", root, "pause"], {
      timeoutMs: TAR_TIMEOUT_MS,
    });

    const addBlob = async (content: Buffer, mediaType: string): Promise<Descriptor> => {
      const hash = createHash("sha256").update(content).digest("hex");
      await writeFile(join(blobs, hash), content);
      return { mediaType, digest: `sha256:${hash}`, size: content.length };
    };
    const layer = await addBlob(await readFile(layerTar), "application/vnd.oci.image.layer.v1.tar");
    const config = await addBlob(
      jsonBuffer({
        architecture: process.arch === "x64" ? "amd64" : process.arch,
        os: "linux",
        config: { Entrypoint: ["/pause"], User: "65535:65535" },
        rootfs: { type: "layers", diff_ids: [layer.digest] },
      }),
      "application/vnd.oci.image.config.v1+json",
    );
    const manifestType = "application/vnd.oci.image.manifest.v1+json";
    const manifest = await addBlob(
      jsonBuffer({ schemaVersion: 2, mediaType: manifestType, config, layers: [layer] }),
      manifestType,
    );
    const named = { ...manifest, annotations: { "io.containerd.image.name": PAUSE_IMAGE } };
    await writeFile(join(layout, "index.json"), jsonBuffer({ schemaVersion: 2, manifests: [named] }));
    await writeFile(join(layout, "oci-layout"), jsonBuffer({ imageLayoutVersion: "1.0.0" }));
    await runCommand("tar", ["-cf", tarPath, "-C", layout, "."], { timeoutMs: TAR_TIMEOUT_MS });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

function jsonBuffer(value: object): Buffer {
  return Buffer.from(JSON.stringify(value));
}
