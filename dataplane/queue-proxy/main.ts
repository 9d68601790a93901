import { systemClock } from "../shared/clock.ts";
import { createLogger } from "../shared/logger.ts";
import { ConfigError, parseConfig, type QueueProxyConfig } from "./config.ts";
import { startQueueProxy } from "./start.ts";

/** `sysexits.h`: the configuration is wrong; a restart will not help. */
const EXIT_CONFIG = 78;
/** Requests were still here when the pod's time was over. */
const EXIT_INCOMPLETE = 1;

async function main(): Promise<void> {
  // First of all: as the first process of its container it would not be ended by a signal that nobody handles.
  let onSignal = (): void => process.exit(0);
  process.on("SIGTERM", () => onSignal());
  process.on("SIGINT", () => onSignal());
  const config = readConfig();
  const { namespace, revision, pod } = config.identity;
  const log = createLogger({ component: "queue-proxy", level: config.logLevel, base: { namespace, revision, pod } });
  const queueProxy = await startQueueProxy(config, systemClock, log);
  onSignal = () => queueProxy.drain();
  log.info({ afterMs: Math.round(process.uptime() * 1000), concurrency: config.containerConcurrency }, "listening");
  const { complete } = await queueProxy.ended;
  log.info({ complete }, "drained");
  // Timers and connections that are nobody's any more must not keep the pod.
  process.exit(complete ? 0 : EXIT_INCOMPLETE);
}

function readConfig(): QueueProxyConfig {
  try {
    return parseConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(EXIT_CONFIG);
  }
}

void main();
