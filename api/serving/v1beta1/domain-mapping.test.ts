import { expect, test } from "vitest";
import { validationFailure } from "../../meta/field-error.ts";
import { defaultAdmissionConfig } from "../admission.ts";
import { setDomainMappingDefaults, validateDomainMapping } from "./domain-mapping.ts";
import type { DomainMapping } from "./types.ts";

const config = defaultAdmissionConfig();
const mapping = (name: string, ref: Partial<DomainMapping["spec"]["ref"]> = {}): DomainMapping => ({
  metadata: { name, namespace: "ns" },
  spec: { ref: { kind: "Service", name: "hello", apiVersion: "serving.knative.dev/v1", ...ref } },
});
const check = (object: DomainMapping) =>
  validationFailure(validateDomainMapping(object, { operation: "CREATE", config }));

test("the reference is taken to be of the mapping's own namespace", () => {
  const defaulted = setDomainMappingDefaults(mapping("a.example.com"), { operation: "CREATE", user: "alice", config });
  expect(defaulted.spec.ref.namespace).toBe("ns");
  expect(defaulted.metadata.annotations?.["serving.knative.dev/creator"]).toBe("alice");
  expect(check(defaulted)).toBeUndefined();
});

test("the name is a domain outside of the cluster's, the reference complete and of the same namespace", () => {
  expect(check(mapping("hello"))).toContain('invalid name "hello"');
  expect(check(mapping("x.ns.svc.cluster.local"))).toBe(
    'validation failed: invalid name "x.ns.svc.cluster.local": must not be a subdomain of cluster local domain "cluster.local": metadata.name',
  );
  expect(check(mapping("a.example.com", { apiVersion: "", namespace: "other", group: "g" }))).toBe(
    [
      "validation failed: mismatched namespaces: spec.ref.namespace",
      'parent namespace: "ns" does not match ref: "other"',
      "missing field(s): spec.ref.apiVersion",
      "must not set the field(s): spec.ref.group",
    ].join("\n"),
  );
});
