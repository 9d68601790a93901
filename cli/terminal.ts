import type { WriteStream } from "node:tty";
import { styleText } from "node:util";

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "blue" | "magenta" | "cyan";

/** Where a command writes to. Commands know nothing of the process. */
export interface Terminal {
  /** To standard output, as it is. */
  write(text: string): void;
  /** To standard error, as it is. */
  writeError(text: string): void;
  /** Width of the output. */
  readonly columns: number;
  /** A person looks at it: it may be drawn over. */
  readonly interactive: boolean;
  style(style: Style | readonly Style[], text: string): string;
}

type Stream = Pick<WriteStream, "write"> & { readonly isTTY?: boolean; readonly columns?: number };
type Environment = Readonly<Record<string, string | undefined>>;

/** Without a terminal: wide enough for tables, and the same wherever it is written. */
const PLAIN_COLUMNS = 120;

/**
 * Colours only for a terminal that has them: never with NO_COLOR (https://no-color.org) or TERM=dumb, and always with
 * FORCE_COLOR.
 */
export function wantsColour(isTty: boolean, env: Environment): boolean {
  if ((env["NO_COLOR"] ?? "") !== "") return false;
  const forced = env["FORCE_COLOR"];
  if (forced !== undefined && forced !== "0") return true;
  return isTty && env["TERM"] !== "dumb";
}

export function createTerminal(stdout: Stream, stderr: Stream, env: Environment): Terminal {
  const isTty = stdout.isTTY === true;
  const colour = wantsColour(isTty, env);
  return {
    write: text => void stdout.write(text),
    writeError: text => void stderr.write(text),
    columns: isTty ? (stdout.columns ?? PLAIN_COLUMNS) : PLAIN_COLUMNS,
    interactive: isTty && env["TERM"] !== "dumb",
    style: (style, text) =>
      colour ? styleText(typeof style === "string" ? style : [...style], text, { validateStream: false }) : text,
  };
}
