import { z } from "zod";
import {
  formatDurationMs,
  INT32_MAX,
  INT32_MIN,
  parseBool,
  parseDurationMs,
  parseFloat64,
  parseInteger,
} from "../meta/go-format.ts";
import { parseQuantity } from "../meta/quantity.ts";

/**
 * ConfigMaps as zod schemas: texts in, a typed record out. A value that cannot be used is an error that names the key,
 * the bound and the value; keys that are not known are ignored, as upstream does (see `unknownKeys`).
 */

export interface ConfigIssue {
  readonly key: string;
  readonly message: string;
}

/** The whole ConfigMap is refused; who reads it keeps the last good one. */
export class ConfigError extends Error {
  readonly code = "INVALID_CONFIG";
  readonly configMap: string;
  readonly issues: readonly ConfigIssue[];

  constructor(configMap: string, issues: readonly ConfigIssue[]) {
    super(`${configMap}: ${issues.map(issue => `${issue.key} ${issue.message}`).join("; ")}`);
    this.name = "ConfigError";
    this.configMap = configMap;
    this.issues = issues;
  }
}

export type ConfigData = Readonly<Record<string, string>>;

/** The key under which ConfigMaps carry documentation. */
const EXAMPLE_KEY = "_example";

export const withoutExample = (data: ConfigData | undefined): Record<string, string> =>
  Object.fromEntries(Object.entries(data ?? {}).filter(([key]) => key !== EXAMPLE_KEY));

/** Parses the data of a ConfigMap (absent: all defaults), or throws a ConfigError. */
export function parseConfigMap<T>(name: string, schema: z.ZodType<T>, data: ConfigData | undefined): T {
  const result = schema.safeParse(withoutExample(data));
  if (result.success) return result.data;
  throw new ConfigError(
    name,
    result.error.issues.map(issue => ({ key: String(issue.path[0] ?? name), message: issue.message })),
  );
}

/** Keys nobody reads: most often misspelt. */
export function unknownKeys(known: readonly string[], data: ConfigData | undefined): string[] {
  return Object.keys(withoutExample(data)).filter(key => !known.includes(key));
}

/** What the reference page says about a key; kept in the schema's metadata. */
export interface ConfigEntryDoc {
  readonly value: string;
  readonly default: string;
  readonly description: string;
}

/** `default` is text as it would stand in the ConfigMap; it goes through the same checks as a user's. */
function entry<T>(doc: ConfigEntryDoc, parse: (text: string) => T | Refusal) {
  return z
    .string()
    .transform((text, context) => {
      const value = parse(text);
      if (!(value instanceof Refusal)) return value;
      context.addIssue({ code: "custom", message: `${value.expected}, was ${JSON.stringify(text)}` });
      return z.NEVER;
    })
    .prefault(doc.default)
    .meta({ entry: doc });
}

class Refusal {
  readonly expected: string;
  constructor(expected: string) {
    this.expected = expected;
  }
}

interface NumberBounds {
  readonly min?: number;
  readonly max?: number;
  readonly above?: number;
  /** A single value allowed outside of the bounds. */
  readonly or?: number;
}

function boundsText({ min, max, above, or }: NumberBounds, show: (value: number) => string): string {
  const lower = above !== undefined ? `(${show(above)}` : min !== undefined ? `[${show(min)}` : "";
  const range =
    lower !== "" && max !== undefined
      ? `in ${lower}, ${show(max)}]`
      : above !== undefined
        ? `greater than ${show(above)}`
        : min !== undefined
          ? `at least ${show(min)}`
          : max !== undefined
            ? `at most ${show(max)}`
            : "";
  return or === undefined ? range : `${range} or ${show(or)}`;
}

const within = (value: number, { min, max, above, or }: NumberBounds): boolean =>
  value === or ||
  ((min === undefined || value >= min) &&
    (max === undefined || value <= max) &&
    (above === undefined || value > above));

const described = (kind: string, bounds: string): string => (bounds === "" ? kind : `${kind} ${bounds}`);

