import { LABEL } from "../../labels.ts";
import { dns1035LabelErrors, qualifiedNameErrors } from "../../meta/dns.ts";
import {
  at,
  disallowed,
  generic,
  invalidKeyName,
  invalidValue,
  missing,
  missingOneOf,
  multipleOneOf,
  outOfBounds,
  SELF,
} from "../../meta/field-error.ts";
import type { FieldErrors } from "../../meta/field-error.ts";
import { quote } from "../../meta/go-format.ts";
import type { ObjectMeta } from "../../meta/object-meta.ts";
import type { AdmissionConfig, ValidationContext } from "../admission.ts";
import { validateUserInfo } from "../admission.ts";
import { describeChanges } from "./semantic-diff.ts";
import type {
  Configuration,
  Revision,
  RevisionSpec,
  RevisionTemplate,
  Route,
  Service,
  TrafficTarget,
} from "./types.ts";
import {
  validateRevisionAnnotations,
  validateRolloutDuration,
  validateServiceAnnotations,
  validateTemplateAnnotations,
} from "./validate-annotations.ts";
import { validatePodSpec } from "./validate-pod-spec.ts";

/**
 * Rules of the Serving kinds, applied after the defaults: those of Knative's serving/v1 *_validation.go. The errors in their
 * shown form: `validationFailure` and `validationWarnings` of meta/field-error.ts.
 */

export function validateService(service: Service, context: ValidationContext<Service>): FieldErrors {
  if (context.subresource === "status") return [];
  const { metadata, spec } = service;
  const { old, config } = context;
  return [
    ...at("metadata", [
      ...validateName(metadata),
      ...at("annotations", [
        ...validateServiceAnnotations(metadata.annotations ?? {}),
        ...validateRolloutDuration(metadata.annotations ?? {}),
      ]),
    ]),
    ...at("spec", [
      ...at("template", validateTemplate(spec.template, metadata, config)),
      ...at("traffic", validateTraffic(spec.traffic ?? [], "of-service")),
    ]),
    ...(old === undefined
      ? []
      : [
          ...at("metadata.annotations", validateUserInfo(service, old)),
          ...at("spec.template", verifyNameChange(old.spec.template, spec.template)),
        ]),
  ];
}

export function validateConfiguration(
  configuration: Configuration,
  context: ValidationContext<Configuration>,
): FieldErrors {
  if (context.subresource === "status") return [];
  const { metadata, spec } = configuration;
  const { old, config } = context;
  return [
    ...at("metadata", [
      ...validateName(metadata),
      ...at("annotations", validateServiceAnnotations(metadata.annotations ?? {})),
      ...at("labels", ownerNamedBy(LABEL.service, "Service", metadata)),
    ]),
    ...at("spec.template", validateTemplate(spec.template, metadata, config)),
    ...(old === undefined
      ? []
      : [
          ...at("metadata.annotations", validateUserInfo(configuration, old)),
          ...at("spec.template", verifyNameChange(old.spec.template, spec.template)),
        ]),
  ];
}

export function validateRevision(revision: Revision, context: ValidationContext<Revision>): FieldErrors {
  if (context.subresource === "status") return [];
  const { metadata, spec } = revision;
  const { old, config } = context;
  if (old !== undefined) {
    const changes = describeChanges({ spec: old.spec }, { spec });
    if (changes !== "") return [generic("Immutable fields changed (-old +new)", ["spec"], changes)];
  }
  return [
    ...at("metadata", [
      ...validateName(metadata),
      ...at("annotations", validateRevisionAnnotations(metadata.annotations ?? {}, config.autoscaler)),
      ...at("labels", ownerNamedBy(LABEL.configuration, "Configuration", metadata)),
    ]),
    ...(old === undefined ? at("spec", validateRevisionSpec(spec, config)) : []),
  ];
}

export function validateRoute(route: Route, context: ValidationContext<Route>): FieldErrors {
  if (context.subresource === "status") return [];
  const { metadata, spec } = route;
  const { old } = context;
  return [
    ...at("metadata", [
      ...validateName(metadata),
      ...at("annotations", [
        ...validateServiceAnnotations(metadata.annotations ?? {}),
        ...validateRolloutDuration(metadata.annotations ?? {}),
      ]),
      ...at("labels", ownerNamedBy(LABEL.service, "Service", metadata)),
    ]),
    ...at("spec.traffic", validateTraffic(spec?.traffic ?? [], "of-route")),
    ...(old === undefined ? [] : at("metadata.annotations", validateUserInfo(route, old))),
  ];
}

/** The name becomes a label of a host name. */
function validateName({ name, generateName }: ObjectMeta): FieldErrors {
  const shown = (errors: readonly string[]) => `[${errors.join(" ")}]`;
  if (generateName) {
    const errors = dns1035LabelErrors(generateName, true);
    if (errors.length > 0) return [generic(`not a DNS 1035 label prefix: ${shown(errors)}`, ["generateName"])];
  }
  if (name) {
    const errors = dns1035LabelErrors(name);
    if (errors.length > 0) return [generic(`not a DNS 1035 label: ${shown(errors)}`, ["name"])];
  }
  return generateName || name ? [] : [generic("name or generateName is required", ["name"])];
}

/** A label that says whose child the object is must be true. */
function ownerNamedBy(label: string, kind: string, { labels, ownerReferences }: ObjectMeta): FieldErrors {
  const name = labels?.[label];
  if (name === undefined) return [];
  return (ownerReferences ?? []).some(owner => owner.kind === kind && owner.name === name) ? [] : [missing(label)];
}

