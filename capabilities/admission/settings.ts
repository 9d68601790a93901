import { parse as parseYaml } from "yaml";
import { AUTOSCALER_CONFIG_NAME, parseAutoscalerConfig } from "../../api/config/autoscaler.ts";
import { ConfigError, type ConfigData } from "../../api/config/config-map.ts";
import { DEFAULTS_CONFIG_NAME, parseDefaultsConfig } from "../../api/config/defaults.ts";
import { DEPLOYMENT_CONFIG_NAME, parseDeploymentConfig } from "../../api/config/deployment.ts";
import { DOMAIN_CONFIG_NAME, parseDomainConfig } from "../../api/config/domain.ts";
import { FEATURES_CONFIG_NAME, parseFeaturesConfig } from "../../api/config/features.ts";
import { GC_CONFIG_NAME, parseGcConfig } from "../../api/config/gc.ts";
import { NETWORK_CONFIG_NAME, parseNetworkConfig } from "../../api/config/network.ts";
import { OBSERVABILITY_CONFIG_NAME, parseObservabilityConfig } from "../../api/config/observability.ts";
import { defaultAdmissionConfig, type AdmissionConfig } from "../../api/serving/admission.ts";

/** The settings that decide about defaults and limits, as the ConfigMaps last said; a bad one leaves the last good one. */
export class AdmissionSettings {
  #current: AdmissionConfig = defaultAdmissionConfig();

  get current(): AdmissionConfig {
    return this.#current;
  }

  /** Takes a ConfigMap; `data` undefined: it is gone, and its defaults hold. Throws `ConfigError`. */
  update(name: string, data: ConfigData | undefined): void {
    switch (name) {
      case DEFAULTS_CONFIG_NAME:
        this.#current = { ...this.#current, defaults: parseDefaultsConfig(data) };
        break;
      case FEATURES_CONFIG_NAME:
        this.#current = { ...this.#current, features: parseFeaturesConfig(data) };
        break;
      case AUTOSCALER_CONFIG_NAME:
        this.#current = { ...this.#current, autoscaler: parseAutoscalerConfig(data) };
        break;
    }
  }
}

/** Why a ConfigMap of the system cannot be used; `undefined` when it can, or when nobody here reads it. */
export function configMapRefusal(
  name: string,
  data: ConfigData | undefined,
  clusterDomain: string,
): string | undefined {
  const parsers: Readonly<Record<string, (data: ConfigData | undefined) => unknown>> = {
    [AUTOSCALER_CONFIG_NAME]: parseAutoscalerConfig,
    [DEFAULTS_CONFIG_NAME]: parseDefaultsConfig,
    [DEPLOYMENT_CONFIG_NAME]: settings => parseDeploymentConfig(settings, parseYaml),
    [DOMAIN_CONFIG_NAME]: settings => parseDomainConfig(settings, parseYaml, clusterDomain),
    [FEATURES_CONFIG_NAME]: parseFeaturesConfig,
    [GC_CONFIG_NAME]: parseGcConfig,
    [NETWORK_CONFIG_NAME]: parseNetworkConfig,
    [OBSERVABILITY_CONFIG_NAME]: parseObservabilityConfig,
  };
  try {
    parsers[name]?.(data);
    return undefined;
  } catch (error) {
    if (error instanceof ConfigError) return `validation failed: ${error.message}`;
    throw error;
  }
}
