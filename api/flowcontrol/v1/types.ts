import { z } from "zod";
import { ObjectMetaSchema } from "../../meta/object-meta.ts";
import { ATOMIC_LIST, int32, mapList } from "../../meta/schema.ts";
import { ConditionSchema } from "../../meta/status.ts";

/**
 * `flowcontrol.fairway.dev/v1`: PriorityLevelConfiguration and FlowSchema. The specs are those of
 * `flowcontrol.apiserver.k8s.io/v1` field for field; `serviceNames` and `headers` of a rule are Fairway's.
 */

export const FLOW_CONTROL_GROUP = "flowcontrol.fairway.dev";
export const FLOW_CONTROL_API_VERSION = "flowcontrol.fairway.dev/v1";

/** `"true"`: Fairway keeps the spec; `"false"`: the user does. Upstream's key, so that tools know it. */
export const AUTO_UPDATE_ANNOTATION = "apf.kubernetes.io/autoupdate-spec";

const kindShape = (kind: string) => ({
  apiVersion: z
    .string()
    .optional()
    .meta({ description: `\`${FLOW_CONTROL_API_VERSION}\`.` }),
  kind: z
    .string()
    .optional()
    .meta({ description: `\`${kind}\`.` }),
  metadata: ObjectMetaSchema,
});

const int = (description: string, extra: object = {}) =>
  int32()
    .optional()
    .meta({ format: "int32", description, ...extra });

const statusSchema = () =>
  z.object({
    conditions: z
      .array(ConditionSchema)
      .optional()
      .meta({ ...mapList("type"), description: "Latest observations of the object's state." }),
  });

export const QueuingConfigurationSchema = z.object({
  queues: int("Number of queues of the level. 1 turns fairness among flows off. Default 64.", { default: 64 }),
  handSize: int("How many queues a flow is dealt; a request joins the shortest of them. Default 8.", { default: 8 }),
  queueLengthLimit: int("Most requests that wait in one queue; more are answered 429. Default 50.", { default: 50 }),
});
export type QueuingConfiguration = z.infer<typeof QueuingConfigurationSchema>;

export const LimitResponseSchema = z.object({
  type: z.enum(["Queue", "Reject"]).meta({ description: "`Queue`, or `Reject` with 429 at once." }),
  queuing: QueuingConfigurationSchema.optional().meta({ description: "Set exactly when the type is Queue." }),
});
export type LimitResponse = z.infer<typeof LimitResponseSchema>;

export const LimitedPriorityLevelConfigurationSchema = z.object({
  nominalConcurrencyShares: int("Weight of the level when seats are divided. 0: no seats of its own. Default 30.", {
    default: 30,
  }),
  limitResponse: LimitResponseSchema.meta({ description: "What happens to a request that cannot be run at once." }),
  lendablePercent: int("How much of the level's seats others may borrow, 0..100. Default 0.", { default: 0 }),
  borrowingLimitPercent: int("How much it may borrow, as a percentage of its own seats. Absent: no limit."),
});
export type LimitedPriorityLevelConfiguration = z.infer<typeof LimitedPriorityLevelConfigurationSchema>;

export const ExemptPriorityLevelConfigurationSchema = z.object({
  nominalConcurrencyShares: int("Weight of the level when seats are divided. Default 0.", { default: 0 }),
  lendablePercent: int("How much of the level's seats others may borrow, 0..100. Default 0.", { default: 0 }),
});
export type ExemptPriorityLevelConfiguration = z.infer<typeof ExemptPriorityLevelConfigurationSchema>;

export const PriorityLevelConfigurationSpecSchema = z.object({
  type: z.enum(["Exempt", "Limited"]).meta({
    description: "`Limited`; `Exempt` (never waits, never refused) is the level named `exempt` alone.",
  }),
  limited: LimitedPriorityLevelConfigurationSchema.optional().meta({
    description: "Set exactly when the type is Limited.",
  }),
  exempt: ExemptPriorityLevelConfigurationSchema.optional(),
});
export type PriorityLevelConfigurationSpec = z.infer<typeof PriorityLevelConfigurationSpecSchema>;

export const PriorityLevelConfigurationSchema = z
  .object({
    ...kindShape("PriorityLevelConfiguration"),
    spec: PriorityLevelConfigurationSpecSchema,
    status: statusSchema().optional(),
  })
  .meta({ description: "A share of the capacity, and what happens to requests when it is used up." });