export function float(defaults: string, description: string, bounds: NumberBounds = {}) {
  const range = boundsText(bounds, String);
  return entry({ value: described("number", range), default: defaults, description }, text => {
    const value = parseFloat64(text);
    if (value === undefined) return new Refusal("must be a number");
    return within(value, bounds) ? value : new Refusal(`must be ${range}`);
  });
}

export function integer(defaults: string, description: string, bounds: NumberBounds = {}) {
  const range = boundsText(bounds, String);
  return entry({ value: described("integer", range), default: defaults, description }, text => {
    const value = parseInteger(text, INT32_MIN, INT32_MAX);
    if (value === undefined || value === "range") return new Refusal("must be a 32-bit integer");
    return within(value, bounds) ? value : new Refusal(`must be ${range}`);
  });
}

export function bool(defaults: "true" | "false", description: string) {
  return entry({ value: "`true` or `false`", default: defaults, description }, text => {
    return parseBool(text.trim()) ?? new Refusal("must be true or false");
  });
}

/** Milliseconds. */
export function duration(
  defaults: string,
  description: string,
  { wholeSeconds = false, ...bounds }: NumberBounds & { readonly wholeSeconds?: boolean } = {},
) {
  const range = boundsText(bounds, formatDurationMs);
  const value = described("duration", wholeSeconds ? `${range}, whole seconds` : range);
  return entry({ value, default: defaults, description }, text => {
    const ms = parseDurationMs(text);
    if (ms === undefined) return new Refusal("must be a duration such as 1m30s");
    if (!within(ms, bounds)) return new Refusal(`must be ${range}`);
    return wholeSeconds && ms % 1000 !== 0 ? new Refusal("must be specified with at most second precision") : ms;
  });
}

/** One of a few words, in any case. */
export function choice<T extends string>(defaults: T, description: string, words: readonly T[]) {
  const list = words.map(word => `\`${word}\``).join(", ");
  return entry({ value: list, default: defaults, description }, text => {
    return (
      words.find(word => word.toLowerCase() === text.trim().toLowerCase()) ??
      new Refusal(`must be one of ${words.join(", ")}`)
    );
  });
}

export function text(defaults: string, description: string, value = "text") {
  return entry({ value, default: defaults, description }, t => t);
}

/** A comma-separated list. */
export function list(defaults: string, description: string) {
  return entry({ value: "comma-separated list", default: defaults, description }, t =>
    t
      .split(",")
      .map(item => item.trim())
      .filter(item => item !== ""),
  );
}

/** A Kubernetes quantity kept as its text; undefined when the key is absent or empty. */
export function quantityText(defaults: string, description: string) {
  return entry({ value: "quantity", default: defaults, description }, t => {
    if (t === "") return undefined;
    return parseQuantity(t) === undefined ? new Refusal("must be a quantity such as 500m or 128Mi") : t;
  });
}

/** A value that a function checks; it returns the value, or says what is expected. */
export function checked<T>(
  defaults: string,
  description: string,
  value: string,
  parse: (text: string) => { readonly ok: T } | { readonly expected: string },
) {
  return entry({ value, default: defaults, description }, t => {
    const result = parse(t);
    return "ok" in result ? result.ok : new Refusal(result.expected);
  });
}

/**
 * The older spelling of a key is read when the newer one is absent. `aliases` maps the newer to the older.
 */
export function withAliases(data: ConfigData | undefined, aliases: ConfigData): Record<string, string> {
  const own = withoutExample(data);
  for (const [key, older] of Object.entries(aliases)) {
    const value = own[older];
    if (own[key] === undefined && value !== undefined) own[key] = value;
  }
  return own;
}

/** Key, bounds, default and description of each entry of a ConfigMap's schema. */
export function describeConfig(shape: z.ZodRawShape): (ConfigEntryDoc & { readonly key: string })[] {
  return Object.entries(shape).map(([key, schema]) => {
    const meta = (schema as z.ZodType).meta() as { readonly entry?: ConfigEntryDoc } | undefined;
    if (meta?.entry === undefined) throw new Error(`config key ${key} has no documentation`);
    return { key, ...meta.entry };
  });
}
