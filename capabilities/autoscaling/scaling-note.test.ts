import { describe, expect, it } from "vitest";
import type { Decision } from "./revision-scaler.ts";
import { noteOf } from "./scaling-note.ts";

interface Seen {
  readonly winner?: string;
  readonly atMaximum?: number;
  readonly cpus?: number;
  readonly cpu1m?: number;
  readonly readyForMs?: number;
}

const cloudRun = ({ winner = "metrics", atMaximum = 0, cpus, cpu1m, readyForMs = 60_000 }: Seen): Decision =>
  ({
    atMs: 100_000,
    spec: {
      policy: { kind: "cloud-run", cloudRun: { cpuTarget: 0.6, cpus, maxInstances: 3 } },
      lifecycle: { bounds: { max: 3 } },
    },
    observation: {
      readyPods: 3,
      cloudRun: { load: { concurrency1m: 1, cpu1m }, instances: [{ readySinceMs: 100_000 - readyForMs }] },
    },
    outcome: {
      desired: 3,
      step: { bound: "none" },
      decision: {
        valid: true,
        policy: "cloud-run",
        explanation: { winner, beforeBounds: 5, instances: 3, maxInstances: 3, onDemand: { atMaximum } },
      },
    },
  }) as unknown as Decision;

const kpa = (bound: string, valid = true): Decision =>
  ({
    spec: { policy: { kind: "kpa" }, lifecycle: { bounds: { max: 2 } } },
    observation: { readyPods: 2 },
    outcome: { desired: 4, step: { bound }, decision: { valid, reason: "no-data-in-window" } },
  }) as unknown as Decision;

describe("noteOf", () => {
  it("says that more is wanted than max scale, whichever policy keeps it", () => {
    expect(noteOf(kpa("max-scale"))?.reason).toBe("MaxScaleReached");
    expect(noteOf(cloudRun({ winner: "max-instances", cpus: 1, cpu1m: 0.5 }))?.message).toContain("max scale (3)");
    expect(noteOf(cloudRun({ atMaximum: 2, cpus: 1, cpu1m: 0.5 }))?.reason).toBe("MaxScaleReached");
    expect(noteOf(cloudRun({ winner: "max-instances-overshoot", cpus: 1, cpu1m: 1 }))?.reason).toBe("MaxScaleExceeded");
  });

  it("says that the number stays without data", () => {
    expect(noteOf(kpa("none", false))?.reason).toBe("ScalingHeld");
    expect(noteOf(kpa("none"))).toBeUndefined();
  });

  it("says that CPU does not count, once it should have been measured", () => {
    expect(noteOf(cloudRun({}))?.message).toContain("no CPU limit");
    expect(noteOf(cloudRun({ cpus: 1 }))?.message).toContain("kubelets");
    expect(noteOf(cloudRun({ cpus: 1, readyForMs: 5_000 }))).toBeUndefined();
    expect(noteOf(cloudRun({ cpus: 1, cpu1m: 0.1 }))).toBeUndefined();
  });
});
