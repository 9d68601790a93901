/** Numbers over time as characters: columns of eighths, several rows high, with the scale at the left. */

const EIGHTHS = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

/** How the values that share a column become one. */
export type Pooling = "max" | "mean";

/** Puts `values` into `width` columns; with fewer values than columns, each fills several. */
export function resample(values: readonly number[], width: number, pooling: Pooling): number[] {
  if (values.length === 0) return new Array<number>(width).fill(0);
  return Array.from({ length: width }, (_, column) => {
    const from = Math.floor((column * values.length) / width);
    const to = Math.max(from + 1, Math.floor(((column + 1) * values.length) / width));
    const pool = values.slice(from, to);
    if (pooling === "max") return pool.reduce((most, value) => Math.max(most, value));
    return pool.reduce((sum, value) => sum + value, 0) / pool.length;
  });
}

export interface BlockChartOptions {
  readonly width: number;
  readonly height: number;
  readonly pooling: Pooling;
  /** The value at the top; the largest one if absent. */
  readonly top?: number;
  readonly label: (value: number) => string;
}

/** Lines from the top down. Something that is not zero always shows. */
export function blockChart(values: readonly number[], options: BlockChartOptions): string[] {
  const { width, height, pooling, label } = options;
  const pooled = resample(values, width, pooling);
  const top = options.top ?? Math.max(0, ...pooled);
  const labels = [label(top), label(0)];
  const margin = Math.max(...labels.map(text => text.length));
  const levels = pooled.map(value => {
    const level = top === 0 ? 0 : Math.round((Math.min(value, top) / top) * height * 8);
    return value > 0 ? Math.max(1, level) : 0;
  });
  return Array.from({ length: height }, (_, row) => {
    const floor = (height - 1 - row) * 8;
    const cells = levels.map(level => EIGHTHS[Math.max(0, Math.min(8, level - floor))]).join("");
    const scale = row === 0 ? labels[0]! : row === height - 1 && height > 1 ? labels[1]! : "";
    return `${scale.padStart(margin)} ${row === 0 ? "┤" : row === height - 1 ? "┼" : "│"}${cells}`.trimEnd();
  });
}
