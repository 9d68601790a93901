import type { Condition } from "../../api/conditions.ts";
import type { ScalingDebug } from "../../api/wire/why.ts";
import { formatMs, formatNumber, plural } from "../render/format.ts";
import { renderTable } from "../render/table.ts";
import type { Terminal } from "../terminal.ts";
import type { Why, WhyRevision } from "./read-why.ts";

/** The explanation for a person, one section for each revision. */
export function renderWhy(why: Why, terminal: Terminal, nowMs: number): string {
  return why.revisions.map(revision => section(why, revision, terminal, nowMs)).join("\n");
}

function section(why: Why, revision: WhyRevision, terminal: Terminal, nowMs: number): string {
  const title = terminal.style("bold", `${why.namespace}/${revision.revision}`);
  const share = `${revision.percent} % of the traffic of ${why.service}`;
  const { scaling } = revision;
  const parts =
    scaling === undefined
      ? [`${title}: not decided (${share})`, `  ${revision.undecided ?? "the operator knows nothing of it"}`]
      : [`${title}: ${headline(scaling)} (${share})`, ...facts(scaling, nowMs), "", ...rules(scaling, terminal)];
  if (scaling !== undefined) parts.push(...instances(scaling));
  parts.push("", ...conditions(revision.conditions, terminal));
  return `${parts.join("\n")}\n`;
}

function headline({ decision, explanation }: ScalingDebug): string {
  const { pods, winner } = explanation;
  const { replicasBefore, observation, outcome } = decision;
  const ready = `${observation.readyPods ?? "?"} ready`;
  const held = pods ?? replicasBefore;
  if (winner === outcome.decision.reason && held !== undefined)
    return `stays at ${plural(held, "pod")} without a decision (${winner}), ${ready}`;
  if (pods !== undefined) return `${plural(pods, "pod")} wanted by ${winner}, ${ready}`;
  if (replicasBefore === undefined) return `number of pods not known yet (${winner}), ${ready}`;
  return `stays at ${plural(replicasBefore, "pod")} by ${winner}, ${ready}`;
}

function facts(scaling: ScalingDebug, nowMs: number): string[] {
  const { decision, explanation } = scaling;
  const { spec, observation, outcome, atMs, livePods } = decision;
  const { load } = observation;
  const { activity } = outcome.next.lifecycle;
  const lines: [string, string][] = [
    ["decided", `${ago(atMs, nowMs)} by policy ${spec.policy.kind}`],
    ["pods", `${observation.readyPods ?? "?"} ready of ${livePods}`],
  ];
  if (load.kind === "measured" && spec.policy.kind === "kpa") {
    lines.push([
      "observed",
      `${formatNumber(load.stable)} (stable window), ${formatNumber(load.panic)} (panic window)`,
    ]);
  }
  if (!outcome.decision.valid) lines.push(["no decision", outcome.decision.reason ?? "unknown"]);
  lines.push(...silence(scaling, nowMs));
  lines.push([
    "state",
    `${activity.phase} for ${formatMs(nowMs - activity.sinceMs)}${activity.reason === undefined ? "" : ` (${activity.reason})`}`,
  ]);
  const capacity = outcome.excessBurstCapacity;
  lines.push([
    "path",
    outcome.step.mode === "proxy"
      ? `proxy: in-cluster requests pass the gateways (excess burst capacity ${formatNumber(capacity)})`
      : `serve: in-cluster requests may go to the pods (excess burst capacity ${formatNumber(capacity)})`,
  ]);
  if (outcome.decision.pendingTimeoutMs !== undefined) {
    lines.push(["requests wait", `at most ${formatMs(outcome.decision.pendingTimeoutMs)} for a place`]);
  }
  const { lastChange } = scaling;
  if (lastChange !== undefined) {
    const { from, to, winner, pokedMs, atMs: changedMs } = lastChange;
    const cause = pokedMs === undefined ? "" : ", at once as requests found no place";
    lines.push(["last change", `${from} -> ${plural(to, "pod")} ${ago(changedMs, nowMs)} by ${winner}${cause}`]);
  }
  const { waitsFor, untilMs } = explanation;
  if (waitsFor !== undefined || untilMs !== undefined) {
    const until =
      untilMs === undefined ? "" : untilMs > nowMs ? `, at latest in ${formatMs(untilMs - nowMs)}` : ", due now";
    lines.push(["waits for", `${waitsFor ?? "time to pass"}${until}`]);
  }
  const widest = Math.max(...lines.map(([name]) => name.length));
  return lines.map(([name, text]) => `  ${name.padEnd(widest)}  ${text}`);
}

