import { parseAllDocuments } from "yaml";
import type { ConfigData } from "../../api/config/config-map.ts";
import { ConfigError, unknownKeys } from "../../api/config/config-map.ts";
import type { AutoscalerConfig } from "../../api/config/autoscaler.ts";
import { AUTOSCALER_CONFIG_NAME, autoscalerShape, parseAutoscalerConfig } from "../../api/config/autoscaler.ts";
import { validationFailure, validationWarnings } from "../../api/meta/field-error.ts";
import { defaultAdmissionConfig } from "../../api/serving/admission.ts";
import { setServiceDefaults } from "../../api/serving/v1/defaults.ts";
import type { Service } from "../../api/serving/v1/types.ts";
import { SERVING_GROUP, ServiceSchema } from "../../api/serving/v1/types.ts";
import { validateService } from "../../api/serving/v1/validate.ts";
import { CliError } from "../cli-error.ts";

interface AnyObject {
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
  readonly metadata?: { readonly name?: unknown };
  readonly data?: unknown;
}

/** All objects of a YAML (or JSON) file, those of Lists too. */
function objectsOf(text: string, fileName: string): AnyObject[] {
  return parseAllDocuments(text).flatMap(document => {
    const [problem] = document.errors;
    if (problem !== undefined) throw new CliError("usage", `${fileName}: ${problem.message}`);
    const value: unknown = document.toJS();
    if (typeof value !== "object" || value === null) return [];
    const { kind, items } = value as { kind?: unknown; items?: unknown };
    return kind === "List" && Array.isArray(items) ? (items as AnyObject[]) : [value as AnyObject];
  });
}

const isService = (object: AnyObject): boolean =>
  object.kind === "Service" &&
  typeof object.apiVersion === "string" &&
  object.apiVersion.startsWith(`${SERVING_GROUP}/`);

/**
 * The Knative or Cloud Run Service of a file, with the defaults and checks of the cluster's admission. `change` is applied to what
 * was read, before both.
 *
 * @param name which one, when there are several
 * @throws CliError when there is none, or the cluster would refuse it
 */
export function readService(
  text: string,
  fileName: string,
  name: string | undefined,
  config: AutoscalerConfig,
  change: (service: Service) => Service,
): { readonly service: Service; readonly warnings: readonly string[] } {
  const services = objectsOf(text, fileName).filter(isService);
  const named = name === undefined ? services : services.filter(object => object.metadata?.name === name);
  const [found] = named;
  if (found === undefined) {
    const which = name === undefined ? "" : ` named ${name}`;
    throw new CliError("usage", `${fileName}: no Service of ${SERVING_GROUP}/v1${which} in it`);
  }
  if (named.length > 1) {
    const names = named.map(object => String(object.metadata?.name)).join(", ");
    throw new CliError("usage", `${fileName}: several Services (${names}); choose one with --name`);
  }
  const parsed = ServiceSchema.safeParse(found);
  if (!parsed.success) {
    const issues = parsed.error.issues.map(issue => `${issue.path.join(".")}: ${issue.message}`);
    throw new CliError("usage", `${fileName}: ${issues.join("; ")}`);
  }
  return admit(change(parsed.data), config, fileName);
}

/** What admission of the cluster makes of a new Service. */
export function admit(
  service: Service,
  autoscaler: AutoscalerConfig,
  fileName: string,
): { readonly service: Service; readonly warnings: readonly string[] } {
  const context = { operation: "CREATE", config: { ...defaultAdmissionConfig(), autoscaler } } as const;
  const defaulted = setServiceDefaults(service, context);
  const errors = validateService(defaulted, context);
  const failure = validationFailure(errors);
  if (failure !== undefined) throw new CliError("usage", `${fileName}: ${failure}`);
  // What else admission warns of (security defaults and such) has no part in a simulation.
  const ofScaling = errors.filter(error => error.paths.some(path => path.includes("annotations")));
  return { service: defaulted, warnings: validationWarnings(ofScaling).map(warning => `${fileName}: ${warning}`) };
}

/** The settings of a ConfigMap config-autoscaler; the defaults without a file. */
export function readAutoscalerConfig(
  text: string | undefined,
  fileName: string,
): { readonly config: AutoscalerConfig; readonly warnings: readonly string[] } {
  if (text === undefined) return { config: parseAutoscalerConfig(), warnings: [] };
  const configMap = objectsOf(text, fileName).find(
    object => object.kind === "ConfigMap" && object.metadata?.name === AUTOSCALER_CONFIG_NAME,
  );
  if (configMap === undefined) throw new CliError("usage", `${fileName}: no ConfigMap ${AUTOSCALER_CONFIG_NAME} in it`);
  const data = (configMap.data ?? {}) as ConfigData;
  try {
    const unknown = unknownKeys(Object.keys(autoscalerShape), data);
    return {
      config: parseAutoscalerConfig(data),
      warnings: unknown.map(key => `${fileName}: ${key} is no key of ${AUTOSCALER_CONFIG_NAME}; it has no effect`),
    };
  } catch (error) {
    if (error instanceof ConfigError) throw new CliError("usage", `${fileName}: ${error.message}`);
    throw error;
  }
}
