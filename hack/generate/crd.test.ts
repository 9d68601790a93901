import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { KINDS } from "./crd.ts";
import { generatedFiles } from "./files.ts";
import type { StructuralSchema } from "./structural-schema.ts";

const root = join(import.meta.dirname, "../..");

interface Crd {
  metadata: { name: string };
  spec: {
    names: { shortNames?: string[]; categories?: string[] };
    versions: { schema: { openAPIV3Schema: StructuralSchema }; subresources: object }[];
  };
}
const crd = (name: string): Crd => parse(readFileSync(join(root, "crds", name), "utf8")) as Crd;

test("generated files are current: run `npm run generate`", async () => {
  const files = await generatedFiles();
  for (const [path, content] of files) expect(readFileSync(join(root, path), "utf8"), path).toBe(content);
  for (const directory of ["crds", "docs/reference"]) {
    for (const name of readdirSync(join(root, directory))) expect([...files.keys()]).toContain(`${directory}/${name}`);
  }
});

describe("the Service's CRD", () => {
  const service = crd("serving.knative.dev_services.yaml");
  const schema = service.spec.versions[0]!.schema.openAPIV3Schema;
  const podSpec = schema.properties!["spec"]!.properties!["template"]!.properties!["spec"]!;
  const container = podSpec.properties!["containers"]!.items!;

  test("is found by Knative's short names and categories, and has a status subresource", () => {
    expect(service.spec.names).toMatchObject({
      shortNames: ["kservice", "ksvc"],
      categories: ["all", "knative", "serving"],
    });
    expect(service.spec.versions[0]?.subresources).toEqual({ status: {} });
  });

  test("port 0, which Go clients send for an absent port, is not bounded away", () => {
    expect(container.properties!["ports"]!.items!.properties!["containerPort"]).toMatchObject({ type: "integer" });
    expect(container.properties!["ports"]!.items!.properties!["containerPort"]).not.toHaveProperty("minimum");
    expect(container.properties!["readinessProbe"]!.properties!["tcpSocket"]).not.toHaveProperty("required");
  });

  test("the image is not required by the schema, so that admission can say what is missing", () => {
    expect(container).not.toHaveProperty("required");
  });

  test("parts of the pod that Kubernetes alone defines keep their unknown fields", () => {
    for (const field of ["affinity", "securityContext", "dnsConfig"]) {
      expect(podSpec.properties![field]).toMatchObject({ "x-kubernetes-preserve-unknown-fields": true });
    }
  });
});

test("every kind has columns and its metadata is left to the API server", () => {
  for (const { group, plural, columns } of KINDS) {
    const schema = crd(`${group}_${plural}.yaml`).spec.versions[0]!.schema.openAPIV3Schema;
    expect(columns.length).toBeGreaterThan(0);
    expect(schema.properties!["metadata"]).toEqual({ type: "object" });
  }
});
