/**
 * Cloud Run's way down. When fewer instances are recommended than there are, the others are demoted: they get requests only
 * while every recommended one is busy, so they run dry. Then they stop:
 *
 *     first group    once its use over one minute is under 10 %, a minute after its demotion at the earliest
 *     second group   after the idle time-out (15 min without a request), kept for a surge
 *
 * Every second demoted instance goes to the second group, the first of them included, so a single instance left over is kept
 * the whole idle time-out. A demoted instance that is recommended again leaves its group.
 */
export interface Instance {
  readonly name: string;
  readonly createdMs: number;
  /** Undefined while it is starting. */
  readonly readySinceMs: number | undefined;
  /** Part of its capacity in use over the last minute, by the busier of concurrency and CPU. */
  readonly utilization1m: number;
  /** When it last had a request in progress; its creation if never. */
  readonly lastBusyMs: number;
  /** Requests it takes at a time by adaptive concurrency; absent: as many as configured. */
  readonly adaptedMaximum?: number | undefined;
}

export type DemotionGroup = "first" | "second";

export interface Demoted {
  readonly name: string;
  readonly group: DemotionGroup;
  readonly sinceMs: number;
}

/** First group: stops under this use over a minute that it spent demoted, so that no young window decides. */
export const STOP_UTILIZATION = 0.1;
const STOP_WINDOW_MS = 60_000;

/** Least useful first: the least used, of equals the youngest, of those by name. */
function byUse(a: Instance, b: Instance): number {
  return a.utilization1m - b.utilization1m || b.createdMs - a.createdMs || (a.name < b.name ? -1 : 1);
}

/** Demotes or promotes so that `recommended` instances are not demoted; who is demoted already stays so. */
export function demote(
  instances: readonly Instance[],
  recommended: number,
  before: readonly Demoted[],
  nowMs: number,
): Demoted[] {
  const surplus = Math.max(0, instances.length - recommended);
  const byName = new Map(instances.map(instance => [instance.name, instance]));
  const still = before.filter(one => byName.has(one.name));
  if (still.length >= surplus) {
    // The least used stay demoted.
    return still.sort((a, b) => byUse(byName.get(a.name)!, byName.get(b.name)!)).slice(0, surplus);
  }
  const demotedNames = new Set(still.map(one => one.name));
  const chosen = instances
    .filter(instance => !demotedNames.has(instance.name))
    .sort(byUse)
    .slice(0, surplus - still.length);
  for (const { name } of chosen) {
    const second = still.filter(one => one.group === "second").length;
    still.push({ name, group: second <= still.length - second ? "second" : "first", sinceMs: nowMs });
  }
  return still;
}

export type StopRule = "over-maximum" | "unreachable" | "idle-timeout" | "first-group-under-10-percent";

export interface Stop {
  readonly name: string;
  readonly rule: StopRule;
}

export interface StopLimits {
  readonly idleTimeoutMs: number;
  /** As many instances may stay. */
  readonly most: number;
  /** No route leads to the revision: nothing is kept for a surge. */
  readonly reachable: boolean;
}

function stopRule(
  limits: StopLimits,
  left: number,
  demoted: Demoted,
  instance: Instance,
  nowMs: number,
): StopRule | undefined {
  const idleMs = nowMs - instance.lastBusyMs;
  if (left > limits.most) return "over-maximum";
  if (!limits.reachable && idleMs > 0) return "unreachable";
  if (idleMs >= limits.idleTimeoutMs) return "idle-timeout";
  const mayStop = demoted.group === "first" && nowMs - demoted.sinceMs >= STOP_WINDOW_MS;
  return mayStop && instance.utilization1m < STOP_UTILIZATION ? "first-group-under-10-percent" : undefined;
}

/** Which of the demoted instances to stop now; all others stay. A request that is still in progress there is finished: queue-proxies drain. */
export function chooseStops(
  limits: StopLimits,
  instances: readonly Instance[],
  demoted: readonly Demoted[],
  nowMs: number,
): Stop[] {
  const byName = new Map(demoted.map(one => [one.name, one]));
  const stops: Stop[] = [];
  for (const instance of [...instances].sort(byUse)) {
    const left = instances.length - stops.length;
    const one = byName.get(instance.name);
    const rule = one === undefined ? undefined : stopRule(limits, left, one, instance, nowMs);
    if (rule !== undefined) stops.push({ name: instance.name, rule });
  }
  return stops;
}

/** When a demoted instance may stop by time alone; undefined when none waits for the idle time-out. */
export function nextIdleTimeoutMs(
  idleTimeoutMs: number,
  instances: readonly Instance[],
  demoted: readonly Demoted[],
): number | undefined {
  const names = new Set(demoted.map(one => one.name));
  const times = instances.filter(one => names.has(one.name)).map(one => one.lastBusyMs + idleTimeoutMs);
  return times.length === 0 ? undefined : Math.min(...times);
}
