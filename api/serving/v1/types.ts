import { z } from "zod";
import { ObjectMetaSchema } from "../../meta/object-meta.ts";
import { int32, int64, stringMap } from "../../meta/schema.ts";
import { AddressableSchema, knativeStatusShape } from "../../meta/status.ts";
import { podSpecShape } from "./pod-spec.ts";

/** `serving.knative.dev/v1`: Service, Configuration, Revision, Route, field for field as Knative Serving v1. */

export const SERVING_GROUP = "serving.knative.dev";
export const SERVING_API_VERSION = "serving.knative.dev/v1";

const kindShape = <K extends string>(kind: K, apiVersion: string) => ({
  apiVersion: z
    .string()
    .optional()
    .meta({ description: `\`${apiVersion}\`.` }),
  kind: z
    .string()
    .optional()
    .meta({ description: `\`${kind}\`.` }),
  metadata: ObjectMetaSchema,
});

export const RevisionSpecSchema = z
  .object({
    ...podSpecShape,
    containerConcurrency: int64().optional().meta({
      format: "int64",
      description: "How many requests one pod takes at a time; a hard limit. 0: no limit.",
    }),
    timeoutSeconds: int64().optional().meta({
      format: "int64",
      description: "Bound of a request from its delivery to the pod until its response has ended. Default 300.",
    }),
    responseStartTimeoutSeconds: int64().optional().meta({
      format: "int64",
      description: "Bound until the first byte of the response.",
    }),
    idleTimeoutSeconds: int64().optional().meta({
      format: "int64",
      description: "Bound between two bytes of the response.",
    }),
  })
  .meta({ description: "What a pod of the revision runs and how it takes requests." });
export type RevisionSpec = z.infer<typeof RevisionSpecSchema>;

export const RevisionTemplateSchema = z
  .object({
    metadata: z
      .looseObject({
        name: z.string().optional().meta({
          description:
            "A name of one's own for the revision: `<service>-...`; must change with every change of the template.",
        }),
        generateName: z.string().optional(),
        namespace: z.string().optional(),
        labels: stringMap().optional(),
        annotations: stringMap().optional(),
        finalizers: z.array(z.string()).optional(),
      })
      .optional(),
    spec: RevisionSpecSchema,
  })
  .meta({ description: "The revision that is stamped out; every change makes a new one." });
export type RevisionTemplate = z.infer<typeof RevisionTemplateSchema>;

export const ContainerStatusSchema = z.object({
  name: z.string().optional(),
  imageDigest: z.string().optional(),
});
export type ContainerStatus = z.infer<typeof ContainerStatusSchema>;

export const RevisionStatusSchema = z.object({
  ...knativeStatusShape,
  logUrl: z.string().optional().meta({ description: "Where the logs of the revision are, by config-observability." }),
  containerStatuses: z.array(ContainerStatusSchema).optional().meta({ description: "Image digests in use." }),
  initContainerStatuses: z.array(ContainerStatusSchema).optional(),
  actualReplicas: int32().optional().meta({ format: "int32", description: "Ready pods." }),
  desiredReplicas: int32().optional().meta({ format: "int32", description: "Pods the autoscaler wants." }),
});
export type RevisionStatus = z.infer<typeof RevisionStatusSchema>;

export const RevisionSchema = z
  .object({
    ...kindShape("Revision", SERVING_API_VERSION),
    spec: RevisionSpecSchema,
    status: RevisionStatusSchema.optional(),
  })
  .meta({ description: "An immutable snapshot of code and configuration that scales by itself." });
export type Revision = z.infer<typeof RevisionSchema>;

const configurationStatusShape = {
  latestCreatedRevisionName: z.string().optional().meta({ description: "The newest revision; it may not be ready." }),
  latestReadyRevisionName: z.string().optional().meta({ description: "The newest revision that became ready." }),
};

export const ConfigurationSpecSchema = z.object({ template: RevisionTemplateSchema });
export type ConfigurationSpec = z.infer<typeof ConfigurationSpecSchema>;
export const ConfigurationStatusSchema = z.object({ ...knativeStatusShape, ...configurationStatusShape });
export type ConfigurationStatus = z.infer<typeof ConfigurationStatusSchema>;

export const ConfigurationSchema = z
  .object({
    ...kindShape("Configuration", SERVING_API_VERSION),
    spec: ConfigurationSpecSchema,
    status: ConfigurationStatusSchema.optional(),
  })
  .meta({ description: "The floating latest state of a service's code: makes a Revision for every change." });
export type Configuration = z.infer<typeof ConfigurationSchema>;

export const TrafficTargetSchema = z.object({
  tag: z.string().optional().meta({ description: "Gives the target a URL of its own: `<tag>-<name>`." }),
  revisionName: z.string().optional().meta({ description: "Pins to a revision; excludes configurationName." }),
  configurationName: z.string().optional().meta({
    description: "The latest ready revision of this Configuration. Not allowed in a Service; never set in status.",
  }),
  latestRevision: z.boolean().optional().meta({ description: "True exactly when revisionName is empty." }),
  percent: int64().optional().meta({ format: "int64", description: "0 to 100; all of them sum to 100." }),
  url: z.string().optional().meta({ description: "Status only: the URL of the tag." }),
});
export type TrafficTarget = z.infer<typeof TrafficTargetSchema>;

const traffic = (description: string) => z.array(TrafficTargetSchema).optional().meta({ description });

const routeStatusShape = {
  url: z.string().optional().meta({ description: "`http://{name}.{namespace}.{domain}`." }),
  address: AddressableSchema.optional(),
  traffic: traffic("What is routed now: every entry names a revision."),
};

export const RouteSpecSchema = z.object({ traffic: traffic("Who gets which share of the requests.") });
export type RouteSpec = z.infer<typeof RouteSpecSchema>;
export const RouteStatusSchema = z.object({ ...knativeStatusShape, ...routeStatusShape });
export type RouteStatus = z.infer<typeof RouteStatusSchema>;

export const RouteSchema = z
  .object({
    ...kindShape("Route", SERVING_API_VERSION),
    spec: RouteSpecSchema.optional(),
    status: RouteStatusSchema.optional(),
  })
  .meta({ description: "Names a place that requests go to and divides them among revisions." });
export type Route = z.infer<typeof RouteSchema>;

export const ServiceSpecSchema = z.object({
  ...ConfigurationSpecSchema.shape,
  traffic: traffic("Who gets which share of the requests; absent: all to the latest ready revision."),
});
export type ServiceSpec = z.infer<typeof ServiceSpecSchema>;
export const ServiceStatusSchema = z.object({
  ...knativeStatusShape,
  ...configurationStatusShape,
  ...routeStatusShape,
});
export type ServiceStatus = z.infer<typeof ServiceStatusSchema>;

export const ServiceSchema = z
  .object({
    ...kindShape("Service", SERVING_API_VERSION),
    spec: ServiceSpecSchema,
    status: ServiceStatusSchema.optional(),
  })
  .meta({ description: "A serverless HTTP service: keeps one Configuration and one Route of its own name." });
export type Service = z.infer<typeof ServiceSchema>;