export type PriorityLevelConfiguration = z.infer<typeof PriorityLevelConfigurationSchema>;

export const SubjectSchema = z.object({
  kind: z.enum(["Group", "ServiceAccount", "User"]),
  user: z.object({ name: z.string().meta({ description: "`*`: any user." }) }).optional(),
  group: z.object({ name: z.string().meta({ description: "`*`: any group." }) }).optional(),
  serviceAccount: z
    .object({ namespace: z.string(), name: z.string().meta({ description: "`*`: any of the namespace." }) })
    .optional(),
});
export type Subject = z.infer<typeof SubjectSchema>;

const words = (description: string) => z.array(z.string()).meta({ ...ATOMIC_LIST, description });

export const ResourcePolicyRuleSchema = z.object({
  verbs: words("`get`, `create`, `update`, `patch`, `delete` for GET/HEAD, POST, PUT, PATCH, DELETE; `*`: any."),
  apiGroups: words("`serving.knative.dev`, or `*`."),
  resources: words("`services`, `services/<tag>`, or `*`."),
  clusterScope: z.boolean().optional().meta({ description: "Match requests without a namespace." }),
  namespaces: words("Namespaces of the service; `*`: any.").optional(),
});
export type ResourcePolicyRule = z.infer<typeof ResourcePolicyRuleSchema>;

export const NonResourcePolicyRuleSchema = z.object({
  verbs: words("As in a resource rule."),
  nonResourceURLs: words("Paths: exact, with `/*` at the end, or `*`."),
});
export type NonResourcePolicyRule = z.infer<typeof NonResourcePolicyRuleSchema>;

export const HeaderMatchSchema = z.object({
  name: z.string().meta({ description: "Name of a request header, in any case." }),
  exact: z.string().optional().meta({ description: "The whole value." }),
  prefix: z.string().optional().meta({ description: "The beginning of the value." }),
});
export type HeaderMatch = z.infer<typeof HeaderMatchSchema>;

export const PolicyRulesWithSubjectsSchema = z
  .object({
    subjects: z.array(SubjectSchema).meta({ ...ATOMIC_LIST, description: "One of them must match." }),
    resourceRules: z
      .array(ResourcePolicyRuleSchema)
      .optional()
      .meta({
        ...ATOMIC_LIST,
        description: "One of these or of nonResourceRules must match; any request to a service is a resource request.",
      }),
    nonResourceRules: z
      .array(NonResourcePolicyRuleSchema)
      .optional()
      .meta({
        ...ATOMIC_LIST,
        description: "Match by the path of the request.",
      }),
    serviceNames: z
      .array(z.string())
      .optional()
      .meta({
        ...ATOMIC_LIST,
        description: "Fairway: only requests to services of these names. Absent or `*`: any.",
      }),
    headers: z
      .array(HeaderMatchSchema)
      .optional()
      .meta({
        ...ATOMIC_LIST,
        description: "Fairway: only requests on which all of these match.",
      }),
  })
  .meta({ description: "Matches when one subject and one rule match, and the extensions do." });
export type PolicyRulesWithSubjects = z.infer<typeof PolicyRulesWithSubjectsSchema>;

export const FlowSchemaSpecSchema = z.object({
  priorityLevelConfiguration: z.object({ name: z.string() }).meta({
    description: "The priority level of matching requests. While it does not exist the schema is Dangling.",
  }),
  matchingPrecedence: int("Schemas are tried from the lowest up, 1..10000; equal: by name. Default 1000.", {
    default: 1000,
  }),
  distinguisherMethod: z
    .object({ type: z.enum(["ByNamespace", "ByUser"]) })
    .optional()
    .meta({ description: "What makes a flow within the schema. Absent: all its requests are one flow." }),
  rules: z
    .array(PolicyRulesWithSubjectsSchema)
    .optional()
    .meta({
      ...ATOMIC_LIST,
      description: "A request matches the schema when it matches one of them. None: no request matches.",
    }),
});
export type FlowSchemaSpec = z.infer<typeof FlowSchemaSpecSchema>;

export const FlowSchemaSchema = z
  .object({ ...kindShape("FlowSchema"), spec: FlowSchemaSpecSchema, status: statusSchema().optional() })
  .meta({ description: "Assigns requests to a priority level and divides them into flows." });
export type FlowSchema = z.infer<typeof FlowSchemaSchema>;
