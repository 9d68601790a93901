import type { z } from "zod";
import { setFlowSchemaDefaults, setPriorityLevelDefaults } from "../../api/flowcontrol/v1/defaults.ts";
import { FlowSchemaSchema, PriorityLevelConfigurationSchema } from "../../api/flowcontrol/v1/types.ts";
import { validateFlowSchema, validatePriorityLevel } from "../../api/flowcontrol/v1/validate.ts";
import { dns1123SubdomainErrors } from "../../api/meta/dns.ts";
import { MANDATORY_FLOW_SCHEMAS, MANDATORY_PRIORITY_LEVELS } from "../../core/flowcontrol/bootstrap.ts";
import type { FlowControlCase } from "./flow-control-specs.ts";

export interface Verdict {
  readonly accepted: boolean;
  /** With defaults, of an accepted object. */
  readonly spec?: unknown;
  /** The fields that the refusal is about. */
  readonly fields?: readonly string[];
  /** Refused by the CRD's schema: the API server asks no further. */
  readonly bySchema?: true;
}

const byName = (objects: readonly { readonly name: string; readonly spec: object }[]): ReadonlyMap<string, object> =>
  new Map(objects.map(({ name, spec }) => [name, spec]));
const mandatoryLevels = byName(MANDATORY_PRIORITY_LEVELS);
const mandatorySchemas = byName(MANDATORY_FLOW_SCHEMAS);

/** What the CRD's schema, the defaults and the rules say together. */
export function ourVerdict({ kind, name, spec }: FlowControlCase): Verdict {
  const object = { metadata: { name }, spec };
  const schema = kind === "FlowSchema" ? FlowSchemaSchema : PriorityLevelConfigurationSchema;
  const parsed = schema.safeParse(object);
  if (!parsed.success) return { accepted: false, fields: parsed.error.issues.map(fieldOf), bySchema: true };
  const nameFields = dns1123SubdomainErrors(name).length > 0 ? ["metadata.name"] : [];
  if (kind === "FlowSchema") {
    const defaulted = setFlowSchemaDefaults(object as unknown as Parameters<typeof setFlowSchemaDefaults>[0]);
    return verdict(defaulted.spec, [
      ...nameFields,
      ...validateFlowSchema(defaulted, mandatorySchemas).map(e => e.field),
    ]);
  }
  const defaulted = setPriorityLevelDefaults(object as unknown as Parameters<typeof setPriorityLevelDefaults>[0]);
  return verdict(defaulted.spec, [
    ...nameFields,
    ...validatePriorityLevel(defaulted, mandatoryLevels).map(e => e.field),
  ]);
}

const verdict = (spec: unknown, fields: readonly string[]): Verdict =>
  fields.length === 0 ? { accepted: true, spec } : { accepted: false, fields };

const fieldOf = (issue: z.core.$ZodIssue): string =>
  issue.path
    .map((step, i) => (typeof step === "number" ? `[${step}]` : i === 0 ? String(step) : `.${String(step)}`))
    .join("");
