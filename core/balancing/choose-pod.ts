/** What the choice looks at. */
export interface Candidate {
  /** Requests at the pod. */
  readonly inFlight: number;
  hasRoom(): boolean;
}

/**
 * The less loaded of two pods drawn at random, of those that have room; where neither has, the least loaded that does.
 * (M. Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 2001.) Undefined: all are full.
 *
 * @param random uniform in [0, 1)
 */
export function choosePod<P extends Candidate>(pods: readonly P[], random: () => number): P | undefined {
  const count = pods.length;
  if (count === 0) return undefined;
  const one = Math.floor(random() * count);
  const first = pods[one]!;
  if (count === 1) return first.hasRoom() ? first : undefined;
  const second = pods[(one + 1 + Math.floor(random() * (count - 1))) % count]!;
  const better = second.inFlight < first.inFlight ? second : first;
  if (better.hasRoom()) return better;
  const other = better === first ? second : first;
  if (other.hasRoom()) return other;
  let least: P | undefined;
  for (const pod of pods) if (pod.hasRoom() && (least === undefined || pod.inFlight < least.inFlight)) least = pod;
  return least;
}
