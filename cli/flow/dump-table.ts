/** Rows of a dump by the names of its columns. Unknown columns are kept, so a later version may have more. */
export function parseDump(text: string): Record<string, string>[] {
  const [head, ...rows] = text.split("\n").filter(line => line.trim() !== "");
  if (head === undefined) return [];
  const columns = cellsOf(head);
  return rows.map(row => {
    const cells = cellsOf(row);
    return Object.fromEntries(columns.map((column, i) => [column, cells[i] ?? ""]));
  });
}

/** A JSON string may have a comma in it; it comes back without its quotes. */
function cellsOf(line: string): string[] {
  return [...line.matchAll(/\s*("(?:[^"\\]|\\.)*"|[^,]*)(?:,|$)/g)].slice(0, -1).map(([, cell = ""]) => {
    const text = cell.trim();
    return text.startsWith('"') ? (JSON.parse(text) as string) : text;
  });
}
