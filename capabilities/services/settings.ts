import { parse as parseYaml } from "yaml";
import { AUTOSCALER_CONFIG_NAME, parseAutoscalerConfig, type AutoscalerConfig } from "../../api/config/autoscaler.ts";
import type { ConfigData } from "../../api/config/config-map.ts";
import { DEFAULTS_CONFIG_NAME, parseDefaultsConfig, type DefaultsConfig } from "../../api/config/defaults.ts";
import { DEPLOYMENT_CONFIG_NAME, parseDeploymentConfig, type DeploymentConfig } from "../../api/config/deployment.ts";
import { DOMAIN_CONFIG_NAME, parseDomainConfig, type DomainConfig } from "../../api/config/domain.ts";
import { FEATURES_CONFIG_NAME, parseFeaturesConfig, type FeaturesConfig } from "../../api/config/features.ts";
import { GC_CONFIG_NAME, parseGcConfig, type GcConfig } from "../../api/config/gc.ts";
import { NETWORK_CONFIG_NAME, parseNetworkConfig, type NetworkConfig } from "../../api/config/network.ts";
import {
  OBSERVABILITY_CONFIG_NAME,
  parseObservabilityConfig,
  type ObservabilityConfig,
} from "../../api/config/observability.ts";
import type { PodSettings } from "./build/pod-settings.ts";

/** The cluster's settings as the reconcilers of services read them. */
export interface ServicesSettings {
  readonly autoscaler: AutoscalerConfig;
  readonly domain: DomainConfig;
  readonly gc: GcConfig;
  readonly network: NetworkConfig;
  readonly pods: PodSettings;
  readonly systemNamespace: string;
  readonly clusterDomain: string;
}

interface Parsed {
  readonly autoscaler: AutoscalerConfig;
  readonly defaults: DefaultsConfig;
  readonly deployment: DeploymentConfig;
  readonly domain: DomainConfig;
  readonly features: FeaturesConfig;
  readonly gc: GcConfig;
  readonly network: NetworkConfig;
  readonly observability: ObservabilityConfig;
}

export interface SettingsOptions {
  readonly systemNamespace: string;
  readonly clusterDomain: string;
  readonly queueProxyImage: string;
}

/** Follows the ConfigMaps. One that cannot be used leaves what was there before: the last good one, or the defaults. */
export class SettingsStore {
  readonly #options: SettingsOptions;
  readonly #parsers: { readonly [Name in keyof Parsed]: (data: ConfigData | undefined) => Parsed[Name] };
  #parsed: Parsed;
  #settings: ServicesSettings;

  constructor(options: SettingsOptions) {
    this.#options = options;
    this.#parsers = {
      autoscaler: parseAutoscalerConfig,
      defaults: parseDefaultsConfig,
      deployment: data => parseDeploymentConfig(data, parseYaml),
      domain: data => parseDomainConfig(data, parseYaml, options.clusterDomain),
      features: parseFeaturesConfig,
      gc: parseGcConfig,
      network: parseNetworkConfig,
      observability: parseObservabilityConfig,
    };
    this.#parsed = Object.fromEntries(
      Object.entries(this.#parsers).map(([name, parse]) => [name, parse(undefined)]),
    ) as unknown as Parsed;
    this.#settings = this.#assemble();
  }

  /** The same object until something changes. */
  get current(): ServicesSettings {
    return this.#settings;
  }

  /**
   * Takes a ConfigMap of the system namespace; `data` undefined when it was deleted: its defaults hold.
   * @returns whether this capability reads it
   * @throws ConfigError naming key, bound and value; what was there stays.
   */
  update(configMap: string, data: ConfigData | undefined): boolean {
    const name = NAMES[configMap];
    if (name === undefined) return false;
    this.#parsed = { ...this.#parsed, [name]: this.#parsers[name](data) };
    this.#settings = this.#assemble();
    return true;
  }

  #assemble(): ServicesSettings {
    const { autoscaler, defaults, deployment, domain, features, gc, network, observability } = this.#parsed;
    const { systemNamespace, clusterDomain, queueProxyImage } = this.#options;
    return {
      autoscaler,
      domain,
      gc,
      network,
      pods: {
        deployment,
        features,
        observability,
        enableServiceLinks: defaults.enableServiceLinks,
        automountServiceAccountToken: defaults.automountServiceAccountToken,
        queueProxyImage,
      },
      systemNamespace,
      clusterDomain,
    };
  }
}

const NAMES: Readonly<Record<string, keyof Parsed>> = {
  [AUTOSCALER_CONFIG_NAME]: "autoscaler",
  [DEFAULTS_CONFIG_NAME]: "defaults",
  [DEPLOYMENT_CONFIG_NAME]: "deployment",
  [DOMAIN_CONFIG_NAME]: "domain",
  [FEATURES_CONFIG_NAME]: "features",
  [GC_CONFIG_NAME]: "gc",
  [NETWORK_CONFIG_NAME]: "network",
  [OBSERVABILITY_CONFIG_NAME]: "observability",
};
