/** Equal as JSON: `undefined` members do not count, the order of keys neither. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, index) => jsonEqual(item, b[index]));
  }
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  const keys = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...keys].every(key => jsonEqual(left[key], right[key]));
}

/** True when everything that `desired` says is so in `live`, which may say more; lists must have the same length. */
export function covers(live: unknown, desired: unknown): boolean {
  if (live === desired || desired === undefined) return true;
  if (typeof live !== "object" || typeof desired !== "object" || live === null || desired === null) return false;
  if (Array.isArray(desired)) {
    if (!Array.isArray(live) || live.length !== desired.length) return false;
    return desired.every((item, index) => covers(live[index], item));
  }
  if (Array.isArray(live)) return false;
  return Object.entries(desired).every(([key, value]) => covers((live as Record<string, unknown>)[key], value));
}

/** JSON with sorted keys: equal texts for equal values. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : member,
  );
}
