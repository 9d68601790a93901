import { z } from "zod";
import { bool, choice, parseConfigMap, text } from "./config-map.ts";
import type { ConfigData } from "./config-map.ts";

/** ConfigMap config-observability: logs and metrics. */
export const OBSERVABILITY_CONFIG_NAME = "config-observability";

export const observabilityShape = {
  "logging.revision-url-template": text(
    "",
    "`status.logUrl` of a Revision; `${REVISION_UID}` stands for its uid. Empty: none.",
    "URL template",
  ),
  "logging.enable-request-log": bool("false", "The queue-proxy writes a structured line for each request."),
  "logging.enable-probe-request-log": bool("false", "It does so for probes too."),
  "metrics-protocol": choice("prometheus", "How the operator and the gateway offer metrics.", ["prometheus", "none"]),
  "request-metrics-protocol": choice("prometheus", "How the queue-proxy offers metrics.", ["prometheus", "none"]),
  "runtime-profiling": choice("disabled", "CPU and heap profiles on the admin port.", ["disabled", "enabled"]),
};

const ObservabilityConfigSchema = z.object(observabilityShape).transform(c => ({
  revisionLogUrlTemplate: c["logging.revision-url-template"],
  enableRequestLog: c["logging.enable-request-log"],
  enableProbeRequestLog: c["logging.enable-probe-request-log"],
  metrics: c["metrics-protocol"] === "prometheus",
  requestMetrics: c["request-metrics-protocol"] === "prometheus",
  runtimeProfiling: c["runtime-profiling"] === "enabled",
}));

export type ObservabilityConfig = Readonly<z.infer<typeof ObservabilityConfigSchema>>;

export function parseObservabilityConfig(data?: ConfigData): ObservabilityConfig {
  return parseConfigMap(OBSERVABILITY_CONFIG_NAME, ObservabilityConfigSchema, data);
}

/** `status.logUrl`, or undefined when none is configured. */
export const revisionLogUrl = (config: ObservabilityConfig, revisionUid: string): string | undefined =>
  config.revisionLogUrlTemplate === ""
    ? undefined
    : config.revisionLogUrlTemplate.replaceAll("${REVISION_UID}", revisionUid);
