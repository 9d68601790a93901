import { QUANTITY_PATTERN } from "./schema.ts";

const GRAMMAR = new RegExp(QUANTITY_PATTERN);
const SUFFIX: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/**
 * Value of a Kubernetes quantity (`250m` -> 0.25, `1Gi` -> 1073741824, `1e3`), or undefined when it is none. A double:
 * exact for what pods ask for, not for comparing quantities beyond 2^53.
 */
export function parseQuantity(quantity: string | number): number | undefined {
  const text = String(quantity);
  if (!GRAMMAR.test(text)) return undefined;
  const match = /^([+-]?[\d.]+)(.*)$/.exec(text);
  if (match === null) return undefined;
  const [, number, suffix] = match;
  const exponent = /^[eE]([+-]?\d+)$/.exec(suffix!);
  if (exponent !== null) return Number(number) * 10 ** Number(exponent[1]);
  const factor = SUFFIX[suffix!];
  return factor === undefined ? undefined : Number(number) * factor;
}
