/**
 * A decision in words: every rule with its number, which one won, and what is waited for. For `fairway why`, the simulator and events.
 */
import type { CloudRunSpec } from "./cloud-run-spec.ts";
import type { CloudRunExplanation } from "./cloud-run.ts";
import type { KpaExplanation, KpaInvalidReason, KpaSpec } from "./kpa.ts";
import type { LifecycleRule } from "./lifecycle.ts";
import type { PolicyDecision, RevisionSpec, ScaleOutcome } from "./scale-revision.ts";

export interface RuleLine {
  readonly rule: string;
  /** The number of pods the rule stands for; undefined when it gives none. */
  readonly pods: number | undefined;
  readonly text: string;
  readonly won: boolean;
}

export interface Explanation {
  /** Pods wanted in the end; undefined while unknown. */
  readonly pods: number | undefined;
  /** Name of the rule that fixed the number. */
  readonly winner: string;
  readonly lines: readonly RuleLine[];
  /** What has to happen before the number changes by itself; undefined when nothing is awaited. */
  readonly waitsFor: string | undefined;
  /** When the wait ends by time alone. */
  readonly untilMs: number | undefined;
}

/** Shown for the rule of hold.ts. */
export const HOLD_RULE = "awaiting-started-pods";

/** Shown for instances that were demoted and do not stop yet. */
export const DEMOTED_RULE = "demoted-instances";

type Line = Omit<RuleLine, "won">;

const round = (value: number): string => String(Number(value.toFixed(2)));
const percent = (value: number): string => `${Math.round(value * 100)} %`;
const seconds = (ms: number): string => `${round(ms / 1000)} s`;

function kpaLines(spec: KpaSpec, e: KpaExplanation): Line[] {
  const unit = spec.metric === "rps" ? "requests/s" : "requests in flight";
  const lines: Line[] = [
    {
      rule: "stable-window",
      pods: e.stableWanted,
      text: `${round(e.stableValue)} ${unit} over ${seconds(spec.stableWindowMs)} / ${round(e.targetValue)} a pod`,
    },
    {
      rule: "panic-window",
      pods: e.panicWanted,
      text:
        `${round(e.panicValue)} ${unit} over ${seconds(spec.panicWindowMs)} / ${round(e.targetValue)} a pod; ` +
        `${round(e.panicRatio)} of the ready pods, panic from ${round(e.panicThreshold)} on (${e.panicEvent})`,
    },
    {
      rule: "max-scale-up-rate",
      pods: e.maxScaleUp,
      text: `at most ${round(spec.maxScaleUpRate)} times the ready pods (${e.readyPods})`,
    },
    {
      rule: "max-scale-down-rate",
      pods: e.maxScaleDown,
      text: spec.reachable
        ? `at least the ready pods (${e.readyPods}) / ${round(spec.maxScaleDownRate)}`
        : "no route leads here: no limit downwards",
    },
  ];
  if (spec.activationScale > 1) {
    lines.push({ rule: "activation-scale", pods: spec.activationScale, text: "the least there is with any load" });
  }
  if (e.panicRatchet > 0) {
    lines.push({ rule: "panic-ratchet", pods: e.panicRatchet, text: "in panic the number only goes up" });
  }
  if (spec.scaleDownDelayMs > 0) {
    lines.push({
      rule: "scale-down-delay",
      pods: undefined,
      text: `the most of the last ${seconds(spec.scaleDownDelayMs)} (now ${e.beforeDelay})`,
    });
  }
  return lines;
}

/** What the CPU driver goes by, or why it does not count. */
function cpuText({ cpus, cpuTarget }: CloudRunSpec, { load, drivers }: CloudRunExplanation): string {
  if (cpuTarget === "disabled") return "switched off";
  if (cpus === undefined) return "does not count: a container has no CPU limit";
  const cpu = load?.cpu1m;
  return cpu === undefined ? "not measured" : `${round(cpu)} CPUs over 1 min: ${round(drivers.cpu)} instances`;
}

