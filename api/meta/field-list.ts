/**
 * Errors in the form of Kubernetes' own validation (k8s.io/apimachinery field.ErrorList): `<field>: <kind>: <value>:
 * <detail>`. Used where Kubernetes' own objects are the model; Knative's are in `field-error.ts`.
 */
export interface ListedError {
  readonly field: string;
  readonly kind: "Required value" | "Invalid value" | "Unsupported value" | "Forbidden";
  /** The value and what is wrong with it. */
  readonly text: string;
}

const body = (...parts: string[]): string => parts.filter(part => part !== "").join(": ");

export const required = (field: string, detail = ""): ListedError => ({
  field,
  kind: "Required value",
  text: body("Required value", detail),
});
export const forbidden = (field: string, detail: string): ListedError => ({
  field,
  kind: "Forbidden",
  text: body("Forbidden", detail),
});
export const invalid = (field: string, value: unknown, detail: string): ListedError => ({
  field,
  kind: "Invalid value",
  text: body("Invalid value", JSON.stringify(value), detail),
});
export const notSupported = (field: string, value: unknown, supported: readonly string[]): ListedError => ({
  field,
  kind: "Unsupported value",
  text: body(
    "Unsupported value",
    JSON.stringify(value),
    `supported values: ${supported.map(v => JSON.stringify(v)).join(", ")}`,
  ),
});

/** The message of the refusal, or undefined when there is no error. `kind` is `Kind.group`. */
export function refusal(kind: string, name: string, errors: readonly ListedError[]): string | undefined {
  const texts = [...new Set(errors.map(error => `${error.field}: ${error.text}`))];
  if (texts.length === 0) return undefined;
  const all = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  return `${kind} ${JSON.stringify(name)} is invalid: ${all}`;
}
