import { setTimeout as sleep } from "node:timers/promises";
import type { CommandContext } from "./command-context.ts";

const CLEAR_SCREEN = "\u001b[2J\u001b[H";

/** Draws again every `periodMs` until the user interrupts: over the last picture in a terminal, below it elsewhere. */
export async function redraw(
  { terminal, signal }: Pick<CommandContext, "terminal" | "signal">,
  periodMs: number,
  draw: () => Promise<string>,
): Promise<void> {
  while (!signal.aborted) {
    const picture = await draw();
    terminal.write(terminal.interactive ? `${CLEAR_SCREEN}${picture}` : `${picture}\n`);
    await sleep(periodMs, undefined, { signal }).catch(() => undefined);
  }
}
