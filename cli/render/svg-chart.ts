/** Line charts one above the other with a common time axis, as SVG. Pure: the same input gives the same text. */

export interface Series {
  readonly name: string;
  readonly values: readonly number[];
}

export interface Panel {
  readonly title: string;
  /** `line` joins points, `step` holds a value until the next one. */
  readonly shape: "line" | "step";
  readonly series: readonly Series[];
  readonly label: (value: number) => string;
}

export interface SvgChart {
  readonly title: string;
  readonly subtitle: string;
  /** Names in the legend; their order gives the colours. */
  readonly names: readonly string[];
  readonly panels: readonly Panel[];
  /** The times of the values of every series. */
  readonly timesMs: readonly number[];
  readonly timeLabel: (ms: number) => string;
}

/** Okabe and Ito's colours: told apart with any colour vision. */
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"] as const;
/** For series that belong to no name of the legend. */
const NEUTRAL = "#555555";

const WIDTH = 960;
const MARGIN = { left: 70, right: 20, top: 104, bottom: 40 } as const;
const PANEL_HEIGHT = 120;
const PANEL_GAP = 34;
const TIME_TICKS = 6;

const escape = (text: string): string =>
  text.replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]!);
const fixed = (value: number): string => String(Number(value.toFixed(1)));

/** The next of 1, 2, 2.5, 5, 10 times a power of ten. */
export function niceCeiling(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 2.5, 5, 10].find(factor => factor * power >= value * (1 - 1e-9))!;
  return step * power;
}

export function renderSvg(chart: SvgChart): string {
  const height = MARGIN.top + chart.panels.length * (PANEL_HEIGHT + PANEL_GAP) - PANEL_GAP + MARGIN.bottom;
  const endMs = chart.timesMs.at(-1) ?? 0;
  const x = (ms: number): number =>
    MARGIN.left + (endMs === 0 ? 0 : (ms / endMs) * (WIDTH - MARGIN.left - MARGIN.right));
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" ` +
      `role="img" font-family="DejaVu Sans, Verdana, sans-serif" font-size="12">`,
    `<title>${escape(chart.title)}</title>`,
    `<rect width="100%" height="100%" fill="#ffffff"/>`,
    text(MARGIN.left, 26, chart.title, 'font-size="16" font-weight="bold"'),
    text(MARGIN.left, 44, chart.subtitle, `fill="${NEUTRAL}"`),
    ...legend(chart.names),
  ];
  chart.panels.forEach((panel, i) => {
    const top = MARGIN.top + i * (PANEL_HEIGHT + PANEL_GAP);
    lines.push(...drawPanel(panel, chart, top, x));
  });
  const axisY = height - MARGIN.bottom + 18;
  for (let tick = 0; tick <= TIME_TICKS; tick++) {
    const ms = (endMs * tick) / TIME_TICKS;
    const anchor = tick === 0 ? "start" : tick === TIME_TICKS ? "end" : "middle";
    lines.push(text(x(ms), axisY, chart.timeLabel(ms), `fill="${NEUTRAL}" text-anchor="${anchor}"`));
  }
  return `${[...lines, "</svg>"].join("\n")}\n`;
}

function text(x: number, y: number, content: string, attributes: string): string {
  return `<text x="${fixed(x)}" y="${fixed(y)}" ${attributes}>${escape(content)}</text>`;
}

const colourOf = (name: string, names: readonly string[]): string => {
  const index = names.indexOf(name);
  return index < 0 ? NEUTRAL : COLOURS[index % COLOURS.length]!;
};

function legend(names: readonly string[]): string[] {
  let left: number = MARGIN.left;
  return names.flatMap(name => {
    const at = left;
    // DejaVu's letters are about 7.4 wide at this size.
    left += 40 + name.length * 7.4;
    return [
      `<line x1="${fixed(at)}" y1="60" x2="${fixed(at + 18)}" y2="60" stroke="${colourOf(name, names)}" stroke-width="3"/>`,
      text(at + 24, 64, name, ""),
    ];
  });
}

function drawPanel(panel: Panel, chart: SvgChart, top: number, x: (ms: number) => number): string[] {
  const most = panel.series.reduce((all, { values }) => values.reduce((max, value) => Math.max(max, value), all), 0);
  const ceiling = niceCeiling(most);
  const bottom = top + PANEL_HEIGHT;
  const y = (value: number): number => bottom - (value / ceiling) * PANEL_HEIGHT;
  const rightEdge = WIDTH - MARGIN.right;
  const lines = [text(MARGIN.left, top - 8, panel.title, 'font-weight="bold"')];
  for (const value of [0, ceiling / 2, ceiling]) {
    lines.push(
      `<line x1="${MARGIN.left}" y1="${fixed(y(value))}" x2="${rightEdge}" y2="${fixed(y(value))}" stroke="#dddddd"/>`,
      text(MARGIN.left - 8, y(value) + 4, panel.label(value), `fill="${NEUTRAL}" text-anchor="end"`),
    );
  }
  for (const { name, values } of panel.series) {
    const path = pathOf(values, chart.timesMs, panel.shape, x, y);
    if (path === "") continue;
    lines.push(
      `<path d="${path}" fill="none" stroke="${colourOf(name, chart.names)}" stroke-width="1.8">` +
        `<title>${escape(name)}</title></path>`,
    );
  }
  return lines;
}

function pathOf(
  values: readonly number[],
  timesMs: readonly number[],
  shape: Panel["shape"],
  x: (ms: number) => number,
  y: (value: number) => number,
): string {
  const commands: string[] = [];
  values.forEach((value, i) => {
    const ms = timesMs[i];
    if (ms === undefined) return;
    if (i === 0) commands.push(`M${fixed(x(ms))} ${fixed(y(value))}`);
    else if (shape === "line") commands.push(`L${fixed(x(ms))} ${fixed(y(value))}`);
    else if (value !== values[i - 1]) commands.push(`H${fixed(x(ms))}V${fixed(y(value))}`);
    else if (i === values.length - 1) commands.push(`H${fixed(x(ms))}`);
  });
  return commands.join("");
}
