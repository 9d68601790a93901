import pino from "pino";

/** The closed list of who may log; it is the field `component` of each line. */
export const logComponents = [
  "operator",
  "pepr",
  "admission",
  "webhook-certificates",
  "leader-election",
  "informers",
  "work-queue",
  "events",
  "services",
  "routes",
  "revisions",
  "domains",
  "autoscaling",
  "flow-control",
] as const;
export type LogComponent = (typeof logComponents)[number];

/** The part of pino that is used; tests pass a silent one. */
export type ComponentLogger = Pick<pino.Logger, "debug" | "info" | "warn" | "error">;

export type LoggerFor = (component: LogComponent) => ComponentLogger;

/** One logger per component, as JSON lines on standard output. */
export function createLogging(level: string): LoggerFor {
  const root = pino({
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: label => ({ level: label }) },
    serializers: { error: pino.stdSerializers.err },
  });
  return component => root.child({ component });
}

const drop = () => undefined;
/** Says nothing: for tests. */
export const silentLogger: ComponentLogger = { debug: drop, info: drop, warn: drop, error: drop };
