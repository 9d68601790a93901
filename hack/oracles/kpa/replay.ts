/**
 * Plays one trace of hack/oracles/kpa through our windows, settings and decision, and compares every result of the original.
 * The format is described in trace.go.
 */
import type { AutoscalerConfig, RevisionScaling } from "../../../core/autoscaling/config.ts";
import { resolveKpaSpec } from "../../../core/autoscaling/config.ts";
import type { KpaDecision, KpaSpec, KpaState } from "../../../core/autoscaling/kpa.ts";
import { decide, initialExcessBurstCapacity, initialKpaState } from "../../../core/autoscaling/kpa.ts";
import { resolveBounds } from "../../../core/autoscaling/bounds.ts";
import type { WindowsSpec } from "../../../core/autoscaling/revision-windows.ts";
import { RevisionWindows } from "../../../core/autoscaling/revision-windows.ts";
import type { Difference } from "../oracle.ts";

type OriginalSpec = Omit<KpaSpec, "aggregation" | "panicWindowMs"> & { readonly initialScale: number };

interface Settings {
  readonly config: AutoscalerConfig;
  readonly scaling: RevisionScaling;
  readonly containerConcurrency: number;
  readonly reachable: boolean;
  readonly spec: OriginalSpec;
  readonly panicWindowMs: number;
  readonly initialEbc: number;
}

interface Trace {
  readonly number: number;
  readonly label: string;
  readonly startMs: number;
  readonly settings: readonly Settings[];
  readonly events: readonly (readonly number[])[];
}

const EVENT = { record: 0, scrape: 1, tick: 2, settings: 3, start: 4 } as const;
/** Ready counts that stand for an error of the original's pod lister. */
const PODS_UNKNOWN = -1;
const PODS_NOT_FOUND = -2;

function compareSettings(settings: Settings): { spec: KpaSpec; difference: string | undefined } {
  const spec = resolveKpaSpec(settings.config, settings.scaling, settings.containerConcurrency, settings.reachable);
  const { initial } = resolveBounds(settings.config, settings.scaling, settings.reachable);
  const { aggregation: _, ...numbers } = spec;
  const ours: Record<string, unknown> = {
    ...numbers,
    initialScale: initial,
    initialEbc: initialExcessBurstCapacity(spec, initial),
  };
  const theirs: Record<string, unknown> = {
    ...settings.spec,
    panicWindowMs: settings.panicWindowMs,
    initialEbc: settings.initialEbc,
  };
  const wrong = Object.keys({ ...ours, ...theirs }).find(field => ours[field] !== theirs[field]);
  return {
    spec,
    difference: wrong === undefined ? undefined : `${wrong} is ${String(ours[wrong])}, want ${String(theirs[wrong])}`,
  };
}

function windowsSpec(spec: KpaSpec): WindowsSpec {
  // The original scrapes nothing where target burst capacity is -1.
  return {
    aggregation: spec.aggregation,
    stableWindowMs: spec.stableWindowMs,
    panicWindowMs: spec.panicWindowMs,
    scraped: spec.targetBurstCapacity !== -1,
  };
}

/** Undefined when all is equal; else the first difference. `observe` hears of each decision. */
export function replay(line: string, observe?: (decision: KpaDecision, spec: KpaSpec) => void): Difference | undefined {
  const trace = JSON.parse(line) as Trace;
  const differ = (where: string, detail: string): Difference => ({
    scenario: trace.number,
    label: trace.label,
    where,
    detail,
  });
  const specs: KpaSpec[] = [];
  for (const [index, settings] of trace.settings.entries()) {
    const { spec, difference } = compareSettings(settings);
    if (difference !== undefined) return differ(`settings ${index}`, difference);
    specs.push(spec);
  }

  let spec = specs[0]!;
  let windows = new RevisionWindows(windowsSpec(spec));
  let state: KpaState = initialKpaState(0, trace.startMs);
  let ticks = 0;
  for (const [kind, sinceStartMs, a = 0, b = 0, c = 0, d = 0] of trace.events) {
    const nowMs = trace.startMs + sinceStartMs!;
    switch (kind) {
      case EVENT.record:
        windows.record(trace.startMs + a, b, c);
        break;
      case EVENT.scrape:
        windows.record(nowMs, a - b, c - d);
        break;
      case EVENT.settings:
        spec = specs[a]!;
        windows.update(windowsSpec(spec), nowMs);
        break;
      case EVENT.start:
        windows = new RevisionWindows(windowsSpec(spec));
        state = initialKpaState(Math.max(a, 0), nowMs);
        break;
      case EVENT.tick: {
        ticks++;
        const readyPods = a === PODS_UNKNOWN ? undefined : a === PODS_NOT_FOUND ? 0 : a;
        const load = windows.load(spec.metric, nowMs);
        const decision = decide(spec, { readyPods, load }, state, nowMs);
        observe?.(decision, spec);
        const ours = decision.valid ? [decision.desired, decision.excessBurstCapacity, 1] : [0, 0, 0];
        if (ours[0] !== b || ours[1] !== c || ours[2] !== d) {
          return differ(
            `tick ${ticks} at ${sinceStartMs} ms`,
            `[desired, excess burst capacity, valid] is ${JSON.stringify(ours)}, want ${JSON.stringify([b, c, d])}; ` +
              `load ${JSON.stringify(load)}, ready ${a}`,
          );
        }
        if (decision.valid) state = decision.next;
        break;
      }
      default:
        return differ(`event at ${sinceStartMs} ms`, `unknown kind ${kind}`);
    }
  }
  return undefined;
}
