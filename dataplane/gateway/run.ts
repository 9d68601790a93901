import process from "node:process";
import { KubeConfig } from "@kubernetes/client-node";
import { systemClock } from "../shared/clock.ts";
import { createLogger } from "../shared/logger.ts";
import { createRegistry } from "../shared/metrics.ts";
import { parseConfig } from "./config.ts";
import { startGateway, type Gateway } from "./gateway.ts";
import { queueProxyProbe } from "./revisions/early-readiness.ts";
import { createKubeClient } from "./watch/kube-client.ts";

const QUEUE_PROXY_HTTP1_PORT = 8012;

/** Starts the gateway of this process's environment and cluster. Rejects when it cannot serve. */
export function runGateway(): Promise<Gateway> {
  const config = parseConfig(process.env);
  const logger = createLogger({ component: "gateway", level: config.logLevel, base: { pod: config.podName } });
  process.on("uncaughtException", error => {
    logger.fatal({ err: error }, "uncaught exception");
    process.exit(1);
  });
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromDefault();
  return startGateway({
    config,
    kube: createKubeClient(kubeConfig),
    clock: systemClock,
    random: Math.random,
    logger,
    registry: createRegistry({ processMetrics: true }),
    probe: queueProxyProbe(QUEUE_PROXY_HTTP1_PORT),
    http1Port: () => QUEUE_PROXY_HTTP1_PORT,
  });
}
