/**
 * Work in seat-seconds, as whole numbers of 1e-8 seat-seconds: the fixed point of k8s.io/apiserver, so that virtual
 * time is summed in the same steps. One seat for 3 ms is 300,000 units.
 */
export const SEAT_SECONDS_SCALE = 1e8;

const NS_PER_MS = 1e6;

/** Whole nanoseconds of a time in milliseconds: what a Go `time.Duration` would hold. */
export function nanoseconds(ms: number): number {
  return Math.round(ms * NS_PER_MS);
}

/** Work of `seats` (may be a fraction) over a time (may be negative), to the nearest unit, halves away from zero. */
export function seatsTimesNanoseconds(seats: number, durationNs: number): number {
  const units = (seats * durationNs) / (1e9 / SEAT_SECONDS_SCALE);
  return units < 0 ? -Math.round(-units) : Math.round(units);
}

/** How long one of `seats` works on `units`, in whole nanoseconds rounded down. */
export function nanosecondsPerSeat(units: number, seats: number): number {
  return Math.trunc((units / seats) * (1e9 / SEAT_SECONDS_SCALE));
}
