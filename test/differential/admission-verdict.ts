import { parseAutoscalerConfig } from "../../api/config/autoscaler.ts";
import { parseDefaultsConfig } from "../../api/config/defaults.ts";
import { parseFeaturesConfig } from "../../api/config/features.ts";
import { validationFailure, type FieldError, type FieldErrors } from "../../api/meta/field-error.ts";
import { diffJson } from "../../api/meta/json.ts";
import type { DefaultingContext } from "../../api/serving/admission.ts";
import {
  setConfigurationDefaults,
  setRevisionDefaults,
  setRouteDefaults,
  setServiceDefaults,
} from "../../api/serving/v1/defaults.ts";
import { sameInKubernetes } from "../../api/serving/v1/semantic-diff.ts";
import type { Configuration, Revision, Route, Service } from "../../api/serving/v1/types.ts";
import {
  validateConfiguration,
  validateRevision,
  validateRoute,
  validateService,
} from "../../api/serving/v1/validate.ts";
import type { AdmissionCase } from "./admission-cases.ts";

export interface AdmissionVerdict {
  /** Empty: accepted. */
  readonly error: string;
  readonly defaulted: unknown;
}

/** Where we name a field better than Knative does: it leaves some errors without a path, and parts out of some paths. */
function asKnativeWrites(error: FieldError): FieldError {
  if (/ is (off|disabled), but found /.test(error.message)) return { ...error, paths: [""] };
  return {
    ...error,
    // Kubernetes' libraries say bytes since 0.37; Knative is built with an older one.
    message: error.message.replace(/no more than (\d+) bytes/, "no more than $1 characters"),
    paths: error.paths.map(path =>
      path
        .replace(/(volumes\[\d+\])\.(secret|configMap)\.items/, "$1.items")
        .replace("projected.sources[", "projected[")
        .replace(
          /traffic(\[\d+\])\.tag$/,
          error.message.startsWith("invalid value: not a DNS") ? "traffic.tag$1" : "$&",
        )
        .replace("initContainers[", "containers[")
        .replace(/envFrom\[\d+\]\.((configMap|secret)Ref)$/, "envFrom.$1")
        .replace(/Probe\.(httpGet|tcpSocket|exec|grpc)$/, error.message.startsWith("must not set") ? "Probe" : "$&"),
    ),
  };
}

/** Our verdict, in Knative's words. */
export function ourAdmission(c: AdmissionCase): AdmissionVerdict {
  const config = {
    features: parseFeaturesConfig(c.features),
    defaults: parseDefaultsConfig(c.defaults),
    autoscaler: parseAutoscalerConfig(c.autoscaler),
  };
  const judge = <T>(
    setDefaults: (object: T, context: DefaultingContext<T>) => T,
    validate: (object: T, context: DefaultingContext<T>) => FieldErrors,
  ): AdmissionVerdict => {
    const old = c.old as T | undefined;
    const context = { operation: old === undefined ? "CREATE" : "UPDATE", old, user: "alice", config } as const;
    const defaulted = setDefaults(c.object as T, context);
    const errors = validate(defaulted, context).map(asKnativeWrites);
    return { error: validationFailure(errors)?.replace(/^validation failed: /, "") ?? "", defaulted };
  };
  switch (c.kind) {
    case "Service":
      return judge<Service>(setServiceDefaults, validateService);
    case "Configuration":
      return judge<Configuration>(setConfigurationDefaults, validateConfiguration);
    case "Revision":
      return judge<Revision>(setRevisionDefaults, validateRevision);
    case "Route":
      return judge<Route>(setRouteDefaults, validateRoute);
  }
}

/** What differs between our admission and Knative's, beyond what is meant to differ; empty: nothing. */
export function compareAdmission(c: AdmissionCase, theirs: AdmissionVerdict): string[] {
  const ours = ourAdmission(c);
  if (ours.error !== theirs.error) return [`error differs:\n  ours:    ${ours.error}\n  Knative: ${theirs.error}`];
  if (theirs.error !== "") return [];
  return diffJson(theirs.defaulted, ours.defaulted, sameInKubernetes)
    .filter(({ path }) => path !== "status")
    .map(
      ({ path, before, after }) =>
        `default of ${path} differs: ours ${JSON.stringify(after)}, Knative ${JSON.stringify(before)}`,
    );
}
