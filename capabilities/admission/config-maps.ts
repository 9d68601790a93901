import { z } from "zod";
import type { V1ConfigMap } from "@kubernetes/client-node";
import { configMapWarnings } from "../../api/config/known-keys.ts";
import type { AdmissionConfig } from "../../api/serving/admission.ts";
import type { OperatorRuntime } from "../runtime/capability.ts";
import { configMaps } from "../runtime/kinds.ts";
import { validating } from "./actions.ts";
import { AdmissionSettings, configMapRefusal } from "./settings.ts";

const configMapSchema = z.looseObject({ data: z.record(z.string(), z.string()).optional() });

/** Refuses a ConfigMap of the system that its readers would not take. */
export const validateConfigMap = (clusterDomain: string) =>
  validating<V1ConfigMap>(configMapSchema, ({ metadata, data }) => ({
    refusal: configMapRefusal(metadata?.name ?? "", data, clusterDomain),
    warnings: configMapWarnings(metadata?.name ?? "", data),
  }));

/** The settings of admission, kept up to date from the system's ConfigMaps. */
export function followAdmissionSettings(runtime: OperatorRuntime): () => AdmissionConfig {
  const settings = new AdmissionSettings();
  const log = runtime.logger("admission");
  runtime.onChange(configMaps, ({ metadata, data }, phase) => {
    const name = metadata?.name ?? "";
    try {
      settings.update(name, phase === "deleted" ? undefined : (data ?? {}));
    } catch (error) {
      log.error({ configMap: name, error }, "setting not taken: the last good one stays");
    }
  });
  return () => settings.current;
}
