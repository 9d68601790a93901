import type { Connect } from "./cluster/cluster-api.ts";
import type { Terminal } from "./terminal.ts";

/** What a command may use of the process. Tests give their own. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The text of a file; of standard input for `-`. Rejects with CliError. */
  readonly readFile: (path: string) => Promise<string>;
  /** Rejects with CliError. */
  readonly writeFile: (path: string, content: string | Uint8Array) => Promise<void>;
  /** Makes the connection to a cluster. */
  readonly connect: Connect;
  /** Aborts when the user interrupts. */
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
  /** Resolves after so long, or at once when the user interrupts. */
  readonly pause: (ms: number) => Promise<void>;
}
