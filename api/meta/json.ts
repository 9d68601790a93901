/** Comparing objects as they are in JSON: a field that is absent, undefined or null is the same. */

export type Json = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether two values are the same JSON, by `same` where it has an opinion (undefined: none). */
export function jsonEqual(
  a: unknown,
  b: unknown,
  same: (a: unknown, b: unknown, path: readonly string[]) => boolean | undefined = () => undefined,
): boolean {
  return diffJson(a, b, same).length === 0;
}

export interface JsonDifference {
  /** `spec.containers[0].image` */
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** The smallest values that differ, in the order of their keys. */
export function diffJson(
  before: unknown,
  after: unknown,
  same: (a: unknown, b: unknown, path: readonly string[]) => boolean | undefined = () => undefined,
  path: readonly string[] = [],
): JsonDifference[] {
  if ((before ?? undefined) === (after ?? undefined)) return [];
  const opinion = same(before, after, path);
  if (opinion === true) return [];
  if (opinion === undefined && isObject(before) && isObject(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
    return keys.flatMap(key => diffJson(before[key], after[key], same, [...path, key]));
  }
  if (opinion === undefined && Array.isArray(before) && Array.isArray(after)) {
    const longer: readonly unknown[] = before.length > after.length ? before : after;
    return longer.flatMap((_, i) => diffJson(before[i], after[i], same, [...path, `[${i}]`]));
  }
  return [{ path: path.join(".").replaceAll(".[", "["), before, after }];
}

/** The same value without fields that are null, at any depth. Nulls in lists stay: there a place is not a field. */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, field]) => field !== null)
      .map(([key, field]) => [key, withoutNulls(field)]),
  );
}
