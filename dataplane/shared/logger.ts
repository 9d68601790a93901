import { pino, type Logger } from "pino";

export type { Logger } from "pino";

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface LoggerOptions {
  /** Which program: `gateway`, `queue-proxy`. */
  readonly component: string;
  readonly level: LogLevel;
  /** Fields of every line, such as the pod's name. */
  readonly base?: Readonly<Record<string, string>>;
}

/** JSON lines on stdout; headers, tokens and bodies never go into them. */
export function createLogger(options: LoggerOptions): Logger {
  return pino({
    level: options.level,
    base: { component: options.component, ...options.base },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: label => ({ level: label }) },
  });
}
