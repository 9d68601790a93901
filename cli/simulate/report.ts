import type { SimulationResult, TimelinePoint } from "../../core/simulation/result.ts";
import { blockChart } from "../render/block-chart.ts";
import { formatMs } from "../render/format.ts";
import { renderTable } from "../render/table.ts";
import type { Terminal } from "../terminal.ts";

/** Changes of the number of pods that are listed; the others are in the JSON. */
const MOST_CHANGES = 15;
const MOST_FLOWS = 10;
const WIDEST_CHART = 100;

/** The results for a person: a table, pictures, and why the number of pods changed. */
export function renderReport(results: readonly SimulationResult[], terminal: Terminal, pictures: boolean): string {
  const parts = [summary(results)];
  for (const result of results) if (result.flows.length > 1) parts.push(flows(result, terminal));
  if (pictures) parts.push(charts(results, terminal));
  for (const result of results) parts.push(changes(result, terminal));
  return parts.join("\n");
}

const right = (head: string) => ({ head, align: "right" }) as const;

interface SummaryColumn {
  readonly head: string;
  readonly cell: (result: SimulationResult) => string;
  /** Left out when it is zero for all. */
  readonly onlyIfAny?: (result: SimulationResult) => number;
}

const counted = (head: string, count: (result: SimulationResult) => number): SummaryColumn => ({
  head,
  cell: result => String(count(result)),
  onlyIfAny: count,
});

const SUMMARY: readonly SummaryColumn[] = [
  { head: "requests", cell: ({ requests }) => String(requests.arrived) },
  { head: "ok", cell: ({ requests }) => String(requests.completed) },
  counted("429 full", ({ requests }) => requests.queueFull),
  counted("429 waited", ({ requests }) => requests.waitedTooLong),
  counted("504", ({ requests }) => requests.timedOut),
  counted("unfinished", ({ requests }) => requests.unfinished),
  { head: "cold starts", cell: ({ pods }) => String(pods.coldStarts) },
  { head: "p50", cell: ({ latencyMs }) => formatMs(latencyMs.p50) },
  { head: "p95", cell: ({ latencyMs }) => formatMs(latencyMs.p95) },
  { head: "p99", cell: ({ latencyMs }) => formatMs(latencyMs.p99) },
  { head: "wait p95", cell: ({ waitMs }) => formatMs(waitMs.p95) },
  { head: "most pods", cell: ({ pods }) => String(pods.most) },
  { head: "started", cell: ({ pods }) => String(pods.started) },
  { head: "pod-seconds", cell: ({ pods }) => String(Math.round(pods.podSeconds)) },
];

function summary(results: readonly SimulationResult[]): string {
  const shown = SUMMARY.filter(({ onlyIfAny }) => onlyIfAny === undefined || results.some(one => onlyIfAny(one) > 0));
  return renderTable(
    [{ head: "policy" }, ...shown.map(({ head }) => right(head))],
    results.map(result => [result.name, ...shown.map(({ cell }) => cell(result))]),
  );
}

function flows({ name, flows: list }: SimulationResult, terminal: Terminal): string {
  const shown = list.slice(0, MOST_FLOWS);
  const table = renderTable(
    [{ head: "flow" }, ...["requests", "ok", "refused", "p50", "p95", "p99"].map(right)],
    shown.map(({ flow, arrived, completed, refused, latencyMs }) => [
      flow,
      String(arrived),
      String(completed),
      String(refused),
      formatMs(latencyMs.p50),
      formatMs(latencyMs.p95),
      formatMs(latencyMs.p99),
    ]),
  );
  const more = list.length > shown.length ? `... and ${list.length - shown.length} more flows\n` : "";
  return `${terminal.style("bold", `${name}: flows`)}\n${table}${more}`;
}

const largest = (points: readonly TimelinePoint[], of: (point: TimelinePoint) => number): number =>
  points.reduce((most, point) => Math.max(most, of(point)), 0);

/** The load once, then pods and queue of each policy, all on one scale. */
function charts(results: readonly SimulationResult[], terminal: Terminal): string {
  const [first] = results;
  if (first === undefined) return "";
  const width = Math.min(WIDEST_CHART, Math.max(20, terminal.columns - 12));
  const topPods = Math.max(...results.map(({ timeline }) => largest(timeline, point => point.readyPods)));
  const topQueue = Math.max(...results.map(({ timeline }) => largest(timeline, point => point.waiting)));
  const stepS = stepSeconds(first.timeline);
  const title = (text: string): string => terminal.style("bold", text);
  const chart = (values: readonly number[], height: number, top: number, pooling: "max" | "mean"): string[] =>
    blockChart(values, { width, height, pooling, top, label: value => String(Number(value.toPrecision(3))) });

  const rates = first.timeline.slice(1).map(point => point.arrived / stepS);
  const lines = [
    title("requests per second"),
    ...chart(
      rates,
      3,
      rates.reduce((most, rate) => Math.max(most, rate), 0),
      "mean",
    ),
  ];
  for (const { name, timeline } of results) {
    lines.push(
      title(`${name}: ready pods`),
      ...chart(
        timeline.map(point => point.readyPods),
        5,
        topPods,
        "max",
      ),
    );
    if (topQueue > 0) {
      lines.push(
        title(`${name}: waiting requests`),
        ...chart(
          timeline.map(point => point.waiting),
          3,
          topQueue,
          "max",
        ),
      );
    }
  }
  const end = formatMs(first.horizonMs);
  lines.push(terminal.style("dim", `from 0 to ${end}, ${formatMs(first.horizonMs / width)} a column`));
  return `${lines.join("\n")}\n`;
}

function stepSeconds(timeline: readonly TimelinePoint[]): number {
  const [first, second] = timeline;
  return first === undefined || second === undefined ? 1 : (second.atMs - first.atMs) / 1000;
}

function changes({ name, decisions }: SimulationResult, terminal: Terminal): string {
  const changed = decisions.filter(({ from, to }) => from !== to);
  const heading = terminal.style("bold", `${name}: why the number of pods changed`);
  if (changed.length === 0) return `${heading}\nit never did\n`;
  const shown = changed.slice(0, MOST_CHANGES);
  const table = renderTable(
    [right("at"), { head: "pods" }, { head: "rule" }, { head: "because" }],
    shown.map(({ atMs, from, to, rule, because }) => [formatMs(atMs), `${from} -> ${to}`, rule, because]),
  );
  const more = changed.length > shown.length ? `... and ${changed.length - shown.length} more (-o json has all)\n` : "";
  return `${heading}\n${table}${more}`;
}
