/**
 * Seats of each priority level: nominal by shares, and the current limits that follow demand every 10 s within what
 * levels lend and may borrow. As k8s.io/apiserver's controller (KEP-1040, "Dispatching").
 */
import { allocateSeats } from "./allocation.ts";
import type { DemandStats } from "./demand.ts";
import type { PriorityLevelSpec } from "./objects.ts";
import { DEFAULT_SHARES } from "./objects.ts";

/** How often current limits are adjusted. */
export const ADJUSTMENT_PERIOD_MS = 10_000;

/** In seats. `max` is `nominal` + what may be borrowed. */
export interface SeatLimits {
  readonly nominal: number;
  readonly min: number;
  readonly max: number;
}

/** Nominal concurrency shares with their defaults: 30, or 0 for an exempt level. */
export function sharesOf(spec: PriorityLevelSpec): number {
  if (spec.type === "Exempt") return spec.exempt?.nominalConcurrencyShares ?? 0;
  return spec.limited?.nominalConcurrencyShares ?? DEFAULT_SHARES;
}

/** Halves away from zero, as Go rounds; arguments here are not negative. */
const percentOf = (seats: number, percent: number): number => Math.round((seats * percent) / 100);

/**
 * A level's part of the total. 600 seats, 20 of 245 shares, 50 % lendable: nominal ceil(48.98) = 49, min 49 - 25 = 24;
 * without a borrowing limit max is 49 + 600.
 */
export function nominalLimits(spec: PriorityLevelSpec, totalSeats: number, shareSum: number): SeatLimits {
  const nominal = Math.ceil((totalSeats * sharesOf(spec)) / shareSum);
  const common = spec.type === "Exempt" ? spec.exempt : spec.limited;
  const lendable = percentOf(nominal, common?.lendablePercent ?? 0);
  const borrowingPercent = spec.limited?.borrowingLimitPercent;
  const borrowing = borrowingPercent === undefined ? totalSeats : percentOf(nominal, borrowingPercent);
  return { nominal, min: nominal - lendable, max: nominal + borrowing };
}

/** The current limit of a level that has just come: half of what it lends is not yet lent. */
export function initialLimit(limits: SeatLimits): number {
  return limits.nominal - Math.floor((limits.nominal - limits.min) / 2);
}

/** Widest request that upstream lets a work estimator ask for, whatever the level. */
export const MAX_SEATS_ANYWHERE = 10;
const MAX_SEATS_FRACTION = 0.15;

/**
 * Most seats one request of a level with queues may take, so that the hand of queues of one flow cannot fill the level
 * with wide requests: max(1, min(ceil(15 % of nominal), nominal / handSize)), at most 10. For 49 seats and hand 6: 8.
 */
export function maxSeatsPerRequest(nominal: number, handSize: number): number {
  const seats = Math.min(Math.ceil(nominal * MAX_SEATS_FRACTION), Math.floor(nominal / handSize));
  return Math.min(Math.max(1, seats), MAX_SEATS_ANYWHERE);
}

/** A level as the adjustment sees it. */
export interface BorrowingLevel {
  readonly exempt: boolean;
  readonly limits: SeatLimits;
  readonly demand: DemandStats;
  /** The current limit so far. */
  readonly current: number;
}

export interface Adjustment {
  /** New current limits, in the order of the levels. */
  readonly current: readonly number[];
  /** Seats that each level is to have if there are enough for all; undefined for an exempt one, which takes what it uses. */
  readonly targets: readonly (number | undefined)[];
  /** Seats over smoothed demand that unbounded levels get; 0 when there is nothing to divide. */
  readonly fairFraction: number;
  /** Set when the limits could not be derived and the old ones stay. */
  readonly problem?: string;
}

/**
 * New current limits. Exempt levels come first and take what they used; the rest is divided in proportion to smoothed
 * demand, each level getting at least what it lately used of its nominal limit, and at most its maximum.
 */
export function adjustLimits(levels: readonly BorrowingLevel[]): Adjustment {
  const nominalSum = levels.reduce((sum, { limits }) => sum + limits.nominal, 0);
  const lowest = levels.map(lowestLimit);
  const targetOf = (demand: DemandStats, i: number): number => Math.max(lowest[i]!, demand.smoothed);
  const targets = levels.map(({ exempt, demand }, i) => (exempt ? undefined : targetOf(demand, i)));
  let remaining = nominalSum;
  let minSum = 0;
  let lowestSum = 0;
  levels.forEach((level, i) => {
    if (level.exempt) remaining -= lowest[i]!;
    else {
      minSum += level.limits.min;
      lowestSum += lowest[i]!;
    }
  });
  const perLevel = (limited: (level: BorrowingLevel, i: number) => number): number[] =>
    levels.map((level, i) => (level.exempt ? lowest[i]! : limited(level, i)));

  if (remaining <= minSum) return { current: perLevel(({ limits }) => limits.min), targets, fairFraction: 0 };
  if (remaining <= lowestSum) {
    const fraction = (remaining - minSum) / (lowestSum - minSum);
    const current = perLevel(({ limits }, i) => limits.min + Math.round((lowest[i]! - limits.min) * fraction));
    return { current, targets, fairFraction: 0 };
  }
  const limited = levels.flatMap((level, i) =>
    level.exempt ? [] : [{ level, lowerBound: lowest[i]!, target: targetOf(level.demand, i) }],
  );
  const allocation = allocateSeats(
    nominalSum,
    limited.map(({ level, lowerBound, target }) => ({ lowerBound, upperBound: level.limits.max, target })),
  );
  if (!allocation.ok) {
    return { current: perLevel(({ current }) => current), targets, fairFraction: 0, problem: allocation.problem };
  }
  let next = 0;
  const current = perLevel(() => Math.round(allocation.seats[next++]!));
  return { current, targets, fairFraction: allocation.fairProportion };
}

function lowestLimit({ exempt, limits, demand }: BorrowingLevel): number {
  if (exempt) return Math.max(limits.min, demand.highWatermark);
  return Math.max(limits.min, Math.min(limits.nominal, demand.highWatermark));
}
