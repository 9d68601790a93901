import type { AutoscalerConfig } from "../config/autoscaler.ts";
import { parseAutoscalerConfig } from "../config/autoscaler.ts";
import type { DefaultsConfig } from "../config/defaults.ts";
import { parseDefaultsConfig } from "../config/defaults.ts";
import type { FeaturesConfig } from "../config/features.ts";
import { parseFeaturesConfig } from "../config/features.ts";
import { STATE_ANNOTATION } from "../labels.ts";
import { generic, invalidValue } from "../meta/field-error.ts";
import type { FieldErrors } from "../meta/field-error.ts";
import { jsonEqual } from "../meta/json.ts";
import type { ObjectMeta } from "../meta/object-meta.ts";

/** What admission of the Serving kinds needs to know beside the object. */

export interface AdmissionConfig {
  readonly defaults: DefaultsConfig;
  readonly features: FeaturesConfig;
  readonly autoscaler: AutoscalerConfig;
}

/** What holds while there are no ConfigMaps. */
export const defaultAdmissionConfig = (): AdmissionConfig => ({
  defaults: parseDefaultsConfig(),
  features: parseFeaturesConfig(),
  autoscaler: parseAutoscalerConfig(),
});

export type Operation = "CREATE" | "UPDATE";

export interface DefaultingContext<T> {
  readonly operation: Operation;
  /** The object before an update. */
  readonly old?: T | undefined;
  /** Name of who sent the request; absent: no one is noted. */
  readonly user?: string | undefined;
  readonly config: AdmissionConfig;
}

export interface ValidationContext<T> {
  readonly operation: Operation;
  readonly old?: T | undefined;
  /** An update of the status alone: metadata and spec cannot change, and rules may have since they were written. */
  readonly subresource?: "status" | undefined;
  readonly config: AdmissionConfig;
}

interface Kept {
  readonly metadata: ObjectMeta;
  readonly spec?: unknown;
}

/**
 * Notes who made an object and who last changed its spec. Objects that belong to another are left alone. An update that
 * leaves the two annotations out (a controller that writes whole objects) keeps them.
 */
export function withUserInfo<T extends Kept>(object: T, { operation, old, user }: DefaultingContext<T>): T {
  if (object.metadata.ownerReferences !== undefined && object.metadata.ownerReferences.length > 0) return object;
  const before = operation === "UPDATE" ? old?.metadata.annotations : undefined;
  const annotations = { ...object.metadata.annotations };
  for (const key of [STATE_ANNOTATION.creator, STATE_ANNOTATION.lastModifier]) {
    const value = before?.[key];
    if (value !== undefined && (annotations[key] === undefined || isCloudRunExport(object))) annotations[key] = value;
  }
  if (user !== undefined && operation === "CREATE") annotations[STATE_ANNOTATION.creator] = user;
  if (user !== undefined && (operation === "CREATE" || !jsonEqual(old?.spec, object.spec))) {
    annotations[STATE_ANNOTATION.lastModifier] = user;
  }
  return jsonEqual(annotations, object.metadata.annotations ?? {})
    ? object
    : { ...object, metadata: { ...object.metadata, annotations } };
}

/** The two annotations may not be changed by hand. */
export function validateUserInfo(object: Kept, old: Kept): FieldErrors {
  if (object.metadata.ownerReferences !== undefined && object.metadata.ownerReferences.length > 0) return [];
  const { creator, lastModifier } = STATE_ANNOTATION;
  const [before, after] = [old.metadata.annotations ?? {}, object.metadata.annotations ?? {}];
  return [
    ...(before[creator] === after[creator] ? [] : [generic("annotation value is immutable", [creator])]),
    ...(jsonEqual(old.spec, object.spec) && before[lastModifier] !== after[lastModifier]
      ? [invalidValue(after[lastModifier] ?? "", lastModifier)]
      : []),
  ];
}

/** YAML that `gcloud run services describe --format export` wrote carries the names of its users at Google. */
function isCloudRunExport({ metadata }: Kept): boolean {
  return (
    metadata.labels?.["cloud.googleapis.com/location"] !== undefined ||
    Object.keys(metadata.annotations ?? {}).some(key => key.startsWith("run.googleapis.com/"))
  );
}
