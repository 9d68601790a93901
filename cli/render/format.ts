/** `0`, `850us`, `12ms`, `1.25s`, `3m20s`: three digits, the unit that fits. */
export function formatMs(ms: number): string {
  if (ms === 0) return "0";
  const sign = ms < 0 ? "-" : "";
  const size = Math.abs(ms);
  if (size < 1) return `${sign}${digits(size * 1000)}us`;
  if (size < 999.5) return `${sign}${digits(size)}ms`;
  if (size < 99_950) return `${sign}${digits(size / 1000)}s`;
  const seconds = Math.round(size / 1000);
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return hours > 0 ? `${sign}${hours}h${minutes}m` : `${sign}${minutes}m${rest > 0 ? `${rest}s` : ""}`;
}

/** Three significant digits, without trailing zeros. */
function digits(value: number): string {
  return String(Number(value.toPrecision(3)));
}

/** At most two decimals. */
export function formatNumber(value: number): string {
  return String(Number(value.toFixed(2)));
}

/** `1 pod`, `2 pods`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
