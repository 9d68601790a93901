import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { kubeconfig } from "./config-files.ts";
import { currentCluster, loadAdvice, NoCurrentClusterError } from "./current-cluster.ts";

describe("currentCluster", () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "fairway-kubeconfig-"));
  });
  afterEach(() => rm(directory, { recursive: true }));

  it("reads the current context of KUBECONFIG", async () => {
    const path = join(directory, "config");
    await writeFile(
      path,
      kubeconfig({ name: "kind-kind", nodeIp: "192.0.2.1", authority: "CA", certificate: "CERT", key: "KEY" }),
    );
    const cluster = currentCluster({ KUBECONFIG: path });
    expect(cluster).toEqual({ context: "kind-kind", server: "https://192.0.2.1:6443", kubeconfigPath: path });
    expect(loadAdvice(cluster, "image.tar")).toContain("kind load image-archive image.tar");
  });

  it("says what is missing", async () => {
    const path = join(directory, "empty");
    await writeFile(path, "apiVersion: v1\nkind: Config\n");
    expect(() => currentCluster({})).toThrow("KUBECONFIG is not set");
    expect(() => currentCluster({ KUBECONFIG: path })).toThrow("has no current context with a cluster");
    expect(() => currentCluster({ KUBECONFIG: join(directory, "absent") })).toThrow(NoCurrentClusterError);
  });
});
