import { z } from "zod";

/** The part of JSON Schema that a CRD's structural schema may use. */
export interface StructuralSchema {
  readonly type?: string;
  readonly description?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly anyOf?: readonly unknown[];
  readonly items?: StructuralSchema;
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly additionalProperties?: StructuralSchema;
  readonly required?: readonly string[];
  readonly [extension: `x-kubernetes-${string}`]: unknown;
}

type Json = Readonly<Record<string, unknown>>;

const COPIED = [
  "type",
  "description",
  "format",
  "pattern",
  "default",
  "enum",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
];

/**
 * Turns a zod schema into a structural schema. What zod writes and Kubernetes refuses is translated:
 * `additionalProperties: {}` beside properties (a loose object) becomes `x-kubernetes-preserve-unknown-fields`, a union
 * marked int-or-string keeps only its two types, and the bounds of JavaScript's safe integers are left out. Anything else
 * that a structural schema has no word for is an error here, not at the API server.
 */
export function toStructuralSchema(schema: z.ZodType): StructuralSchema {
  return convert(z.toJSONSchema(schema, { io: "input", target: "openapi-3.0", reused: "inline" }) as Json, "");
}

function convert(json: Json, path: string): StructuralSchema {
  const out: Record<string, unknown> = {};
  for (const key of COPIED) if (json[key] !== undefined) out[key] = json[key];
  for (const [key, value] of Object.entries(json)) if (key.startsWith("x-kubernetes-")) out[key] = value;
  if (json["minimum"] !== undefined && json["minimum"] !== Number.MIN_SAFE_INTEGER) out["minimum"] = json["minimum"];
  if (json["maximum"] !== undefined && json["maximum"] !== Number.MAX_SAFE_INTEGER) out["maximum"] = json["maximum"];

  if (json["x-kubernetes-int-or-string"] === true) {
    delete out["type"];
    out["anyOf"] = [{ type: "integer" }, { type: "string" }];
    return out;
  }
  for (const word of ["anyOf", "oneOf", "allOf", "not", "$ref", "const", "nullable", "propertyNames"]) {
    if (json[word] !== undefined && !isStringKeys(word, json[word])) {
      throw new Error(`${path || "schema"}: ${word} has no structural form`);
    }
  }
  if (json["type"] === undefined) throw new Error(`${path || "schema"}: no type`);

  if (json["items"] !== undefined) out["items"] = convert(json["items"] as Json, `${path}[]`);
  const properties = json["properties"] as Readonly<Record<string, Json>> | undefined;
  if (properties !== undefined && Object.keys(properties).length > 0) {
    out["properties"] = Object.fromEntries(
      Object.entries(properties).map(([name, property]) => [name, convert(property, `${path}.${name}`)]),
    );
  }
  const additional = json["additionalProperties"] as Json | boolean | undefined;
  if (typeof additional === "object" && Object.keys(additional).length > 0) {
    out["additionalProperties"] = convert(additional, `${path}.*`);
  } else if (typeof additional === "object" || additional === true) {
    out["x-kubernetes-preserve-unknown-fields"] = true;
  }
  const required = json["required"] as readonly string[] | undefined;
  if (required !== undefined && required.length > 0) out["required"] = required;
  return out;
}

/** Keys of a record are always texts; zod says so explicitly, and Kubernetes takes it for granted. */
const isStringKeys = (word: string, value: unknown): boolean =>
  word === "propertyNames" && JSON.stringify(value) === JSON.stringify({ type: "string" });