function cloudRunLines(spec: CloudRunSpec, e: CloudRunExplanation): Line[] {
  const { drivers, onDemand } = e;
  const lines: Line[] = [
    {
      rule: "concurrency-driver",
      pods: Math.ceil(drivers.concurrency),
      text:
        e.load === undefined
          ? "no data"
          : `${round(e.load.concurrency1m)} in flight over 1 min, ${round(e.load.concurrency10m)} over 10 min: ` +
            `${round(drivers.concurrency)} instances`,
    },
    {
      rule: "cpu-driver",
      pods: Math.ceil(drivers.cpu),
      text: cpuText(spec, e),
    },
    { rule: e.metricsRule, pods: e.byMetrics, text: `${percent(e.utilization)} of ${e.instances} instances in use` },
    {
      rule: "on-demand",
      pods: e.waiting > 0 ? e.instances + onDemand.newInstances : undefined,
      text:
        e.waiting > 0
          ? `${e.waiting} wait: ${onDemand.byStarting} for starting instances, ${onDemand.byRunning} for running ones, ` +
            `${onDemand.byNew} for ${onDemand.newInstances} new, ${onDemand.atMaximum} at the maximum; ` +
            (e.haveRoom > 0 ? `${e.haveRoom} have room at instances that are ready; ` : "") +
            `a start takes ${seconds(e.expectedStartMs)}`
          : `no request waits for a place; a start takes ${seconds(e.expectedStartMs)}`,
    },
  ];
  if (e.minInstances > 0) lines.push({ rule: "min-instances", pods: e.minInstances, text: "never fewer" });
  lines.push({ rule: "max-instances", pods: e.maxInstances, text: "never more" });
  if (e.winner === "on-demand-settling") {
    lines.push({ rule: e.winner, pods: e.recommendedBefore, text: "kept for a minute after a request started it" });
  }
  if (e.winner === "max-instances-overshoot") {
    lines.push({ rule: e.winner, pods: e.beforeBounds, text: "over the maximum, as the service allows for a while" });
  }
  if (e.winner === "idle-timeout") {
    lines.push({ rule: e.winner, pods: e.beforeBounds, text: "the others had no request for the idle time-out" });
  }
  if (e.winner === "unreachable")
    lines.push({ rule: e.winner, pods: 0, text: "no route leads here, nothing is in flight" });
  for (const stop of e.stops) lines.push({ rule: stop.rule, pods: undefined, text: `${stop.name} stops` });
  return lines;
}

/** Why there was no decision. */
const NO_DECISION: Readonly<Record<KpaInvalidReason, string>> = {
  "no-data-in-window":
    "nothing was heard of its load for a whole window, and silence is not zero: the last number stays",
  "not-collecting": "its load is not collected yet: the last number stays",
  "pods-unknown": "its ready pods could not be counted: the last number stays",
};

function policyLines(spec: RevisionSpec, decision: PolicyDecision): Line[] {
  if (!decision.valid) {
    return [{ rule: decision.reason, pods: undefined, text: NO_DECISION[decision.reason] }];
  }
  switch (decision.policy) {
    case "kpa":
      return spec.policy.kind === "kpa" ? kpaLines(spec.policy.kpa, decision.explanation) : [];
    case "cloud-run":
      return spec.policy.kind === "cloud-run" ? cloudRunLines(spec.policy.cloudRun, decision.explanation) : [];
    case "manual":
      return [{ rule: "manual", pods: decision.explanation.instances, text: "a fixed number of instances" }];
  }
}

function boundLines({ lifecycle, policy }: RevisionSpec, reached: boolean): Line[] {
  const { min, max, initial } = lifecycle.bounds;
  const lines: Line[] = [];
  if (!reached && initial > 1 && lifecycle.reachable) {
    lines.push({ rule: "initial-scale", pods: initial, text: "until so many were ready once" });
  }
  // Cloud Run's policy has its own, and says so.
  if (policy.kind === "cloud-run") return lines;
  if (min > 0) lines.push({ rule: "min-scale", pods: min, text: "never fewer" });
  if (max > 0) lines.push({ rule: "max-scale", pods: max, text: "never more" });
  return lines;
}

