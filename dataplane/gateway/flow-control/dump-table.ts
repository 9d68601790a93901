/** Narrowest column, and what stands free after the widest cell of one. */
const MIN_WIDTH = 8;
const PADDING = 1;

/**
 * Rows as upstream prints them (Go's tabwriter with cells apart by a comma and a tab). A cell that would break the table, with a comma,
 * a quote, white space or a control character in it, stands as a JSON string.
 */
export function formatTable(
  head: readonly string[],
  rows: readonly (readonly (string | number | boolean)[])[],
): string {
  const lines = [head, ...rows].map(row => row.map(cell => cellOf(String(cell))));
  const widths = head.map((_, column) =>
    Math.max(MIN_WIDTH, ...lines.map(cells => widthOf(cells[column] ?? "") + ",".length + PADDING)),
  );
  const last = head.length - 1;
  return lines
    .map(cells =>
      cells
        .map((cell, i) => (i === last ? cell : `${cell},`.padEnd(widths[i]! + cell.length - widthOf(cell))))
        .join(""),
    )
    .join("\n");
}

const cellOf = (text: string): string => (/[\s",\p{Cc}]/u.test(text) ? JSON.stringify(text) : text);

/** In code points. */
const widthOf = (text: string): number => [...text].length;
