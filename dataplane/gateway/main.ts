import process from "node:process";
import { KubeConfig } from "@kubernetes/client-node";
import { systemClock } from "../shared/clock.ts";
import { createLogger } from "../shared/logger.ts";
import { createRegistry } from "../shared/metrics.ts";
import { parseConfig } from "./config.ts";
import { startGateway } from "./gateway.ts";
import { queueProxyProbe } from "./revisions/early-readiness.ts";
import { createKubeClient } from "./watch/kube-client.ts";

const QUEUE_PROXY_HTTP1_PORT = 8012;

const config = parseConfig(process.env);
const logger = createLogger({ component: "gateway", level: config.logLevel, base: { pod: config.podName } });
process.on("uncaughtException", error => {
  logger.fatal({ err: error }, "uncaught exception");
  process.exit(1);
});

const kubeConfig = new KubeConfig();
kubeConfig.loadFromDefault();

const starting = startGateway({
  config,
  kube: createKubeClient(kubeConfig),
  clock: systemClock,
  random: Math.random,
  logger,
  registry: createRegistry({ processMetrics: true }),
  probe: queueProxyProbe(QUEUE_PROXY_HTTP1_PORT),
  http1Port: () => QUEUE_PROXY_HTTP1_PORT,
});

let isStopping = false;
const stop = (signal: NodeJS.Signals): void => {
  if (isStopping) return;
  isStopping = true;
  logger.info({ signal }, "stopping");
  // One that has not come so far as to serve has nothing to drain.
  const waiting = setTimeout(() => process.exit(0), 1_000);
  void starting.then(async gateway => {
    clearTimeout(waiting);
    await gateway.stop();
    process.exit(0);
  });
};
process.on("SIGTERM", stop);
process.on("SIGINT", stop);

await starting;
