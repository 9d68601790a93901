import type { z } from "zod";
import {
  AUTOSCALING,
  CLOUD_RUN_ANNOTATION,
  FAIRWAY_SCALING,
  FLOW_CONTROL,
  SERVING_ANNOTATION,
  type AnnotationDefinition,
} from "../../api/annotations.ts";
import { AUTOSCALER_CONFIG_NAME, autoscalerShape } from "../../api/config/autoscaler.ts";
import { describeConfig } from "../../api/config/config-map.ts";
import { DEFAULTS_CONFIG_NAME, defaultsShape } from "../../api/config/defaults.ts";
import { DEPLOYMENT_CONFIG_NAME, deploymentShape } from "../../api/config/deployment.ts";
import { DOMAIN_CONFIG_NAME } from "../../api/config/domain.ts";
import { FEATURES_CONFIG_NAME, featuresShape } from "../../api/config/features.ts";
import { GC_CONFIG_NAME, gcShape } from "../../api/config/gc.ts";
import { NETWORK_CONFIG_NAME, networkShape } from "../../api/config/network.ts";
import { OBSERVABILITY_CONFIG_NAME, observabilityShape } from "../../api/config/observability.ts";
import { VARIABLES as GATEWAY_VARIABLES } from "../../dataplane/gateway/config.ts";
import type { KindDefinition } from "./crd.ts";
import { toStructuralSchema, type StructuralSchema } from "./structural-schema.ts";

const NOTICE = "<!-- Made by `npm run generate` from the schemas in the code. Do not edit. -->\n";

/** Every field of every kind. */
export function apiReference(kinds: readonly KindDefinition[]): string {
  const contents = kinds.map(
    ({ kind, group, version }) => `- [${kind}](#${kind.toLowerCase()}) \`${group}/${version}\``,
  );
  return [
    NOTICE,
    "# API reference\n",
    "Every field of every kind. A field in **bold** is required. Fields that Kubernetes alone defines (such as `affinity`)",
    "are passed on to the pod as they are. What admission fills in and refuses beyond this: `api/serving/v1` and",
    "`api/flowcontrol/v1`. Annotations and ConfigMaps: [configuration](configuration.md).\n",
    `${contents.join("\n")}\n`,
    ...kinds.map(describeKind),
  ].join("\n");
}

/** What is described once, where users meet it first. */
const SPEC_AS: Readonly<Record<string, string>> = {
  Configuration: "`template`, as of the [Service](#service-spec).\n",
  Revision: "The fields of `template.spec` of the [Service](#service-spec). Immutable.\n",
};

function describeKind({ kind, plural, group, version, scope, shortNames, schema }: KindDefinition): string {
  const structural = toStructuralSchema(schema);
  const short = shortNames === undefined ? "" : `; short: ${shortNames.map(name => `\`${name}\``).join(", ")}`;
  const sections = (["spec", "status"] as const).flatMap(part => {
    const fields = structural.properties?.[part];
    return fields === undefined
      ? []
      : [`### ${kind} ${part}\n`, (part === "spec" ? SPEC_AS[kind] : undefined) ?? fieldTable(fields)];
  });
  return [
    `## ${kind}\n`,
    `\`${group}/${version}\`, ${scope.toLowerCase()}, \`kubectl get ${plural}.${group}\`${short}.\n`,
    `${structural.description ?? ""}\n`,
    ...sections,
  ].join("\n");
}

function fieldTable(schema: StructuralSchema): string {
  const rows = fieldsOf(schema, "").map(({ path, required, type, description }) => {
    const name = required ? `**\`${path}\`**` : `\`${path}\``;
    return `| ${name} | ${type} | ${cell(description)} |`;
  });
  return ["| field | type | meaning |", "| --- | --- | --- |", ...rows, ""].join("\n");
}

interface Field {
  readonly path: string;
  readonly required: boolean;
  readonly type: string;
  readonly description: string;
}

/** Containers and sidecars have the same fields: the second time they are only named. */
const SAME_AS: Readonly<Record<string, string>> = {
  initContainers: "As `containers`.",
  livenessProbe: "As `readinessProbe`.",
  startupProbe: "As `readinessProbe`.",
};

function fieldsOf(schema: StructuralSchema, prefix: string): Field[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const path = prefix === "" ? name : `${prefix}.${name}`;
    const same = SAME_AS[name];
    const description = [property.description, same].filter(text => text !== undefined).join(" ");
    const field = { path, required: schema.required?.includes(name) ?? false, type: typeOf(property), description };
    return same === undefined
      ? [field, ...fieldsOf(property, path), ...fieldsOf(property.items ?? {}, `${path}[]`)]
      : [field];
  });
}

