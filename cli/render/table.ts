import Table from "cli-table3";

const NONE = "";
const BORDERLESS = {
  top: NONE,
  "top-mid": NONE,
  "top-left": NONE,
  "top-right": NONE,
  bottom: NONE,
  "bottom-mid": NONE,
  "bottom-left": NONE,
  "bottom-right": NONE,
  left: NONE,
  "left-mid": NONE,
  mid: NONE,
  "mid-mid": NONE,
  right: NONE,
  "right-mid": NONE,
  middle: "   ",
} as const;

export interface Column {
  readonly head: string;
  readonly align?: "left" | "right";
}

/** Columns as kubectl prints them: no borders, a head in capitals. Cells may carry colours. Ends with a line end. */
export function renderTable(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const table = new Table({
    head: columns.map(column => column.head.toUpperCase()),
    chars: BORDERLESS,
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
    colAligns: columns.map(column => column.align ?? "left"),
  });
  table.push(...rows.map(row => [...row]));
  return `${table
    .toString()
    .split("\n")
    .map(line => line.trimEnd())
    .join("\n")}\n`;
}
