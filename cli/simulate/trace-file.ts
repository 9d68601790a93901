import { parseDurationMs } from "../../api/meta/go-format.ts";
import { MAX_ARRIVALS } from "../../core/simulation/arrivals.ts";
import { CliError } from "../cli-error.ts";

/** One request of a trace file, from its beginning on. */
export interface TraceRow {
  readonly atMs: number;
  /** Absent: drawn from `--service-time`. */
  readonly serviceMs?: number;
  readonly flow?: string;
  readonly level?: string;
}

type Field = "time" | "time_ms" | "service_time" | "service_time_ms" | "flow" | "level";
const FIELDS: readonly Field[] = ["time", "time_ms", "service_time", "service_time_ms", "flow", "level"];
type RawRow = Partial<Record<Field, string | number>>;

/** Numbers from here on are seconds since 1970, not since the beginning of the trace. */
const CALENDAR_SECONDS = 1e8;

/**
 * Reads a trace: CSV with a head, a JSON array, or JSON objects one a line. `time` is in seconds, or a duration (`1.5s`), or a
 * point of the calendar (RFC 3339, or seconds since 1970; then the first request is the beginning); `time_ms` is in
 * milliseconds. `service_time` and `service_time_ms` likewise; `flow` and `level` are optional. A JSON array may hold bare times.
 *
 * @throws CliError that names file, row and value
 */
export function parseTrace(text: string, fileName: string): TraceRow[] {
  const rows = text.trimStart().startsWith("[") ? jsonArray(text, fileName) : linesOf(text, fileName);
  if (rows.length === 0) throw wrong(fileName, "there is no request in it");
  if (rows.length > MAX_ARRIVALS) throw wrong(fileName, `${rows.length} requests, limit ${MAX_ARRIVALS}`);
  const parsed = rows.map(({ row, place }) => toRow(row, `${fileName}: ${place}`));
  parsed.sort((a, b) => a.atMs - b.atMs);
  const startMs = parsed[0]!.calendar ? parsed[0]!.atMs : 0;
  return parsed.map(({ calendar: _, ...row }) => ({ ...row, atMs: row.atMs - startMs }));
}

interface PlacedRow {
  readonly row: RawRow;
  readonly place: string;
}

const wrong = (place: string, message: string): CliError => new CliError("usage", `${place}: ${message}`);

function jsonArray(text: string, fileName: string): PlacedRow[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw wrong(fileName, `no JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  return (value as unknown[]).map((item, i) => ({ row: rawRow(item, `${fileName}: [${i}]`), place: `[${i}]` }));
}

function linesOf(text: string, fileName: string): PlacedRow[] {
  const lines = text
    .split(/\r?\n/)
    .map((line, i) => ({ line: line.trim(), place: `line ${i + 1}` }))
    .filter(({ line }) => line !== "" && !line.startsWith("#"));
  const [head] = lines;
  if (head === undefined) return [];
  if (head.line.startsWith("{")) {
    return lines.map(({ line, place }) => {
      try {
        return { row: rawRow(JSON.parse(line), `${fileName}: ${place}`), place };
      } catch (error) {
        if (error instanceof CliError) throw error;
        throw wrong(`${fileName}: ${place}`, `no JSON: ${line.slice(0, 60)}`);
      }
    });
  }
  const columns = head.line.split(",").map(column => column.trim().toLowerCase());
  const known = columns.map(column => FIELDS.find(field => field === column));
  if (!known.includes("time") && !known.includes("time_ms")) {
    throw wrong(`${fileName}: ${head.place}`, `expected a head with the column time or time_ms, was "${head.line}"`);
  }
  return lines.slice(1).map(({ line, place }) => {
    const cells = line.split(",").map(cell => cell.trim());
    if (cells.length !== columns.length) {
      throw wrong(`${fileName}: ${place}`, `expected ${columns.length} columns, was ${cells.length}`);
    }
    const row: RawRow = {};
    known.forEach((field, i) => {
      if (field !== undefined && cells[i] !== "") row[field] = cells[i]!;
    });
    return { row, place };
  });
}

function rawRow(item: unknown, place: string): RawRow {
  if (typeof item === "number" || typeof item === "string") return { time: item };
  if (typeof item !== "object" || item === null) throw wrong(place, `expected an object or a time`);
  const row: RawRow = {};
  for (const field of FIELDS) {
    const value = (item as Record<string, unknown>)[field];
    if (typeof value === "number" || typeof value === "string") row[field] = value;
  }
  return row;
}

interface ParsedRow extends TraceRow {
  readonly calendar: boolean;
}

function toRow(row: RawRow, place: string): ParsedRow {
  const at =
    row.time_ms === undefined
      ? timeOf(row.time, place)
      : { ms: numberOf(row.time_ms, "time_ms", place), calendar: false };
  const serviceMs =
    row.service_time_ms !== undefined
      ? numberOf(row.service_time_ms, "service_time_ms", place)
      : row.service_time !== undefined
        ? lengthOf(row.service_time, "service_time", place)
        : undefined;
  if (at.ms < 0) throw wrong(place, `time must not be negative, was ${at.ms}ms`);
  if (serviceMs !== undefined && serviceMs < 0)
    throw wrong(place, `service_time must not be negative, was ${serviceMs}ms`);
  return {
    atMs: at.ms,
    calendar: at.calendar,
    ...(serviceMs === undefined ? {} : { serviceMs }),
    ...(row.flow === undefined ? {} : { flow: String(row.flow) }),
    ...(row.level === undefined ? {} : { level: String(row.level) }),
  };
}

function timeOf(value: string | number | undefined, place: string): { ms: number; calendar: boolean } {
  if (value === undefined) throw wrong(place, "time is missing");
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return { ms: seconds * 1000, calendar: seconds >= CALENDAR_SECONDS };
  const durationMs = parseDurationMs(String(value));
  if (durationMs !== undefined) return { ms: durationMs, calendar: false };
  const ms = Date.parse(String(value));
  if (Number.isNaN(ms)) throw wrong(place, `time: expected seconds, a duration or an RFC 3339 time, was "${value}"`);
  return { ms, calendar: true };
}

function lengthOf(value: string | number, field: Field, place: string): number {
  const seconds = Number(value);
  const ms = Number.isFinite(seconds) ? seconds * 1000 : parseDurationMs(String(value));
  if (ms === undefined) throw wrong(place, `${field}: expected seconds or a duration, was "${value}"`);
  return ms;
}

function numberOf(value: string | number, field: Field, place: string): number {
  const number = Number(value);
  if (!Number.isFinite(number)) throw wrong(place, `${field}: expected a number, was "${value}"`);
  return number;
}
