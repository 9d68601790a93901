import { z } from "zod";
import { ObjectMetaSchema } from "../../meta/object-meta.ts";
import { AddressableSchema, knativeStatusShape } from "../../meta/status.ts";

/** `serving.knative.dev/v1beta1` DomainMapping: a name of one's own for a service; the object's name is the domain. */

export const DOMAIN_MAPPING_API_VERSION = "serving.knative.dev/v1beta1";

export const KReferenceSchema = z.object({
  kind: z.string(),
  name: z.string(),
  apiVersion: z.string().optional(),
  group: z.string().optional(),
  namespace: z.string().optional(),
  address: z.string().optional(),
});
export type KReference = z.infer<typeof KReferenceSchema>;

export const DomainMappingSpecSchema = z.object({
  ref: KReferenceSchema.meta({
    description: "What the domain leads to: a Knative Service or Route of the same namespace.",
  }),
  tls: z
    .object({ secretName: z.string().meta({ description: "A kubernetes.io/tls Secret of the same namespace." }) })
    .optional(),
});
export type DomainMappingSpec = z.infer<typeof DomainMappingSpecSchema>;

export const DomainMappingStatusSchema = z.object({
  ...knativeStatusShape,
  url: z.string().optional(),
  address: AddressableSchema.optional(),
});
export type DomainMappingStatus = z.infer<typeof DomainMappingStatusSchema>;

export const DomainMappingSchema = z
  .object({
    apiVersion: z.string().optional().meta({ description: "`serving.knative.dev/v1beta1`." }),
    kind: z.string().optional().meta({ description: "`DomainMapping`." }),
    metadata: ObjectMetaSchema,
    spec: DomainMappingSpecSchema,
    status: DomainMappingStatusSchema.optional(),
  })
  .meta({ description: "Serves a service under a domain name of one's own; the object's name is the domain." });
export type DomainMapping = z.infer<typeof DomainMappingSchema>;
