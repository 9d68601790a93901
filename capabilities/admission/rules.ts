import type { ListedError } from "../../api/meta/field-list.ts";
import { refusal } from "../../api/meta/field-list.ts";
import { validationFailure, validationWarnings, type FieldErrors } from "../../api/meta/field-error.ts";
import type { AdmissionConfig, DefaultingContext, ValidationContext } from "../../api/serving/admission.ts";
import type { KubeObject } from "../runtime/types.ts";
import type { AdmissionFacts, Verdict } from "./actions.ts";

/** Gives the defaults of a Serving kind what they need of a request and of the settings. */
export function servingDefaults<T>(
  setDefaults: (object: T, context: DefaultingContext<T>) => T,
  config: () => AdmissionConfig,
): (object: T, facts: AdmissionFacts<T>) => T {
  return (object, facts) => setDefaults(object, { ...facts, config: config() });
}

/** The same for its validation, with errors in Knative's form. */
export function servingRules<T>(
  validate: (object: T, context: ValidationContext<T>) => FieldErrors,
  config: () => AdmissionConfig,
): (object: T, facts: AdmissionFacts<T>) => Verdict {
  return (object, { operation, old }) => {
    const errors = validate(object, { operation, old, config: config() });
    return { refusal: validationFailure(errors), warnings: validationWarnings(errors) };
  };
}

/** Validation of a flow-control kind, with errors in Kubernetes' form; `kind` is `Kind.group`. */
export function flowControlRules<T extends KubeObject>(
  kind: string,
  validate: (object: T) => readonly ListedError[],
): (object: T) => Verdict {
  return object => ({ refusal: refusal(kind, object.metadata?.name ?? "", validate(object)), warnings: [] });
}
