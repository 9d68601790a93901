/** What the process ends with; documented in docs/cli.md. */
export const EXIT = {
  ok: 0,
  /** Anything without a code of its own. */
  failed: 1,
  /** The command line or an input file is wrong. */
  usage: 2,
  /** The service, revision, route or kubeconfig context does not exist. */
  notFound: 3,
  /** The API server refuses the user. */
  forbidden: 4,
  /** The API server, the operator's leader or the gateways do not answer. */
  unavailable: 5,
} as const;

export type CliErrorKind = Exclude<keyof typeof EXIT, "ok">;

/** An error for the user: printed as `error: <message>`, without a stack. */
export class CliError extends Error {
  readonly code: string;
  readonly exitCode: number;

  constructor(kind: CliErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "CliError";
    this.code = kind.replace(/[A-Z]/g, letter => `_${letter}`).toUpperCase();
    this.exitCode = EXIT[kind];
  }
}

/** The message of whatever was thrown. Connection errors of Node carry several; the first is enough. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  return error instanceof Error ? error.message || error.name : String(error);
}
