/**
 * Errors that name the fields they are about, in the form of knative.dev/pkg/apis.FieldError:
 * `<message>: <path>[, <path>]` and, on the next line, details. Errors of one message and details are merged, paths and
 * errors are sorted; clients and conformance tests compare the text.
 */
export interface FieldError {
  readonly message: string;
  readonly paths: readonly string[];
  readonly details?: string | undefined;
  /** Absent: an error, which refuses the object; `warning` is shown to the user and admits it. */
  readonly level?: "warning" | undefined;
}

export type FieldErrors = readonly FieldError[];

/** Stands for the field itself: `at("spec", [outOfBounds(1, 2, 3, SELF)])`. */
export const SELF = "";

const error = (message: string, paths: readonly string[], details?: string): FieldError =>
  details === undefined ? { message, paths } : { message, paths, details };

export const missing = (...paths: string[]): FieldError => error("missing field(s)", paths);
export const disallowed = (...paths: string[]): FieldError => error("must not set the field(s)", paths);
export const invalidValue = (value: string | number | boolean, path: string, details?: string): FieldError =>
  error(`invalid value: ${value}`, [path], details);
export const invalidKeyName = (key: string, path: string, details?: string): FieldError =>
  error(`invalid key name ${JSON.stringify(key)}`, [path], details);
export const outOfBounds = (
  value: string | number,
  lower: string | number,
  upper: string | number,
  path: string,
): FieldError => error(`expected ${lower} <= ${value} <= ${upper}`, [path]);
export const missingOneOf = (...paths: string[]): FieldError => error("expected exactly one, got neither", paths);
export const multipleOneOf = (...paths: string[]): FieldError => error("expected exactly one, got both", paths);
export const generic = (message: string, paths: readonly string[], details?: string): FieldError =>
  error(message, paths, details);

export const asWarning = (fieldError: FieldError): FieldError => ({ ...fieldError, level: "warning" });

/** The errors as seen from the parent: `at("spec", at("traffic", at(0, ...)))` -> `spec.traffic[0]....`. */
export function at(step: string | number, errors: FieldErrors): FieldErrors {
  const prefix = typeof step === "number" ? `[${step}]` : step;
  return errors.map(e => ({ ...e, paths: e.paths.map(path => join(prefix, path)) }));
}

/** The same for a key of a map. A key with dots is set off by one, as upstream writes it: `annotations.[a.b/c]`. */
export function atKey(key: string, errors: FieldErrors): FieldErrors {
  return at(`[${key}]`, errors);
}

export function atIndex(field: string, index: number, errors: FieldErrors): FieldErrors {
  return at(field, at(index, errors));
}

const join = (prefix: string, path: string): string =>
  path === SELF ? prefix : /^\[[^\].]*\]/.test(path) ? prefix + path : `${prefix}.${path}`;

/** Merged and sorted, as they are shown. */
export function mergeErrors(errors: FieldErrors): FieldError[] {
  const merged = new Map<string, FieldError>();
  for (const e of errors) {
    const key = JSON.stringify([e.level ?? "", e.message, e.details ?? ""]);
    const same = merged.get(key);
    merged.set(key, same === undefined ? e : { ...same, paths: [...new Set([...same.paths, ...e.paths])] });
  }
  const rank = (e: FieldError): string[] => [e.message, e.details ?? "", e.level ?? ""];
  return [...merged.values()]
    .map(e => ({ ...e, paths: [...new Set(e.paths)].sort() }))
    .sort((a, b) => compare(rank(a), rank(b)));
}

function compare(a: readonly string[], b: readonly string[]): number {
  for (const [i, left] of a.entries()) {
    const right = b[i] ?? "";
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

const show = (e: FieldError): string =>
  e.details === undefined || e.details === ""
    ? `${e.message}: ${e.paths.join(", ")}`
    : `${e.message}: ${e.paths.join(", ")}\n${e.details}`;

const ofLevel = (errors: FieldErrors, level: "warning" | undefined): FieldError[] =>
  mergeErrors(errors.filter(e => e.level === level));

/** What the webhook answers when it refuses: `validation failed: ...`, or undefined when there is no error. */
export function validationFailure(errors: FieldErrors): string | undefined {
  const fatal = ofLevel(errors, undefined);
  return fatal.length === 0 ? undefined : `validation failed: ${fatal.map(show).join("\n")}`;
}

/** What the webhook shows as warnings beside admitting the object. */
export function validationWarnings(errors: FieldErrors): string[] {
  return ofLevel(errors, "warning").map(show);
}
