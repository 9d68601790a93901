import { parseDurationMs } from "../../api/meta/go-format.ts";
import type { Distribution } from "../../core/simulation/distribution.ts";

/** How distributions are written on the command line. */
export const DISTRIBUTION_FORMS =
  "a duration (100ms), exp(MEAN), uniform(MIN,MAX), or lognormal(MEDIAN,P95) for a long tail";

/** Reads a distribution; undefined when the text is none. */
export function parseDistribution(text: string): Distribution | undefined {
  const constantMs = durationOf(text);
  if (constantMs !== undefined) return { kind: "constant", ms: constantMs };
  const call = /^([a-z]+)\(([^()]*)\)$/.exec(text.trim());
  if (call === null) return undefined;
  const values = call[2]!.split(",").map(durationOf);
  const [first, second] = values;
  if (first === undefined || values.includes(undefined)) return undefined;
  switch (call[1]) {
    case "exp":
      return values.length === 1 ? { kind: "exponential", meanMs: first } : undefined;
    case "uniform":
      return values.length === 2 && second! >= first ? { kind: "uniform", minMs: first, maxMs: second! } : undefined;
    case "lognormal":
      return values.length === 2 && first > 0 && second! >= first
        ? { kind: "lognormal", medianMs: first, p95Ms: second! }
        : undefined;
    default:
      return undefined;
  }
}

function durationOf(text: string): number | undefined {
  const ms = parseDurationMs(text.trim());
  return ms === undefined || ms < 0 ? undefined : ms;
}
