import { setTimeout as delay } from "node:timers/promises";

/**
 * Asks `probe` every `everyMs` until it returns something other than undefined or false. An error of the probe counts
 * as "not yet". After `timeoutMs` throws with the last thing seen (`lastSeen` of the probe's error, or its message).
 */
export async function waitFor<T>(
  what: string,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  { timeoutMs = 60_000, everyMs = 100 }: { readonly timeoutMs?: number; readonly everyMs?: number } = {},
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  let last = "nothing yet";
  for (;;) {
    try {
      const value = await probe();
      if (value !== undefined && value !== false) return value;
      last = String(value);
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
    if (Date.now() >= deadline) throw new Error(`timed out after ${timeoutMs} ms waiting for ${what}; last: ${last}`);
    await delay(everyMs);
  }
}
