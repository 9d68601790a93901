import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments, stringify } from "yaml";
import { parseDefaultsConfig } from "../../../api/config/defaults.ts";
import { parseDeploymentConfig } from "../../../api/config/deployment.ts";
import { parseFeaturesConfig } from "../../../api/config/features.ts";
import { parseObservabilityConfig } from "../../../api/config/observability.ts";
import type { Configuration, Revision, Route, Service } from "../../../api/serving/v1/types.ts";
import type { PathMode } from "../../../core/autoscaling/lifecycle.ts";
import type { CoreService, EndpointSlice } from "../kinds.ts";
import { buildConfiguration } from "./configuration.ts";
import { buildDeployment } from "./deployment.ts";
import type { PodSettings } from "./pod-settings.ts";
import { buildPublicEndpointSlices } from "./public-endpoint-slices.ts";
import { buildRevision } from "./revision.ts";
import { buildPrivateService, buildPublicService } from "./revision-services.ts";
import { buildRoute } from "./route.ts";
import { buildRouteService } from "./route-service.ts";

/**
 * Each `testdata/BUILDER/CASE.in.yaml` is what a builder is given, `CASE.out.yaml` what it must make of it. After a change that
 * is meant: `UPDATE_GOLDEN=1 npx vitest run capabilities/services/build`, and read the diff.
 */
interface Input {
  readonly service: Service;
  readonly configuration: Configuration;
  readonly revision: Revision;
  readonly route: Route;
  readonly tag: string;
  readonly routes: string[];
  readonly existing?: CoreService;
  readonly mode: PathMode;
  readonly gateways: EndpointSlice[];
  readonly pods: EndpointSlice[];
  /** Data of the ConfigMaps config-defaults, config-deployment, config-features and config-observability. */
  readonly config?: Readonly<
    Record<"defaults" | "deployment" | "features" | "observability", Record<string, string> | undefined>
  >;
}

const settings = (input: Input): PodSettings => ({
  deployment: parseDeploymentConfig(input.config?.deployment, parse),
  features: parseFeaturesConfig(input.config?.features),
  observability: parseObservabilityConfig(input.config?.observability),
  enableServiceLinks: false,
  automountServiceAccountToken: parseDefaultsConfig(input.config?.defaults).automountServiceAccountToken,
  queueProxyImage: "fairway.dev/fairway:test",
});

const BUILDERS: Readonly<Record<string, (input: Input) => readonly object[]>> = {
  configuration: input => [buildConfiguration(input.service)],
  deployment: input => [buildDeployment(input.revision, settings(input))],
  "public-endpoint-slices": input =>
    buildPublicEndpointSlices(input.revision, input.mode, { gateways: input.gateways, pods: input.pods }),
  revision: input => [buildRevision(input.configuration, input.routes, "2026-01-01T00:00:00Z")],
  "revision-services": input => [buildPrivateService(input.revision), buildPublicService(input.revision)],
  route: input => [buildRoute(input.service)],
  "route-service": input => [
    buildRouteService(input.route, input.tag, input.existing, {
      systemNamespace: "fairway-system",
      clusterDomain: "cluster.local",
    }),
  ],
};

const testdata = join(import.meta.dirname, "testdata");
const cases = readdirSync(testdata).flatMap(builder =>
  readdirSync(join(testdata, builder))
    .filter(file => file.endsWith(".in.yaml"))
    .map(file => ({ builder, name: file.replace(/\.in\.yaml$/, "") })),
);

describe("builders", () => {
  it.each(cases)("$builder: $name", ({ builder, name }) => {
    const build = BUILDERS[builder];
    if (build === undefined) throw new Error(`no builder for testdata/${builder}`);
    const input = parse(readFileSync(join(testdata, builder, `${name}.in.yaml`), "utf8")) as Input;
    const before = JSON.stringify(input);
    const made = JSON.parse(JSON.stringify(build(input))) as object[];
    expect(JSON.stringify(input), "arguments are not changed").toBe(before);

    const golden = join(testdata, builder, `${name}.out.yaml`);
    if (process.env["UPDATE_GOLDEN"] !== undefined) {
      writeFileSync(golden, made.map(object => stringify(object, { aliasDuplicateObjects: false })).join("---\n"));
    }
    expect(made).toEqual(parseAllDocuments(readFileSync(golden, "utf8")).map(document => document.toJS() as unknown));
  });
});