/** Each source of numbers tells once a second. */
const SILENT_MS = 5_000;

/** Who should tell of the load, when there is no decision or somebody is silent. */
function silence({ sources, decision }: ScalingDebug, nowMs: number): [string, string][] {
  if (sources === undefined) return [];
  const isSilent = (atMs: number | undefined): boolean => atMs === undefined || nowMs - atMs > SILENT_MS;
  const asked = sources.scraped && (decision.observation.readyPods ?? 0) > 0;
  const allTell =
    sources.gateways.length > 0 &&
    !sources.gateways.some(({ heardMs }) => isSilent(heardMs)) &&
    !(asked && isSilent(sources.answeredMs));
  if (allTell && decision.outcome.decision.valid) return [];
  const when = (atMs: number | undefined): string => (atMs === undefined ? "never" : ago(atMs, nowMs));
  const gateways = sources.gateways.map(({ name, heardMs }) => `${name} ${when(heardMs)}`);
  const pods = !sources.scraped
    ? "not asked: all requests pass the gateways"
    : asked
      ? when(sources.answeredMs)
      : "none is ready to be asked";
  return [
    ["gateways told", gateways.length === 0 ? "there are none" : gateways.join(", ")],
    ["pods answered", pods],
  ];
}

function rules({ explanation }: ScalingDebug, terminal: Terminal): string[] {
  const table = renderTable(
    [{ head: "" }, { head: "rule" }, { head: "pods", align: "right" }, { head: "because" }],
    explanation.lines.map(line => {
      const cells = [line.won ? "*" : "", line.rule, line.pods === undefined ? "" : formatNumber(line.pods), line.text];
      return line.won ? cells.map(cell => terminal.style("green", cell)) : cells;
    }),
  );
  return indented(table);
}

function instances({ decision, adaptations = [] }: ScalingDebug): string[] {
  const groups = new Map((decision.outcome.decision.demoted ?? []).map(one => [one.name, one.group]));
  const names = [...new Set([...adaptations.map(({ name }) => name), ...groups.keys()])].sort();
  if (names.length === 0) return [];
  const adapted = new Map(adaptations.map(adaptation => [adaptation.name, adaptation]));
  const table = renderTable(
    [
      { head: "instance" },
      { head: "max concurrency", align: "right" },
      { head: "cpu", align: "right" },
      { head: "adaptation" },
      { head: "demoted" },
    ],
    names.map(name => {
      const { maximum, cpu, rule } = adapted.get(name) ?? {};
      return [
        name,
        maximum === undefined ? "" : String(maximum),
        cpu === undefined ? "" : `${Math.round(cpu * 100)} %`,
        rule ?? "",
        groups.get(name) === undefined ? "" : `${groups.get(name)} group`,
      ];
    }),
  );
  return ["", ...indented(table)];
}

function conditions(list: readonly Condition[], terminal: Terminal): string[] {
  if (list.length === 0) return ["  the revision has no conditions yet"];
  const colour = { True: "green", False: "red", Unknown: "yellow" } as const;
  const table = renderTable(
    [{ head: "condition" }, { head: "status" }, { head: "reason" }, { head: "message" }],
    list.map(({ type, status, reason = "", message = "" }) => [
      type,
      terminal.style(colour[status], status),
      reason,
      message,
    ]),
  );
  return indented(table);
}

const indented = (table: string): string[] =>
  table
    .trimEnd()
    .split("\n")
    .map(line => `  ${line}`.trimEnd());

function ago(atMs: number, nowMs: number): string {
  const ms = nowMs - atMs;
  return ms < 100 ? "now" : `${formatMs(ms)} ago`;
}
