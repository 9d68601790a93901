import type { SimulationResult, TimelinePoint } from "../../core/simulation/result.ts";
import { formatMs, formatNumber } from "../render/format.ts";
import { renderSvg } from "../render/svg-chart.ts";

/** The results as one SVG: load, ready pods, waiting requests and latency over time, a colour for each policy. */
export function renderPicture(results: readonly SimulationResult[], subtitle: string): string {
  const [first] = results;
  const timeline = first?.timeline ?? [];
  const stepS = timeline.length > 1 ? (timeline[1]!.atMs - timeline[0]!.atMs) / 1000 : 1;
  const seriesOf = (value: (point: TimelinePoint) => number) =>
    results.map(result => ({ name: result.name, values: result.timeline.map(value) }));
  return renderSvg({
    title: "fairway simulate",
    subtitle,
    names: results.map(result => result.name),
    timesMs: timeline.map(point => point.atMs),
    timeLabel: formatMs,
    panels: [
      {
        title: "requests per second",
        shape: "line",
        series: [{ name: "load", values: timeline.map(point => point.arrived / stepS) }],
        label: formatNumber,
      },
      { title: "ready pods", shape: "step", series: seriesOf(point => point.readyPods), label: formatNumber },
      { title: "waiting requests", shape: "line", series: seriesOf(point => point.waiting), label: formatNumber },
      {
        title: "latency, 95th percentile",
        shape: "line",
        series: seriesOf(point => point.latencyP95Ms),
        label: formatMs,
      },
    ],
  });
}
