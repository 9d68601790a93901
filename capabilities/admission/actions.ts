import type { z } from "zod";
import { withoutNulls } from "../../api/meta/json.ts";
import type { Operation } from "../../api/serving/admission.ts";
import type { KubeObject } from "../runtime/types.ts";

/** What the API rules may know of a request beside the object; `old` is there on updates only. */
export interface AdmissionFacts<T> {
  readonly operation: Operation;
  readonly old: T | undefined;
  /** Name of who sent the request. */
  readonly user: string | undefined;
}

/** The part of Pepr's requests that is used. The object is read from the request, not from Pepr's copy of it. */
interface AdmissionRequest {
  readonly Request: {
    readonly operation: string;
    readonly object: unknown;
    readonly oldObject?: unknown;
    readonly userInfo: { readonly username?: string };
  };
}

interface MutateRequest<T> extends AdmissionRequest {
  Raw: T;
  SetAnnotation: (key: string, value: string) => this;
}

interface Decision {
  readonly allowed: boolean;
  readonly statusCode?: number;
  readonly statusMessage?: string;
  readonly warnings?: string[];
}

/** Errors refuse the object with that message; warnings are shown to its author. */
export interface Verdict {
  readonly refusal: string | undefined;
  readonly warnings: readonly string[];
}

/**
 * A `Mutate` action that fills in defaults. An object that does not have its kind's form stays as it is: the API server checks
 * it against the CRD's schema right after, and says what is wrong with it better than a default could. A field that is null
 * is absent, as for the kinds the API server brings: server-side apply makes a null of a map whose last key its owner gave up.
 */
export function defaulting<T extends KubeObject>(
  schema: z.ZodType,
  setDefaults: (object: T, facts: AdmissionFacts<T>) => T,
): (request: MutateRequest<T>) => void {
  return request => {
    const object = withoutNulls(request.Request.object);
    request.Raw = schema.safeParse(object).success ? setDefaults(object as T, factsOf<T>(request)) : (object as T);
    // Pepr would leave an annotation about each action on the object.
    request.SetAnnotation = () => request;
  };
}

/** A `Validate` action. An object on its way out is let through, so that finalizers can always be taken off. */
export function validating<T extends KubeObject>(
  schema: z.ZodType,
  validate: (object: T, facts: AdmissionFacts<T>) => Verdict,
): (request: AdmissionRequest) => Decision {
  return request => {
    const object = request.Request.object as T;
    if (object.metadata?.deletionTimestamp !== undefined) return { allowed: true };
    const form = schema.safeParse(object);
    if (!form.success) return refused(`validation failed: ${form.error.issues.map(describe).join("\n")}`, []);
    const { refusal, warnings } = validate(object, factsOf<T>(request));
    if (refusal !== undefined) return refused(refusal, warnings);
    return warnings.length === 0 ? { allowed: true } : { allowed: true, warnings: [...warnings] };
  };
}

function refused(statusMessage: string, warnings: readonly string[]): Decision {
  return {
    allowed: false,
    statusCode: 400,
    statusMessage,
    ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
  };
}

function describe(issue: z.core.$ZodIssue): string {
  const path = issue.path.reduce<string>(
    (text, step) =>
      typeof step === "number" ? `${text}[${step}]` : text === "" ? String(step) : `${text}.${String(step)}`,
    "",
  );
  return `${issue.message}: ${path}`;
}

function factsOf<T>({ Request }: AdmissionRequest): AdmissionFacts<T> {
  const isUpdate = Request.operation === "UPDATE";
  return {
    operation: isUpdate ? "UPDATE" : "CREATE",
    old: isUpdate ? (Request.oldObject as T | undefined) : undefined,
    user: Request.userInfo.username,
  };
}
