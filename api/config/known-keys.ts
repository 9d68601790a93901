import { AUTOSCALER_CONFIG_NAME, autoscalerShape } from "./autoscaler.ts";
import { unknownKeys } from "./config-map.ts";
import type { ConfigData } from "./config-map.ts";
import { DEFAULTS_CONFIG_NAME, defaultsShape } from "./defaults.ts";
import { DEPLOYMENT_ALIASES, DEPLOYMENT_CONFIG_NAME, deploymentShape } from "./deployment.ts";
import { FEATURES_CONFIG_NAME, featuresShape } from "./features.ts";
import { GC_CONFIG_NAME, gcShape } from "./gc.ts";
import { NETWORK_ALIASES, NETWORK_CONFIG_NAME, networkShape } from "./network.ts";
import { OBSERVABILITY_CONFIG_NAME, observabilityShape } from "./observability.ts";

/** Keys of each ConfigMap; those of config-domain are domains. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  [AUTOSCALER_CONFIG_NAME]: Object.keys(autoscalerShape),
  [DEFAULTS_CONFIG_NAME]: Object.keys(defaultsShape),
  [DEPLOYMENT_CONFIG_NAME]: [...Object.keys(deploymentShape), ...Object.values(DEPLOYMENT_ALIASES)],
  [FEATURES_CONFIG_NAME]: Object.keys(featuresShape),
  [GC_CONFIG_NAME]: Object.keys(gcShape),
  [NETWORK_CONFIG_NAME]: [...Object.keys(networkShape), ...Object.values(NETWORK_ALIASES)],
  [OBSERVABILITY_CONFIG_NAME]: Object.keys(observabilityShape),
};

/** What to tell the author of a ConfigMap that is accepted: keys that nobody reads, most often misspelt. */
export function configMapWarnings(configMap: string, data: ConfigData | undefined): string[] {
  const known = KNOWN[configMap];
  return known === undefined
    ? []
    : unknownKeys(known, data).map(key => `${configMap}: ${key} is no key of it and has no effect`);
}
