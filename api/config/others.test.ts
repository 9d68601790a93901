import { describe, expect, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { unknownKeys } from "./config-map.ts";
import { defaultsShape, parseDefaultsConfig } from "./defaults.ts";
import { parseDeploymentConfig, runtimeClassFor } from "./deployment.ts";
import { domainFor, parseDomainConfig, routeHost } from "./domain.ts";
import { parseFeaturesConfig } from "./features.ts";
import { parseGcConfig } from "./gc.ts";
import { configMapWarnings } from "./known-keys.ts";
import { parseNetworkConfig, routeHostname } from "./network.ts";
import { parseObservabilityConfig, revisionLogUrl } from "./observability.ts";

describe("config-defaults", () => {
  test("defaults; the response start timeout follows the timeout", () => {
    expect(parseDefaultsConfig()).toMatchObject({
      revisionTimeoutSeconds: 300,
      maxRevisionTimeoutSeconds: 600,
      revisionResponseStartTimeoutSeconds: 300,
      revisionIdleTimeoutSeconds: 0,
      containerConcurrency: 0,
      containerConcurrencyMaxLimit: 1000,
      allowContainerConcurrencyZero: true,
      enableServiceLinks: false,
      requests: {},
      limits: {},
    });
    expect(parseDefaultsConfig({ "revision-timeout-seconds": "60" }).revisionResponseStartTimeoutSeconds).toBe(60);
    expect(parseDefaultsConfig({ "enable-service-links": "default" }).enableServiceLinks).toBeUndefined();
    expect(parseDefaultsConfig({ "revision-cpu-request": "100m" }).requests).toEqual({ cpu: "100m" });
  });

  test.each([
    [
      { "revision-timeout-seconds": "700" },
      "revision-timeout-seconds must be at most max-revision-timeout-seconds(600), was 700",
    ],
    [{ "revision-idle-timeout-seconds": "301" }, "must be at most revision-timeout-seconds(300), was 301"],
    [{ "container-concurrency": "1001" }, "must be at most container-concurrency-max-limit(1000), was 1001"],
    [{ "revision-memory-limit": "1 GB" }, `revision-memory-limit must be a quantity such as 500m or 128Mi, was "1 GB"`],
    [{ "container-name-template": "{{.Name}}_x" }, "container-name-template must render a container name"],
  ])("%j is refused", (data, message) => {
    expect(() => parseDefaultsConfig(data as unknown as Record<string, string>)).toThrow(message);
  });

  test("misspelt keys are warned of, older spellings are not", () => {
    expect(configMapWarnings("config-defaults", { "revision-timeout-secs": "1", _example: "" })).toEqual([
      "config-defaults: revision-timeout-secs is no key of it and has no effect",
    ]);
    expect(configMapWarnings("config-deployment", { progressDeadline: "60s" })).toEqual([]);
    expect(configMapWarnings("config-domain", { "example.com": "" })).toEqual([]);
  });

  test("misspelt keys can be found", () => {
    expect(unknownKeys(Object.keys(defaultsShape), { _example: "", "revision-timeout-secs": "1" })).toEqual([
      "revision-timeout-secs",
    ]);
  });
});

describe("config-domain and config-network", () => {
  const domains = parseDomainConfig(
    { "example.com": "", "example.org": "selector:\n  app: prod\n", "a.example.org": "selector: {app: prod}" },
    parseYaml,
  );

  test("the most specific selector wins, then the smaller name; no label: the default", () => {
    expect(domainFor(domains, undefined)).toBe("example.com");
    expect(domainFor(domains, { app: "prod" })).toBe("a.example.org");
    expect(domainFor(domains, { "networking.knative.dev/visibility": "cluster-local" })).toBe("svc.cluster.local");
  });

  test("without a default domain, Routes live in the cluster's", () => {
    expect(domainFor(parseDomainConfig(undefined, parseYaml), {})).toBe("svc.cluster.local");
  });

  test.each([
    [{ "Example.com": "" }, "config-domain: Example.com must be a domain name"],
    [{ "example.com": "selector: [1]" }, "selector must be a map of texts, was [1]"],
    [{ "example.com": "a: b: c" }, "must be YAML"],
    [{ "example.com": "just text" }, "must be empty or hold a selector"],
  ])("%j is refused", (data, message) => {
    expect(() => parseDomainConfig(data as unknown as Record<string, string>, parseYaml)).toThrow(message);
  });

  test("hosts of a Route and its tags", () => {
    const network = parseNetworkConfig({
      "domain-template": '{{.Name}}-{{.Namespace}}.{{index .Labels "team"}}.{{.Domain}}',
      tagTemplate: "{{.Name}}--{{.Tag}}",
    });
    const route = { metadata: { name: "hello", namespace: "ns", labels: { team: "blue" } } };
    expect(routeHost(domains, network, route)).toBe("hello-ns.blue.example.com");
    expect(routeHost(domains, network, route, "v1")).toBe("hello--v1-ns.blue.example.com");
    expect(routeHostname(parseNetworkConfig(), "hello", "v1")).toBe("v1-hello");
    const local = { metadata: { ...route.metadata, labels: { "networking.knative.dev/visibility": "cluster-local" } } };
    expect(routeHost(domains, network, local)).toBe("hello.ns.svc.cluster.local");
    expect(() => routeHost(domains, network, route, "t".repeat(60))).toThrow("invalid domain name");
  });

  test("a template that makes no host name is refused", () => {
    expect(() => parseNetworkConfig({ "domain-template": "{{.Name}}/{{.Namespace}}" })).toThrow(
      `config-network: domain-template must render a host name, rendered "foo/bar"`,
    );
    expect(() => parseNetworkConfig({ "domain-template": "{{.Nope}}" })).toThrow(".Nope does not exist");
    expect(() => parseNetworkConfig({ "rollout-duration": "-1" })).toThrow("rollout-duration must be at least 0");
  });
});

test("config-gc: disabled, and min above max", () => {
  expect(parseGcConfig()).toEqual({
    retainSinceCreateTimeMs: 48 * 3_600_000,
    retainSinceLastActiveTimeMs: 15 * 3_600_000,
    minNonActiveRevisions: 20,
    maxNonActiveRevisions: 1000,
  });
  expect(
    parseGcConfig({ "max-non-active-revisions": "disabled", "retain-since-create-time": "Disabled" }),
  ).toMatchObject({ maxNonActiveRevisions: undefined, retainSinceCreateTimeMs: undefined });
  expect(() => parseGcConfig({ "max-non-active-revisions": "3" })).toThrow(
    "min-non-active-revisions must be at most max-non-active-revisions(3), was 20",
  );
});

test("config-features: any case, and only known words", () => {
  expect(parseFeaturesConfig({ "kubernetes.podspec-affinity": "Enabled" })).toMatchObject({
    "kubernetes.podspec-affinity": "enabled",
    "multi-container": "enabled",
    "kubernetes.podspec-volumes-emptydir": "enabled",
    "kubernetes.podspec-init-containers": "disabled",
  });
  expect(() => parseFeaturesConfig({ "multi-container": "on" })).toThrow(
    `config-features: multi-container must be one of enabled, allowed, disabled, was "on"`,
  );
});

test("config-deployment: older spellings, lists, and runtime classes by labels", () => {
  const config = parseDeploymentConfig(
    {
      progressDeadline: "120s",
      "registries-skipping-tag-resolving": "a.local, b.local",
      "runtime-class-name": "kata: {}\ngvisor:\n  selector:\n    sandbox: strict\n",
    },
    parseYaml,
  );
  expect(config).toMatchObject({
    progressDeadlineMs: 120_000,
    registriesSkippingTagResolving: ["a.local", "b.local"],
    queueSidecarRequests: { cpu: "25m" },
    queueSidecarLimits: {},
  });
  expect(runtimeClassFor(config, {})).toBe("kata");
  expect(runtimeClassFor(config, { sandbox: "strict" })).toBe("gvisor");
  expect(() => parseDeploymentConfig({ "progress-deadline": "0s" }, parseYaml)).toThrow("must be greater than 0s");
  expect(() => parseDeploymentConfig({ "runtime-class-name": "[1]" }, parseYaml)).toThrow("runtime-class-name must be");
});

test("config-observability: log URL of a revision", () => {
  const url = "http://logs/?uid=${REVISION_UID}";
  expect(revisionLogUrl(parseObservabilityConfig({ "logging.revision-url-template": url }), "u1")).toBe(
    "http://logs/?uid=u1",
  );
  expect(revisionLogUrl(parseObservabilityConfig(), "u1")).toBeUndefined();
});
