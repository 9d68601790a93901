/**
 * The maximum over a sliding window of time slots, as a value: `record` returns a new window.
 *
 * Source of the rule: knative.dev/serving v0.51.0 pkg/autoscaler/aggregation/max (descending maxima): only entries that
 * may still become the maximum are kept, so the list is descending in value and ascending in slot.
 */
export interface MaxEntry {
  readonly slot: number;
  readonly value: number;
}

export type MaxWindow = readonly MaxEntry[];

export const EMPTY_MAX_WINDOW: MaxWindow = [];

/** Records `value` in the slot of `nowMs`; slots are `slotMs` wide and `ceil(windowMs / slotMs)` of them count. */
export function recordMax(
  window: MaxWindow,
  windowMs: number,
  slotMs: number,
  nowMs: number,
  value: number,
): MaxWindow {
  const size = Math.ceil(windowMs / slotMs);
  // Slots are numbered from the whole second, as in the original.
  const slot = Math.floor(Math.floor(nowMs / 1000) / (slotMs / 1000));
  const newest = window.at(-1);
  // The usual tick of a calm revision: nothing new, nothing to forget.
  if (newest?.slot === slot && value <= newest.value && slot - window[0]!.slot < size) return window;
  let end = window.length;
  while (end > 0 && value >= window[end - 1]!.value) end--;
  let start = 0;
  while (start < end && slot - window[start]!.slot >= size) start++;
  const next = window.slice(start, end);
  if (next.at(-1)?.slot !== slot) next.push({ slot, value });
  return next;
}

/** The maximum of the window; undefined when nothing was recorded. */
export function currentMax(window: MaxWindow): number | undefined {
  return window[0]?.value;
}
