import { readFileSync } from "node:fs";
import { brotliDecompressSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { oracle } from "./oracle.ts";
import { replay } from "./replay.ts";

const lines = brotliDecompressSync(readFileSync(oracle.vectors.file)).toString("utf8").trimEnd().split("\n");

describe("core/flowcontrol beside k8s.io/apiserver", () => {
  it("has the committed scenarios, of every kind", () => {
    expect(lines).toHaveLength(oracle.vectors.scenarios);
    const kinds = Map.groupBy(lines, line => (JSON.parse(line) as { kind: string }).kind);
    const drives = (kinds.get("queueset")?.length ?? 0) + (kinds.get("controller")?.length ?? 0);
    expect(drives).toBeGreaterThanOrEqual(300);
    expect([...kinds.keys()].sort()).toEqual([
      "allocation",
      "bootstrap",
      "classify",
      "controller",
      "dealer",
      "queueset",
      "retry",
    ]);
  });

  it("dispatches, rejects, classifies and limits as the original did at every step", () => {
    expect(lines.map(replay).filter(difference => difference !== undefined)).toEqual([]);
  }, 60_000);

  it("would notice a difference", () => {
    const line = lines.find(candidate => candidate.includes('"kind":"queueset"') && candidate.includes('"d":['))!;
    expect(replay(line.replace(/"d":\[(\d+)/, '"d":[9999,$1'))).toMatchObject({ label: "queueset" });
  });
});
