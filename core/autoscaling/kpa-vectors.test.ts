import { readFileSync } from "node:fs";
import { brotliDecompressSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { oracle } from "../../hack/oracles/kpa/oracle.ts";
import { replay } from "../../hack/oracles/kpa/replay.ts";

const LINES = brotliDecompressSync(readFileSync(new URL(`../../${oracle.vectors.file}`, import.meta.url)))
  .toString()
  .trimEnd()
  .split("\n");

describe("vectors of knative.dev/serving v0.51.0", () => {
  const seen = new Map<string, number>();
  const saw = (what: string): void => void seen.set(what, (seen.get(what) ?? 0) + 1);

  it("are equal in all three result fields at every tick", () => {
    const differences = LINES.map(line =>
      replay(line, (decision, spec) => {
        saw(`metric ${spec.metric}`);
        saw(`aggregation ${spec.aggregation}`);
        if (!decision.valid) return saw(`invalid ${decision.reason}`);
        saw(`winner ${decision.explanation.winner}`);
        saw(`panic ${decision.explanation.panicEvent}`);
        saw(`burst ${Math.sign(decision.excessBurstCapacity)}`);
        if (!spec.reachable) saw("unreachable");
      }),
    ).filter(difference => difference !== undefined);
    expect(differences).toEqual([]);
    expect(LINES.length).toBeGreaterThanOrEqual(300);
  });

  it("reach every rule, state and option often", () => {
    const wanted = [
      ...["stable-window", "panic-window", "panic-ratchet", "scale-down-delay"].map(rule => `winner ${rule}`),
      ...["max-scale-up-rate", "max-scale-down-rate", "activation-scale"].map(rule => `winner ${rule}`),
      ...["none", "begins", "extended", "holds", "ends"].map(event => `panic ${event}`),
      ...["no-data-in-window", "pods-unknown"].map(reason => `invalid ${reason}`),
      ...["-1", "0", "1"].map(sign => `burst ${sign}`),
      ...["metric concurrency", "metric rps", "aggregation linear", "aggregation weighted-exponential", "unreachable"],
    ];
    expect(wanted.filter(what => (seen.get(what) ?? 0) < 100)).toEqual([]);
  });
});