function validateTemplate(template: RevisionTemplate, parent: ObjectMeta, config: AdmissionConfig): FieldErrors {
  return [
    ...at("spec", validateRevisionSpec(template.spec, config)),
    ...at("metadata.annotations", validateTemplateAnnotations(template.metadata?.annotations ?? {}, config.autoscaler)),
    ...at("metadata", validateRevisionName(template.metadata ?? {}, parent)),
  ];
}

/** A name of one's own begins with the parent's, and is of no use when the parent's is generated. */
function validateRevisionName(
  { name, generateName }: { readonly name?: string | undefined; readonly generateName?: string | undefined },
  parent: ObjectMeta,
): FieldErrors {
  const shown = (errors: readonly string[]) => `[${errors.join(" ")}]`;
  if (generateName) {
    const errors = dns1035LabelErrors(generateName, true);
    if (errors.length > 0) return [invalidValue(`not a DNS 1035 label prefix: ${shown(errors)}`, "generateName")];
  }
  if (!name) return [];
  const errors = dns1035LabelErrors(name);
  if (errors.length > 0) return [invalidValue(`not a DNS 1035 label: ${shown(errors)}`, "name")];
  if (!parent.name && parent.generateName) return [disallowed("name")];
  const prefix = `${parent.name ?? ""}-`;
  return name.startsWith(prefix) ? [] : [invalidValue(`${quote(name)} must have prefix ${quote(prefix)}`, "name")];
}

/** A template that brings its own name must bring another with every change. */
function verifyNameChange(old: RevisionTemplate, template: RevisionTemplate): FieldErrors {
  const name = template.metadata?.name;
  if (!name || name !== old.metadata?.name) return [];
  const changes = describeChanges(old, template);
  return changes === ""
    ? []
    : [generic("Saw the following changes without a name change (-old +new)", ["metadata.name"], changes)];
}

function validateRevisionSpec(spec: RevisionSpec, { defaults, features }: AdmissionConfig): FieldErrors {
  const timeout = spec.timeoutSeconds ?? 0;
  const longest = defaults.maxRevisionTimeoutSeconds;
  const concurrency = spec.containerConcurrency;
  const least = defaults.allowContainerConcurrencyZero ? 0 : 1;
  const most = defaults.containerConcurrencyMaxLimit;
  return [
    ...validatePodSpec(spec, features),
    ...(timeout < 0 || timeout > longest ? [outOfBounds(timeout, 0, longest, "timeoutSeconds")] : []),
    ...(concurrency !== undefined && (concurrency < least || concurrency > most)
      ? [outOfBounds(concurrency, least, most, "containerConcurrency")]
      : []),
    ...(["responseStartTimeoutSeconds", "idleTimeoutSeconds"] as const)
      .filter(field => (spec[field] ?? 0) < 0)
      .map(field => outOfBounds(spec[field] ?? 0, 0, longest, field)),
  ];
}

function validateTraffic(traffic: readonly TrafficTarget[], place: "of-service" | "of-route"): FieldErrors {
  const sum = traffic.reduce((total, target) => total + (target.percent ?? 0), 0);
  return [
    ...traffic.flatMap((target, i) => [...at(i, validateTarget(target, place)), ...validateTag(traffic, i)]),
    ...(sum === 100 ? [] : [generic(`Traffic targets sum to ${sum}, want 100`, [SELF])]),
  ];
}

function validateTag(traffic: readonly TrafficTarget[], index: number): FieldErrors {
  const tag = traffic[index]?.tag;
  if (!tag) return [];
  const errors = dns1035LabelErrors(tag);
  const first = traffic.findIndex(target => target.tag === tag);
  return [
    ...(errors.length > 0 ? [invalidValue(`not a DNS 1035 label: [${errors.join(" ")}]`, `[${index}].tag`)] : []),
    ...(first < index ? [generic(`Multiple definitions for ${quote(tag)}`, [`[${index}].tag`, `[${first}].tag`])] : []),
  ];
}

function validateTarget(target: TrafficTarget, place: "of-service" | "of-route"): FieldErrors {
  const { revisionName, configurationName, latestRevision, percent, url } = target;
  const pinned = Boolean(revisionName);
  const latest =
    latestRevision !== undefined && pinned === latestRevision
      ? [
          generic(`may not set revisionName ${quote(revisionName ?? "")} when latestRevision is ${latestRevision}`, [
            "latestRevision",
          ]),
        ]
      : [];
  return [
    ...latest,
    ...validateReference(revisionName, configurationName, place),
    ...(percent !== undefined && (percent < 0 || percent > 100) ? [outOfBounds(percent, 0, 100, "percent")] : []),
    ...(url ? [disallowed("url")] : []),
  ];
}

function validateReference(
  revisionName: string | undefined,
  configurationName: string | undefined,
  place: "of-service" | "of-route",
): FieldErrors {
  const named = (name: string, field: string): FieldErrors => {
    const errors = qualifiedNameErrors(name);
    return errors.length === 0 ? [] : [invalidKeyName(name, field, errors.join(", "))];
  };
  if (place === "of-service" && configurationName) return [disallowed("configurationName")];
  if (revisionName && configurationName) return [multipleOneOf("revisionName", "configurationName")];
  if (revisionName) return named(revisionName, "revisionName");
  if (configurationName) return named(configurationName, "configurationName");
  return place === "of-service" ? [] : [missingOneOf("revisionName", "configurationName")];
}
