/**
 * Text forms of Go's standard library, which are part of the contract: durations in ConfigMaps and annotations are
 * written as `1m30s`, and messages quote values the same way.
 */

const UNITS_NS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};

/** Parses `1h30m`, `2.5s`, `-1s`, `0` as time.ParseDuration does; undefined when it is not a duration. Nanoseconds. */
export function parseDurationNs(text: string): number | undefined {
  const match = /^([-+]?)(.*)$/s.exec(text);
  const rest = match?.[2] ?? "";
  if (rest === "0") return 0;
  if (!/^((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$/.test(rest)) return undefined;
  let total = 0;
  for (const [, number, unit] of rest.matchAll(/(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g)) {
    total += Math.trunc(Number(number) * UNITS_NS[unit!]!);
  }
  return total > 2 ** 63 ? undefined : match?.[1] === "-" ? -total : total;
}

/** The same in milliseconds, fractions kept. */
export function parseDurationMs(text: string): number | undefined {
  const ns = parseDurationNs(text);
  return ns === undefined ? undefined : ns / 1e6;
}

/** `1h0m0s`, `1m30s`, `1.5s`, `100ms`, `0s`: as time.Duration prints itself. */
export function formatDurationMs(ms: number): string {
  if (ms === 0) return "0s";
  const sign = ms < 0 ? "-" : "";
  const ns = Math.round(Math.abs(ms) * 1e6);
  if (ns < 1e9) {
    const [unit, size] = ns < 1e3 ? (["ns", 1] as const) : ns < 1e6 ? (["µs", 1e3] as const) : (["ms", 1e6] as const);
    return `${sign}${ns / size}${unit}`;
  }
  const totalSeconds = Math.floor(ns / 1e9);
  const hours = Math.floor(totalSeconds / 3600);
  const minutes = Math.floor(totalSeconds / 60) % 60;
  const fraction =
    ns % 1e9 === 0
      ? ""
      : `.${String(ns % 1e9)
          .padStart(9, "0")
          .replace(/0+$/, "")}`;
  const seconds = `${totalSeconds % 60}${fraction}s`;
  return sign + (hours > 0 ? `${hours}h${minutes}m${seconds}` : minutes > 0 ? `${minutes}m${seconds}` : seconds);
}

/** A decimal integer of the given bounds' type: undefined when it is none, "range" when it does not fit. */
export function parseInteger(text: string, min: number, max: number): number | "range" | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined;
  const value = Number(text);
  return value < min || value > max ? "range" : value === 0 ? 0 : value;
}

/** A finite decimal number as strconv.ParseFloat reads it. Not a number and infinities are refused. */
export function parseFloat64(text: string): number | undefined {
  return /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text) && Number.isFinite(Number(text))
    ? Number(text)
    : undefined;
}

/** strconv.ParseBool's spellings. */
export function parseBool(text: string): boolean | undefined {
  if (["1", "t", "T", "TRUE", "true", "True"].includes(text)) return true;
  if (["0", "f", "F", "FALSE", "false", "False"].includes(text)) return false;
  return undefined;
}

/** A Go string literal, as `%q` prints it. JSON's escapes are the same for what appears in names. */
export const quote = (text: string): string => JSON.stringify(text);

export const INT32_MAX = 2 ** 31 - 1;
export const INT32_MIN = -(2 ** 31);
