import { z } from "zod";
import { dns1123LabelErrors } from "../meta/dns.ts";
import { parseInteger } from "../meta/go-format.ts";
import { parseTemplate } from "../meta/template.ts";
import type { Template } from "../meta/template.ts";
import { bool, checked, integer, parseConfigMap, quantityText } from "./config-map.ts";
import type { ConfigData } from "./config-map.ts";

/** ConfigMap config-defaults: what admission fills in, and the bounds of what a user may set. */
export const DEFAULTS_CONFIG_NAME = "config-defaults";

function containerName(defaults: string, description: string) {
  return checked<Template>(defaults, description, "Go template with the field Name of the Service", source => {
    try {
      const template = parseTemplate(source);
      const name = template.render({ Name: "a" });
      const [error] = dns1123LabelErrors(name);
      return error === undefined ? { ok: template } : { expected: `must render a container name: ${error}` };
    } catch (error) {
      return { expected: error instanceof Error ? error.message : String(error) };
    }
  });
}

export const defaultsShape = {
  "revision-timeout-seconds": integer("300", "timeoutSeconds of a Revision that sets none.", { min: 1 }),
  "max-revision-timeout-seconds": integer("600", "Most that timeoutSeconds may be.", { min: 1 }),
  "revision-response-start-timeout-seconds": checked<number | undefined>(
    "",
    "responseStartTimeoutSeconds of a Revision that sets none; used when under its timeoutSeconds. 0: none.",
    "integer at least 0, or empty: `revision-timeout-seconds`",
    text => {
      if (text === "") return { ok: undefined };
      const seconds = parseInteger(text, 0, Number.MAX_SAFE_INTEGER);
      return typeof seconds === "number" ? { ok: seconds } : { expected: "must be an integer of at least 0" };
    },
  ),
  "revision-idle-timeout-seconds": integer("0", "idleTimeoutSeconds of a Revision that sets none. 0: none.", {
    min: 0,
  }),
  "container-concurrency": integer("0", "containerConcurrency of a Revision that sets none.", { min: 0 }),
  "container-concurrency-max-limit": integer("1000", "Most that containerConcurrency may be.", { min: 1 }),
  "allow-container-concurrency-zero": bool("true", "Whether containerConcurrency 0 (no limit) may be asked for."),
  "enable-service-links": checked<boolean | undefined>(
    "false",
    "enableServiceLinks of a new object that sets none.",
    "`true`, `false`, or anything else: left to Kubernetes",
    text => ({ ok: text.toLowerCase() === "true" ? true : text.toLowerCase() === "false" ? false : undefined }),
  ),
  "automount-service-account-token": bool(
    "true",
    "Whether pods of a Revision that names no ServiceAccount get a token of the default one. Without it (and other volumes) they start about 0.3 s sooner.",
  ),
  "container-name-template": containerName("user-container", "Name of a container that has none."),
  "init-container-name-template": containerName("init-container", "Name of an init container that has none."),
  "revision-cpu-request": quantityText("", "CPU request of a container that sets none."),
  "revision-memory-request": quantityText("", "Memory request of a container that sets none."),
  "revision-ephemeral-storage-request": quantityText("", "Ephemeral storage request of a container that sets none."),
  "revision-cpu-limit": quantityText("", "CPU limit of a container that sets none."),
  "revision-memory-limit": quantityText("", "Memory limit of a container that sets none."),
  "revision-ephemeral-storage-limit": quantityText("", "Ephemeral storage limit of a container that sets none."),
};

const DefaultsConfigSchema = z
  .object(defaultsShape)
  .superRefine((c, context) => {
    const atMost = (
      key: keyof typeof defaultsShape,
      value: number,
      other: keyof typeof defaultsShape,
      limit: number,
    ) => {
      if (value > limit) {
        context.addIssue({ code: "custom", path: [key], message: `must be at most ${other}(${limit}), was ${value}` });
      }
    };
    const timeout = c["revision-timeout-seconds"];
    atMost("revision-timeout-seconds", timeout, "max-revision-timeout-seconds", c["max-revision-timeout-seconds"]);
    atMost(
      "revision-response-start-timeout-seconds",
      c["revision-response-start-timeout-seconds"] ?? 0,
      "revision-timeout-seconds",
      timeout,
    );
    atMost("revision-idle-timeout-seconds", c["revision-idle-timeout-seconds"], "revision-timeout-seconds", timeout);
    atMost(
      "container-concurrency",
      c["container-concurrency"],
      "container-concurrency-max-limit",
      c["container-concurrency-max-limit"],
    );
  })
  .transform(c => ({
    revisionTimeoutSeconds: c["revision-timeout-seconds"],
    maxRevisionTimeoutSeconds: c["max-revision-timeout-seconds"],
    revisionResponseStartTimeoutSeconds: c["revision-response-start-timeout-seconds"] ?? c["revision-timeout-seconds"],
    revisionIdleTimeoutSeconds: c["revision-idle-timeout-seconds"],
    containerConcurrency: c["container-concurrency"],
    containerConcurrencyMaxLimit: c["container-concurrency-max-limit"],
    allowContainerConcurrencyZero: c["allow-container-concurrency-zero"],
    /** undefined: left to Kubernetes. */
    enableServiceLinks: c["enable-service-links"],
    automountServiceAccountToken: c["automount-service-account-token"],
    containerNameTemplate: c["container-name-template"],
    initContainerNameTemplate: c["init-container-name-template"],
    requests: resources(
      c["revision-cpu-request"],
      c["revision-memory-request"],
      c["revision-ephemeral-storage-request"],
    ),
    limits: resources(c["revision-cpu-limit"], c["revision-memory-limit"], c["revision-ephemeral-storage-limit"]),
  }));

function resources(
  cpu: string | undefined,
  memory: string | undefined,
  storage: string | undefined,
): Record<string, string> {
  const all = { cpu, memory, "ephemeral-storage": storage };
  return Object.fromEntries(Object.entries(all).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])));
}

export type DefaultsConfig = Readonly<z.infer<typeof DefaultsConfigSchema>>;

export function parseDefaultsConfig(data?: ConfigData): DefaultsConfig {
  return parseConfigMap(DEFAULTS_CONFIG_NAME, DefaultsConfigSchema, data);
}
