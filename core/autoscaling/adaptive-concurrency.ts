/**
 * Cloud Run's adaptive concurrency, per instance and second: the maximum of requests in flight goes down by one when the CPU was
 * over 90 % busy in the last second, and up by one when the instance was at its maximum and the CPU under 70 %. Never over
 * the configured maximum, never under one.
 *
 * The state belongs to one revision: a new revision, like a new instance, starts afresh at the configured maximum.
 */
export const CPU_TOO_BUSY = 0.9;
export const CPU_HAS_ROOM = 0.7;

/** An average over a second counts as "at its maximum" from this part on: places are empty for moments between requests. */
const AT_MAXIMUM = 0.9;

/** Instances below the configured maximum, by name. */
export type AdaptedConcurrency = ReadonlyMap<string, number>;

export interface InstanceSecond {
  readonly name: string;
  /** Average requests in flight over the last second. */
  readonly concurrency: number;
  /** Part of the instance's CPU used over the last second, 0..1; undefined where it cannot be measured. */
  readonly cpu: number | undefined;
}

export type AdaptationRule = "unchanged" | "cpu-over-90" | "at-maximum-cpu-under-70" | "not-measured";

export interface Adaptation {
  readonly name: string;
  readonly rule: AdaptationRule;
  readonly maximum: number;
  readonly cpu: number | undefined;
}

/**
 * One second. `seconds` has each running instance once; those that are gone are forgotten. Called once a second after the
 * instances were asked.
 */
export function adaptConcurrency(
  configuredMaximum: number,
  before: AdaptedConcurrency,
  seconds: readonly InstanceSecond[],
): { next: AdaptedConcurrency; adaptations: readonly Adaptation[] } {
  const next = new Map<string, number>();
  const adaptations = seconds.map(({ name, concurrency, cpu }): Adaptation => {
    const maximum = Math.min(before.get(name) ?? configuredMaximum, configuredMaximum);
    let rule: AdaptationRule = "unchanged";
    let adapted = maximum;
    if (cpu === undefined) {
      rule = "not-measured";
    } else if (cpu > CPU_TOO_BUSY && maximum > 1) {
      rule = "cpu-over-90";
      adapted = maximum - 1;
    } else if (cpu < CPU_HAS_ROOM && concurrency >= AT_MAXIMUM * maximum && maximum < configuredMaximum) {
      rule = "at-maximum-cpu-under-70";
      adapted = maximum + 1;
    }
    if (adapted < configuredMaximum) next.set(name, adapted);
    return { name, rule, maximum: adapted, cpu };
  });
  return { next, adaptations };
}
