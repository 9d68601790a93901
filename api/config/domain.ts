import { LABEL, VISIBILITY_CLUSTER_LOCAL } from "../labels.ts";
import { dns1123SubdomainErrors, isFullyQualifiedDomainName } from "../meta/dns.ts";
import { parseTemplate } from "../meta/template.ts";
import { ConfigError, withoutExample } from "./config-map.ts";
import type { ConfigData } from "./config-map.ts";
import { routeHostname } from "./network.ts";
import type { NetworkConfig } from "./network.ts";

/**
 * ConfigMap config-domain: each key is a domain, its value YAML with an optional label selector. The domain whose
 * selector matches a Route by the most labels is used, among equals the lexicographically smallest.
 */
export const DOMAIN_CONFIG_NAME = "config-domain";

export interface DomainConfig {
  readonly domains: readonly { readonly domain: string; readonly selector: Readonly<Record<string, string>> }[];
  /** `cluster.local`, where cluster-local Routes live, and all Routes while no domain is configured. */
  readonly clusterDomain: string;
}

/** `parseYaml` is passed in, so that this module stays free of libraries. */
export function parseDomainConfig(
  data: ConfigData | undefined,
  parseYaml: (text: string) => unknown,
  clusterDomain = "cluster.local",
): DomainConfig {
  const domains = Object.entries(withoutExample(data)).map(([domain, text]) => {
    const refuse = (message: string) => new ConfigError(DOMAIN_CONFIG_NAME, [{ key: domain, message }]);
    const [nameError] = dns1123SubdomainErrors(domain);
    if (nameError !== undefined) throw refuse(`must be a domain name: ${nameError}`);
    let value: unknown;
    try {
      value = parseYaml(text);
    } catch (error) {
      throw refuse(`must be YAML: ${error instanceof Error ? error.message : String(error)}`);
    }
    if (value !== null && value !== undefined && value !== "" && !isMap(value)) {
      throw refuse(`must be empty or hold a selector, was ${JSON.stringify(text)}`);
    }
    const selector = isMap(value) ? (value["selector"] ?? {}) : {};
    if (!isMap(selector) || !Object.values(selector).every(v => typeof v === "string")) {
      throw refuse(`selector must be a map of texts, was ${JSON.stringify(selector)}`);
    }
    return { domain, selector: selector as Record<string, string> };
  });
  const hasDefault = domains.some(({ selector }) => Object.keys(selector).length === 0);
  return {
    domains: hasDefault ? domains : [...domains, { domain: `svc.${clusterDomain}`, selector: {} }],
    clusterDomain,
  };
}

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

type Labels = Readonly<Record<string, string>> | undefined;

export const isClusterLocal = (labels: Labels): boolean => labels?.[LABEL.visibility] === VISIBILITY_CLUSTER_LOCAL;

/** The domain for a Route with these labels. */
export function domainFor(config: DomainConfig, labels: Labels): string {
  if (isClusterLocal(labels)) return `svc.${config.clusterDomain}`;
  const matching = config.domains.filter(({ selector }) =>
    Object.entries(selector).every(([key, value]) => labels?.[key] === value),
  );
  const weight = (d: (typeof matching)[number]) => Object.keys(d.selector).length;
  const [best] = matching.toSorted((a, b) => weight(b) - weight(a) || (a.domain < b.domain ? -1 : 1));
  return best?.domain ?? `svc.${config.clusterDomain}`;
}

const CLUSTER_LOCAL_TEMPLATE = parseTemplate("{{.Name}}.{{.Namespace}}.{{.Domain}}");

interface NamedRoute {
  readonly metadata: {
    readonly name?: string | undefined;
    readonly namespace?: string | undefined;
    readonly labels?: Labels;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
}

/** The templates made something of this Route that is no host name, such as a label of more than 63 characters. */
export class DomainNameError extends Error {
  readonly code = "INVALID_DOMAIN_NAME";
  constructor(host: string) {
    super(`invalid domain name ${JSON.stringify(host)}`);
    this.name = "DomainNameError";
  }
}

/**
 * Host of a Route, or of one of its tags: without port, as in `status.url`. Throws DomainNameError, or TemplateError
 * when a template asks for what the Route does not have.
 */
export function routeHost(
  domain: DomainConfig,
  network: Pick<NetworkConfig, "domainTemplate" | "tagTemplate">,
  { metadata }: NamedRoute,
  tag?: string,
): string {
  const template = isClusterLocal(metadata.labels) ? CLUSTER_LOCAL_TEMPLATE : network.domainTemplate;
  const host = template.render({
    Name: routeHostname(network, metadata.name ?? "", tag),
    Namespace: metadata.namespace ?? "",
    Domain: domainFor(domain, metadata.labels),
    Annotations: metadata.annotations ?? {},
    Labels: metadata.labels ?? {},
  });
  if (!isFullyQualifiedDomainName(host)) throw new DomainNameError(host);
  return host;
}
