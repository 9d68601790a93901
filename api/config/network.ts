import { z } from "zod";
import { parseTemplate } from "../meta/template.ts";
import type { Template, TemplateData } from "../meta/template.ts";
import { bool, checked, choice, integer, parseConfigMap, withAliases } from "./config-map.ts";
import type { ConfigData } from "./config-map.ts";

/** ConfigMap config-network: host names and how traffic moves. */
export const NETWORK_CONFIG_NAME = "config-network";

/** Labels and annotations are empty in the sample, so that only gross errors show here; `routeHost` checks each host. */
const isHostLike = (text: string): boolean => /^[^\s/?#@:]+$/.test(text);

function template(defaults: string, description: string, sample: TemplateData, isValid: (text: string) => boolean) {
  return checked<Template>(defaults, description, "Go template", source => {
    try {
      const parsed = parseTemplate(source);
      const rendered = parsed.render(sample);
      return isValid(rendered)
        ? { ok: parsed }
        : { expected: `must render a host name, rendered ${JSON.stringify(rendered)}` };
    } catch (error) {
      return { expected: error instanceof Error ? error.message : String(error) };
    }
  });
}

export const networkShape = {
  "domain-template": template(
    "{{.Name}}.{{.Namespace}}.{{.Domain}}",
    "Host of a Route. Fields: Name, Namespace, Domain, Annotations, Labels.",
    { Name: "foo", Namespace: "bar", Domain: "baz.com", Annotations: {}, Labels: {} },
    isHostLike,
  ),
  "tag-template": template(
    "{{.Tag}}-{{.Name}}",
    "First part of the host of a tag, and name of its core Service. Fields: Name, Tag.",
    { Name: "foo", Tag: "v2" },
    isHostLike,
  ),
  "rollout-duration": integer(
    "0",
    "Seconds over which traffic would move to a new latest revision; checked and kept for compatibility, it moves at once.",
    {
      min: 0,
    },
  ),
  "autocreate-cluster-domain-claims": bool(
    "true",
    "A DomainMapping claims its domain name by itself; when false no claim is ever made. (Knative: false.)",
  ),
  "default-external-scheme": choice("http", "Scheme of `status.url`.", ["http", "https"]),
  "http-protocol": choice("enabled", "Plain HTTP at the external listener.", ["enabled", "disabled", "redirected"]),
  "external-domain-tls": choice("disabled", "TLS for external domains.", ["disabled", "enabled"]),
  "cluster-local-domain-tls": choice("disabled", "TLS for cluster-local domains.", ["disabled", "enabled"]),
  "system-internal-tls": choice("disabled", "TLS between gateway and queue-proxy.", ["disabled", "enabled"]),
};

/** Newer spelling -> older spelling. */
export const NETWORK_ALIASES = {
  "domain-template": "domainTemplate",
  "tag-template": "tagTemplate",
  "rollout-duration": "rolloutDuration",
  "autocreate-cluster-domain-claims": "autocreateClusterDomainClaims",
  "default-external-scheme": "defaultExternalScheme",
  "http-protocol": "httpProtocol",
  "external-domain-tls": "auto-tls",
};

const NetworkConfigSchema = z.object(networkShape).transform(c => ({
  domainTemplate: c["domain-template"],
  tagTemplate: c["tag-template"],
  rolloutDurationMs: c["rollout-duration"] * 1000,
  autocreateClusterDomainClaims: c["autocreate-cluster-domain-claims"],
  defaultExternalScheme: c["default-external-scheme"],
  httpProtocol: c["http-protocol"],
  externalDomainTls: c["external-domain-tls"] === "enabled",
  clusterLocalDomainTls: c["cluster-local-domain-tls"] === "enabled",
  systemInternalTls: c["system-internal-tls"] === "enabled",
}));

export type NetworkConfig = Readonly<z.infer<typeof NetworkConfigSchema>>;

export function parseNetworkConfig(data?: ConfigData): NetworkConfig {
  return parseConfigMap(NETWORK_CONFIG_NAME, NetworkConfigSchema, withAliases(data, NETWORK_ALIASES));
}

/** First part of a Route's host, and name of its core Service: the Route's name, or what the tag template makes of it. */
export const routeHostname = (config: Pick<NetworkConfig, "tagTemplate">, route: string, tag?: string): string =>
  tag === undefined || tag === "" ? route : config.tagTemplate.render({ Name: route, Tag: tag });
