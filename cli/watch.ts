import { CliError, EXIT } from "./cli-error.ts";
import type { CommandContext } from "./command-context.ts";

const CLEAR_SCREEN = "\u001b[2J\u001b[H";

/**
 * Draws again every `periodMs` until the user interrupts: over the last picture in a terminal, below it elsewhere. Once
 * something was drawn, an answer that is missing for a while (another leader is elected) is told and waited out.
 */
export async function redraw(
  { terminal, signal, pause }: Pick<CommandContext, "terminal" | "signal" | "pause">,
  periodMs: number,
  draw: () => Promise<string>,
): Promise<void> {
  for (let drawn = false; !signal.aborted; drawn = true) {
    const picture = await draw().catch((error: unknown) => {
      if (drawn && error instanceof CliError && error.exitCode === EXIT.unavailable) return `${error.message}\n`;
      throw error;
    });
    terminal.write(terminal.interactive ? `${CLEAR_SCREEN}${picture}` : `${picture}\n`);
    await pause(periodMs);
  }
}
