/**
 * Divides seats among classes in proportion to targets, within bounds: the fair proportion p with
 *
 *     allocation[j] = max(lowerBound[j], min(upperBound[j], p x target[j]))  and  sum of allocations = requiredSum
 *
 * The same problem, checks and steps as k8s.io/apiserver's conc_alloc.go. Worked number: 10 seats, targets 1 and 3,
 * bounds [0, 4] and [0, 6]: p = 4, allocations 4 and 6.
 */
export interface AllocationClass {
  /** What it would like; at least `lowerBound`. Below 0.001 it counts as 0.001. */
  readonly target: number;
  /** 0 or more. */
  readonly lowerBound: number;
  /** At least `lowerBound`. */
  readonly upperBound: number;
}

export type Allocation =
  | { readonly ok: true; readonly seats: readonly number[]; readonly fairProportion: number }
  | { readonly ok: false; readonly problem: string };

const MIN_TARGET = 0.001;
const EPSILON = 1e-7;
/** The largest float32: where the search for the smallest bound begins. */
const MAX_FLOAT32 = 3.4028234663852886e38;

const impossible = (problem: string): Allocation => ({ ok: false, problem });

export function allocateSeats(requiredSum: number, classes: readonly AllocationClass[]): Allocation {
  if (requiredSum < 0) return impossible(`${requiredSum} seats cannot be divided`);
  const targets = classes.map(({ target }) => Math.max(MIN_TARGET, target));
  for (const [i, { target, lowerBound, upperBound }] of classes.entries()) {
    if (lowerBound < 0) return impossible(`lower bound ${i} is ${lowerBound}, below 0`);
    if (target < lowerBound) return impossible(`target ${i} is ${target}, below its lower bound ${lowerBound}`);
    if (upperBound < lowerBound) {
      return impossible(`upper bound ${i} is ${upperBound}, below its lower bound ${lowerBound}`);
    }
  }
  let lowSum = 0;
  let highSum = 0;
  let targetSum = 0;
  let minLower = MAX_FLOAT32;
  let maxLower = 0;
  let minUpper = MAX_FLOAT32;
  let maxUpper = 0;
  /** Each bound as the proportion at which it begins or ceases to hold. */
  const bounds: { readonly proportion: number; readonly targetChange: number }[] = [];
  for (const [i, { lowerBound, upperBound }] of classes.entries()) {
    const target = targets[i]!;
    lowSum += lowerBound;
    highSum += upperBound;
    targetSum += target;
    const lower = lowerBound / target;
    const upper = upperBound / target;
    minLower = Math.min(minLower, lower);
    maxLower = Math.max(maxLower, lower);
    minUpper = Math.min(minUpper, upper);
    maxUpper = Math.max(maxUpper, upper);
    bounds.push({ proportion: lower, targetChange: target }, { proportion: upper, targetChange: -target });
  }
  if (maxLower > 1) return impossible(`a lower bound is ${maxLower} times its target`);
  if (lowSum - requiredSum > EPSILON) return impossible(`lower bounds sum to ${lowSum}, above ${requiredSum}`);
  if (requiredSum - highSum > EPSILON) return impossible(`upper bounds sum to ${highSum}, below ${requiredSum}`);
  if (requiredSum === 0) return { ok: true, seats: classes.map(() => 0), fairProportion: 0 };
  if (lowSum - requiredSum > -EPSILON) {
    return { ok: true, seats: classes.map(({ lowerBound }) => lowerBound), fairProportion: minLower };
  }
  if (requiredSum - highSum > -EPSILON) {
    return { ok: true, seats: classes.map(({ upperBound }) => upperBound), fairProportion: maxUpper };
  }
  const unbounded = requiredSum / targetSum;
  if (maxLower <= unbounded && unbounded <= minUpper) {
    return { ok: true, seats: targets.map(target => target * unbounded), fairProportion: unbounded };
  }
  const fairProportion = searchProportion(requiredSum, lowSum, minLower, bounds);
  if (fairProportion === undefined) return impossible("no proportion meets the bounds");
  const seats = classes.map(({ lowerBound, upperBound }, i) =>
    Math.max(lowerBound, Math.min(upperBound, fairProportion * targets[i]!)),
  );
  return { ok: true, seats, fairProportion };
}

/** Raises the proportion from bound to bound until the allocations sum up. */
function searchProportion(
  requiredSum: number,
  lowSum: number,
  minLower: number,
  bounds: readonly { readonly proportion: number; readonly targetChange: number }[],
): number | undefined {
  const ascending = [...bounds].sort((a, b) => a.proportion - b.proportion);
  let sum = lowSum;
  let proportion = minLower;
  let growing = 0;
  let growingTargets = 0;
  let next = 0;
  // The bound last passed by `next`; what it changes takes effect once the proportion has reached it.
  let pending: { readonly classes: number; readonly targets: number } = { classes: 0, targets: 0 };
  while (sum < requiredSum) {
    let nextBound: number;
    do {
      growing += pending.classes;
      growingTargets += pending.targets;
      const bound = ascending[next++];
      if (bound === undefined) return undefined;
      nextBound = bound.proportion;
      pending = { classes: Math.sign(bound.targetChange), targets: bound.targetChange };
    } while (nextBound <= proportion);
    if (growing > 0) {
      const candidate = proportion + (requiredSum - sum) / growingTargets;
      if (candidate <= nextBound) return candidate;
      sum += (nextBound - proportion) * growingTargets;
    }
    proportion = nextBound;
  }
  return proportion;
}
