/** Our side of hack/oracles/kpa/bench.go: the same cases, the same work per operation. */
import { resolveKpaSpec } from "../../core/autoscaling/config.ts";
import { DEFAULT_AUTOSCALER_CONFIG } from "../../core/autoscaling/config.ts";
import { decide, initialKpaState } from "../../core/autoscaling/kpa.ts";
import { RevisionWindows } from "../../core/autoscaling/revision-windows.ts";

export interface DecisionCost {
  readonly name: string;
  /** Two seconds of load recorded, then a decision. */
  readonly tickNs: number;
  /** The decision alone: both windows' averages and every rule. */
  readonly decisionNs: number;
}

const CASES: readonly { name: string; delayMs: number; load: (second: number) => number }[] = [
  { name: "steady", delayMs: 0, load: () => 35 },
  { name: "spiky", delayMs: 0, load: second => 20 + 400 * (Math.floor(second / 30) % 2) },
  { name: "scale-down delay", delayMs: 600_000, load: second => 200 - (second % 180) },
];

const MEASURE_MS = 1000;
const BATCH = 20_000;

/** Runs batches for about a second and gives the time of one operation. */
function perOperation(operation: (i: number) => void): number {
  let count = 0;
  const begun = performance.now();
  let elapsed = 0;
  while (elapsed < MEASURE_MS) {
    for (let i = 0; i < BATCH; i++) operation(count + i);
    count += BATCH;
    elapsed = performance.now() - begun;
  }
  return (elapsed * 1e6) / count;
}

function runner(delayMs: number, load: (second: number) => number, record: boolean): (i: number) => void {
  const spec = resolveKpaSpec(DEFAULT_AUTOSCALER_CONFIG, { scaleDownDelayMs: delayMs }, 10, true);
  const windows = new RevisionWindows({ ...spec, scraped: true });
  let readyPods = 5;
  let nowMs = 1_700_000_000_000;
  let state = initialKpaState(readyPods, nowMs);
  const second = (n: number): void => {
    const value = load(n) / 3;
    for (let source = 0; source < 3; source++) windows.record(nowMs, value, value);
    nowMs += 1000;
  };
  for (let n = 0; n < 120; n++) second(n);
  return i => {
    if (record) {
      second(2 * i);
      second(2 * i + 1);
    }
    const decision = decide(spec, { readyPods, load: windows.load(spec.metric, nowMs) }, state, nowMs);
    if (!decision.valid) throw new Error(decision.reason);
    state = decision.next;
    readyPods = Math.max(1, decision.desired);
  };
}

export function measureDecisions(): DecisionCost[] {
  return CASES.map(({ name, delayMs, load }) => ({
    name,
    tickNs: perOperation(runner(delayMs, load, true)),
    decisionNs: perOperation(runner(delayMs, load, false)),
  }));
}
