import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { imageFingerprint } from "./fingerprint.ts";
import type { ImageDescription } from "./image.ts";

describe("imageFingerprint", () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "fingerprint-"));
  });
  afterEach(async () => {
    await rm(directory, { recursive: true });
  });

  const describeWith = (file: string, ref = "example.dev/a:1"): ImageDescription => ({
    ref,
    architecture: "amd64",
    user: "1",
    workingDir: "/",
    entrypoint: ["/a"],
    cmd: [],
    env: [],
    labels: {},
    layers: [{ comment: "a", entries: [{ path: "a", file, mode: 0o755 }] }],
  });

  it("changes with a file's content, the description and the tool, and with nothing else", async () => {
    const file = join(directory, "a");
    await writeFile(file, "one");
    const first = await imageFingerprint(describeWith(file), "tool");
    await writeFile(file, "one");
    expect(await imageFingerprint(describeWith(file), "tool")).toBe(first);
    expect(await imageFingerprint(describeWith(file), "other tool")).not.toBe(first);
    expect(await imageFingerprint(describeWith(file, "example.dev/a:2"), "tool")).not.toBe(first);
    await writeFile(file, "two");
    expect(await imageFingerprint(describeWith(file), "tool")).not.toBe(first);
  });
});