function typeOf(schema: StructuralSchema): string {
  if (schema["x-kubernetes-int-or-string"] === true)
    return schema.pattern === undefined ? "number or text" : "quantity";
  if (schema.enum !== undefined) return schema.enum.map(value => `\`${String(value)}\``).join(", ");
  if (schema.type === "array") return `list of ${typeOf(schema.items ?? {})}`;
  if (schema.additionalProperties !== undefined) return `map of ${typeOf(schema.additionalProperties)}`;
  if (schema["x-kubernetes-preserve-unknown-fields"] === true) return "object (Kubernetes)";
  return (
    { string: "text", integer: schema.format ?? "integer", boolean: "true or false" }[schema.type ?? ""] ?? "object"
  );
}

const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ");

/** Every annotation, every key of every ConfigMap, every variable of the gateway. */
export function configurationReference(): string {
  return [
    NOTICE,
    "# Configuration reference\n",
    "## Annotations\n",
    "`template`: under `spec.template.metadata.annotations`; a change makes a new revision. `service`: under the Service's",
    "own `metadata.annotations`; a change takes effect in place and wins over the template's. Wrong values are refused.\n",
    "### Autoscaling, Knative's keys\n",
    annotationTable(AUTOSCALING),
    "### Autoscaling, Fairway's keys\n",
    annotationTable(FAIRWAY_SCALING),
    "### Flow control\n",
    annotationTable(FLOW_CONTROL),
    "### Serving\n",
    annotationTable(SERVING_ANNOTATION),
    "### Cloud Run\n",
    "Of YAML that Cloud Run exported these are understood; its other annotations are ignored.\n",
    annotationTable(CLOUD_RUN_ANNOTATION),
    "## ConfigMaps\n",
    "In the system's namespace (`fairway-system`). An absent ConfigMap or key means the defaults; a change is taken over at",
    "once; a ConfigMap with a wrong value is refused as a whole, and the last good one holds. The key `_example` is ignored.\n",
    configTable(AUTOSCALER_CONFIG_NAME, "What holds for revisions without annotations of their own.", autoscalerShape),
    configTable(DEFAULTS_CONFIG_NAME, "What admission fills in, and bounds of what users may set.", defaultsShape),
    `### ${DOMAIN_CONFIG_NAME}\n`,
    "Each key is a domain, its value empty or YAML with a `selector` of labels. A Route gets the domain whose selector",
    "matches it by the most labels. Without a domain that has no selector, Routes get `svc.cluster.local`.\n",
    configTable(NETWORK_CONFIG_NAME, "Host names, and how traffic moves.", networkShape),
    configTable(DEPLOYMENT_CONFIG_NAME, "How a revision's pods are made.", deploymentShape),
    configTable(GC_CONFIG_NAME, "When revisions without traffic are removed.", gcShape),
    configTable(FEATURES_CONFIG_NAME, "Which parts of the pod spec users may set.", featuresShape),
    configTable(OBSERVABILITY_CONFIG_NAME, "Logs and metrics.", observabilityShape),
    "## The gateway's environment\n",
    "Of the Deployment `fairway-gateway`; a wrong value keeps the new pods from starting, and says why in their log.",
    "Times are in milliseconds. manifests/base/gateway.yaml sets the three files of TLS to where their Secret and their",
    "ConfigMap are mounted.\n",
    variableTable(GATEWAY_VARIABLES.shape),
  ].join("\n");
}

function annotationTable(definitions: Readonly<Record<string, AnnotationDefinition>>): string {
  const rows = Object.values(definitions).map(({ keys, on, value, default: absent, description }) => {
    const [key, ...older] = keys;
    const also = older.length === 0 ? "" : ` (also ${older.map(name => `\`${name}\``).join(", ")})`;
    return `| \`${key}\`${also} | ${on.join(", ")} | ${cell(value)} | ${cell(absent)} | ${cell(description)} |`;
  });
  return ["| annotation | on | value | without it | meaning |", "| --- | --- | --- | --- | --- |", ...rows, ""].join(
    "\n",
  );
}

function configTable(name: string, purpose: string, shape: z.ZodRawShape): string {
  const rows = describeConfig(shape).map(
    ({ key, value, default: absent, description }) =>
      `| \`${key}\` | ${cell(value)} | ${absent === "" ? "(empty)" : `\`${cell(absent)}\``} | ${cell(description)} |`,
  );
  return [
    `### ${name}\n`,
    `${purpose}\n`,
    "| key | value | default | meaning |",
    "| --- | --- | --- | --- |",
    ...rows,
    "",
  ].join("\n");
}

function variableTable(shape: Readonly<Record<string, z.ZodType>>): string {
  const rows = Object.entries(shape).map(([name, field]) => {
    const absent = field.parse(undefined);
    const text = typeof absent === "string" ? absent : JSON.stringify(absent);
    const shown = text === undefined ? "none" : text === "" ? "(empty)" : `\`${cell(text)}\``;
    return `| \`${name}\` | ${shown} | ${cell(field.description ?? "")} |`;
  });
  return ["| variable | default | meaning |", "| --- | --- | --- |", ...rows, ""].join("\n");
}
