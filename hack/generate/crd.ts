import type { z } from "zod";
import {
  FLOW_CONTROL_GROUP,
  FlowSchemaSchema,
  PriorityLevelConfigurationSchema,
} from "../../api/flowcontrol/v1/types.ts";
import {
  ConfigurationSchema,
  RevisionSchema,
  RouteSchema,
  SERVING_GROUP,
  ServiceSchema,
} from "../../api/serving/v1/types.ts";
import { DomainMappingSchema } from "../../api/serving/v1beta1/types.ts";
import { toStructuralSchema } from "./structural-schema.ts";

export interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "date";
  readonly jsonPath: string;
}

export interface KindDefinition {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly scope: "Namespaced" | "Cluster";
  readonly labels?: Readonly<Record<string, string>>;
  readonly schema: z.ZodType;
  readonly columns: readonly PrinterColumn[];
}

const column = (name: string, jsonPath: string, type: PrinterColumn["type"] = "string"): PrinterColumn => ({
  name,
  type,
  jsonPath,
});
const readyColumns = [
  column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
  column("Reason", ".status.conditions[?(@.type=='Ready')].reason"),
];
const latestColumns = [
  column("LatestCreated", ".status.latestCreatedRevisionName"),
  column("LatestReady", ".status.latestReadyRevisionName"),
];
const age = column("Age", ".metadata.creationTimestamp", "date");

const knative = {
  group: SERVING_GROUP,
  version: "v1",
  categories: ["all", "knative", "serving"],
  scope: "Namespaced",
} as const;
// Knative's duck type labels: Eventing and kn find by them what can be addressed and what holds a pod spec.
const ADDRESSABLE = { "duck.knative.dev/addressable": "true" };
const PODSPECABLE = { "duck.knative.dev/podspecable": "true" };

const flowControl = { group: FLOW_CONTROL_GROUP, version: "v1", scope: "Cluster" } as const;

/** Every kind of the API. Short names, categories and printer columns are Knative's and Kubernetes' own. */
export const KINDS: readonly KindDefinition[] = [
  {
    ...knative,
    kind: "Service",
    plural: "services",
    shortNames: ["kservice", "ksvc"],
    labels: { ...ADDRESSABLE, ...PODSPECABLE },
    schema: ServiceSchema,
    columns: [column("URL", ".status.url"), ...latestColumns, ...readyColumns],
  },
  {
    ...knative,
    kind: "Configuration",
    plural: "configurations",
    shortNames: ["config", "cfg"],
    labels: PODSPECABLE,
    schema: ConfigurationSchema,
    columns: [...latestColumns, ...readyColumns],
  },
  {
    ...knative,
    kind: "Revision",
    plural: "revisions",
    shortNames: ["rev"],
    schema: RevisionSchema,
    columns: [
      column("Config Name", ".metadata.labels['serving\\.knative\\.dev/configuration']"),
      column("Generation", ".metadata.labels['serving\\.knative\\.dev/configurationGeneration']"),
      ...readyColumns,
      column("Actual Replicas", ".status.actualReplicas", "integer"),
      column("Desired Replicas", ".status.desiredReplicas", "integer"),
    ],
  },
  {
    ...knative,
    kind: "Route",
    plural: "routes",
    shortNames: ["rt"],
    labels: ADDRESSABLE,
    schema: RouteSchema,
    columns: [column("URL", ".status.url"), ...readyColumns],
  },
  {
    ...knative,
    version: "v1beta1",
    kind: "DomainMapping",
    plural: "domainmappings",
    shortNames: ["dm"],
    schema: DomainMappingSchema,
    columns: [column("URL", ".status.url"), ...readyColumns],
  },
  {
    ...flowControl,
    kind: "PriorityLevelConfiguration",
    plural: "prioritylevelconfigurations",
    schema: PriorityLevelConfigurationSchema,
    columns: [
      column("Type", ".spec.type"),
      column("NominalConcurrencyShares", ".spec.limited.nominalConcurrencyShares", "integer"),
      column("Queues", ".spec.limited.limitResponse.queuing.queues", "integer"),
      column("HandSize", ".spec.limited.limitResponse.queuing.handSize", "integer"),
      column("QueueLengthLimit", ".spec.limited.limitResponse.queuing.queueLengthLimit", "integer"),
      age,
    ],
  },
  {
    ...flowControl,
    kind: "FlowSchema",
    plural: "flowschemas",
    schema: FlowSchemaSchema,
    columns: [
      column("PriorityLevel", ".spec.priorityLevelConfiguration.name"),
      column("MatchingPrecedence", ".spec.matchingPrecedence", "integer"),
      column("DistinguisherMethod", ".spec.distinguisherMethod.type"),
      age,
      column("MissingPL", ".status.conditions[?(@.type=='Dangling')].status"),
    ],
  },
];

/** The CustomResourceDefinition of a kind. */
export function toCustomResourceDefinition(definition: KindDefinition): object {
  const { group, version, kind, plural, shortNames, categories, scope, labels, schema, columns } = definition;
  const structural = toStructuralSchema(schema);
  const required = structural.required?.filter(name => name !== "metadata") ?? [];
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: `${plural}.${group}`,
      labels: {
        "app.kubernetes.io/name": "fairway",
        ...(group === SERVING_GROUP ? { "knative.dev/crd-install": "true" } : {}),
        ...labels,
      },
    },
    spec: {
      group,
      names: {
        kind,
        plural,
        singular: kind.toLowerCase(),
        ...(shortNames === undefined ? {} : { shortNames }),
        ...(categories === undefined ? {} : { categories }),
      },
      scope,
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: columns,
          schema: {
            openAPIV3Schema: {
              ...structural,
              // The API server owns the schema of metadata and refuses another.
              properties: { ...structural.properties, metadata: { type: "object" } },
              ...(required.length === 0 ? { required: undefined } : { required }),
            },
          },
        },
      ],
    },
  };
}
