import { diffJson, isObject } from "../../meta/json.ts";
import { parseQuantity } from "../../meta/quantity.ts";

/** Fields that Kubernetes' Go types leave out when they are false. */
const FALSE_IS_ABSENT: ReadonlySet<string> = new Set(["readOnly", "hostNetwork", "hostPID", "hostIPC"]);
/** Maps and objects that mean the same when they are empty. Elsewhere `{}` says something: `emptyDir: {}`. */
const EMPTY_IS_ABSENT: ReadonlySet<string> = new Set([
  "metadata",
  "labels",
  "annotations",
  "resources",
  "limits",
  "requests",
  "nodeSelector",
]);
/** Set by clients that write whole objects; always null in a template. */
const MEANINGLESS: ReadonlySet<string> = new Set(["creationTimestamp"]);

/**
 * Whether two values mean the same to Kubernetes although their JSON differs: clients written in Go leave out empty texts,
 * zeros and empty lists, or send them; and a quantity has many spellings. Undefined: compare as JSON.
 */
export function sameInKubernetes(a: unknown, b: unknown, path: readonly string[]): boolean | undefined {
  const key = path.at(-1) ?? "";
  if (MEANINGLESS.has(key)) return true;
  if (isAbsent(a, key) && isAbsent(b, key)) return true;
  const parent = path.at(-2) ?? "";
  if ((parent === "limits" || parent === "requests") && isQuantity(a) && isQuantity(b)) {
    return parseQuantity(a) === parseQuantity(b);
  }
  return undefined;
}

const isQuantity = (value: unknown): value is string | number => typeof value === "string" || typeof value === "number";

function isAbsent(value: unknown, key: string): boolean {
  if (value === undefined || value === null || value === "" || value === 0) return true;
  if (value === false) return FALSE_IS_ABSENT.has(key);
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && EMPTY_IS_ABSENT.has(key) && Object.values(value).every(v => v === undefined || v === null);
}

/** The changes as text, one field after the other; empty when the two mean the same. */
export function describeChanges(before: unknown, after: unknown): string {
  const show = (sign: string, value: unknown) =>
    value === undefined || value === null ? "" : `\t${sign}: ${JSON.stringify(value)}\n`;
  return diffJson(before, after, sameInKubernetes)
    .map(change => `${change.path}:\n${show("-", change.before)}${show("+", change.after)}`)
    .join("");
}
