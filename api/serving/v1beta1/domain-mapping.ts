import { isFullyQualifiedDomainName } from "../../meta/dns.ts";
import { at, disallowed, generic, missing } from "../../meta/field-error.ts";
import type { FieldErrors } from "../../meta/field-error.ts";
import { quote } from "../../meta/go-format.ts";
import type { DefaultingContext, ValidationContext } from "../admission.ts";
import { validateUserInfo, withUserInfo } from "../admission.ts";
import type { DomainMapping } from "./types.ts";

/** Defaults and rules of DomainMapping: those of Knative's serving/v1beta1. */

export function setDomainMappingDefaults(
  mapping: DomainMapping,
  context: DefaultingContext<DomainMapping>,
): DomainMapping {
  const { spec, metadata } = mapping;
  const ref =
    spec.ref.namespace || metadata.namespace === undefined ? spec.ref : { ...spec.ref, namespace: metadata.namespace };
  return withUserInfo({ ...mapping, spec: { ...spec, ref } }, context);
}

export function validateDomainMapping(
  mapping: DomainMapping,
  context: ValidationContext<DomainMapping>,
  clusterDomain = "cluster.local",
): FieldErrors {
  if (context.subresource === "status") return [];
  const { metadata, spec } = mapping;
  const name = metadata.name ?? "";
  const { ref } = spec;
  const namespace = metadata.namespace ?? "";
  return [
    ...at("metadata", [
      ...(metadata.generateName ? [disallowed("generateName")] : []),
      ...(isFullyQualifiedDomainName(name)
        ? []
        : [generic(`invalid name ${quote(name)}: must be a domain name of at least two lower-case labels`, ["name"])]),
      ...(name.endsWith(`.${clusterDomain}`)
        ? [
            generic(
              `invalid name ${quote(name)}: must not be a subdomain of cluster local domain ${quote(clusterDomain)}`,
              ["name"],
            ),
          ]
        : []),
      ...(context.old === undefined ? [] : at("annotations", validateUserInfo(mapping, context.old))),
    ]),
    ...at("spec.ref", [
      ...(ref.name ? [] : [missing("name")]),
      ...(ref.group ? [disallowed("group")] : []),
      ...(ref.apiVersion ? [] : [missing("apiVersion")]),
      ...(ref.kind ? [] : [missing("kind")]),
      ...(ref.namespace && namespace !== "" && ref.namespace !== namespace
        ? [
            generic(
              "mismatched namespaces",
              ["namespace"],
              `parent namespace: ${quote(namespace)} does not match ref: ${quote(ref.namespace)}`,
            ),
          ]
        : []),
    ]),
  ];
}