/** The steps of the path to zero, and what each waits for. */
const LIFECYCLE: Readonly<
  Record<Exclude<LifecycleRule, "desired">, { readonly text: string; readonly waitsFor?: string }>
> = {
  "awaiting-decision": { text: "nothing was decided yet", waitsFor: "data of the revision" },
  "scale-to-zero-disabled": { text: "enable-scale-to-zero is false: one pod stays" },
  "awaiting-activation": { text: "pods are starting", waitsFor: "ready pods, or the activation to time out" },
  "activation-timed-out": { text: "no pod became ready in time" },
  "unreachable-never-ready": { text: "no route leads here and no pod is ready" },
  "active-less-than-stable-window": {
    text: "active for less than the stable window: one pod stays",
    waitsFor: "the end of the stable window",
  },
  deactivating: { text: "no request in the stable window", waitsFor: "the gateways to be in the path" },
  "awaiting-gateways-in-path": {
    text: "pods may still be reached directly",
    waitsFor: "the gateways to be in the path",
  },
  "awaiting-pod-retention": { text: "the last pod is retained", waitsFor: "the pod retention period" },
  "awaiting-grace-period": { text: "the gateways have just taken over", waitsFor: "the scale-to-zero grace period" },
  "scaled-to-zero": { text: "no request, the gateways are in the path" },
};

/** Instances that are not recommended any more and stay for a while, under Cloud Run's policy. */
function stayingDemoted({ decision, desired, next }: ScaleOutcome): number {
  if (!decision.valid || decision.policy !== "cloud-run" || next.policy?.kind !== "cloud-run") return 0;
  return Math.max(0, (desired ?? 0) - next.policy.cloudRun.recommended);
}

function winnerOf(outcome: ScaleOutcome): string {
  const { decision, held, step } = outcome;
  if (step.rule !== "desired" && step.rule !== "awaiting-decision") return step.rule;
  if (step.bound !== "none") return step.bound;
  if (held) return HOLD_RULE;
  if (stayingDemoted(outcome) > 0) return DEMOTED_RULE;
  return decision.valid ? decision.explanation.winner : decision.reason;
}

/** `outcome` as scaleRevision gave it for `spec`. Not for the hot path: call it when somebody asks. */
export function explain(spec: RevisionSpec, outcome: ScaleOutcome): Explanation {
  const { step, decision } = outcome;
  const winner = winnerOf(outcome);
  const lines = policyLines(spec, decision);
  const { policy } = outcome.next;
  if (policy?.kind === "kpa" && policy.hold.kind !== "none") {
    lines.push({ rule: HOLD_RULE, pods: policy.hold.pods, text: "panic asked for them, they are not all ready yet" });
  }
  const demoted = stayingDemoted(outcome);
  if (demoted > 0) {
    lines.push({
      rule: DEMOTED_RULE,
      pods: outcome.desired,
      text: `${demoted} of them no more recommended: they get requests last, and stop when idle`,
    });
  }
  lines.push(...boundLines(spec, outcome.next.lifecycle.initialScaleReached));
  const lifecycle = step.rule === "desired" ? undefined : LIFECYCLE[step.rule];
  if (lifecycle !== undefined) lines.push({ rule: step.rule, pods: step.replicas, text: lifecycle.text });
  if (!lines.some(line => line.rule === winner)) lines.push({ rule: winner, pods: outcome.desired, text: "" });
  return {
    pods: step.wanted,
    winner,
    lines: lines.map(line => ({ ...line, won: line.rule === winner })),
    waitsFor: lifecycle?.waitsFor ?? (winner === DEMOTED_RULE ? "demoted instances to be idle long enough" : undefined),
    untilMs: step.recheckAtMs,
  };
}
