import { z } from "zod";
import { int64, stringMap } from "./schema.ts";

export const ConditionSchema = z
  .object({
    type: z.string().meta({ description: "Name of the condition." }),
    status: z.string().meta({ description: "`True`, `False` or `Unknown`." }),
    severity: z.string().optional().meta({
      description: "How to take a failure: absent means an error; `Info` conditions do not make the object unready.",
    }),
    lastTransitionTime: z.string().optional().meta({ description: "When the status last changed (RFC 3339)." }),
    reason: z.string().optional().meta({ description: "One word in CamelCase that says why." }),
    message: z.string().optional().meta({ description: "The same for people." }),
  })
  .meta({ description: "One aspect of an object's state, as Knative shows it." });

/** A condition as stored: schemas accept any text as status, Fairway writes only these three. */
export type Condition = Omit<z.infer<typeof ConditionSchema>, "status"> & { status: ConditionStatus };
export type ConditionStatus = "True" | "False" | "Unknown";

const conditions = z
  .array(ConditionSchema)
  .optional()
  .meta({ description: "Latest observations of the object's state, sorted by type." }) as unknown as z.ZodOptional<
  z.ZodType<Condition[]>
>;

/** The fields every Knative status begins with. */
export const knativeStatusShape = {
  observedGeneration: int64()
    .optional()
    .meta({ format: "int64", description: "The `metadata.generation` that this status describes." }),
  conditions,
  annotations: stringMap().optional().meta({ description: "Further status information for tools." }),
};

export const AddressableSchema = z
  .object({
    url: z.string().optional(),
    name: z.string().optional(),
    CACerts: z.string().optional().meta({ description: "PEM certificates by which the address can be verified." }),
    audience: z.string().optional().meta({ description: "OIDC audience of the address." }),
  })
  .meta({ description: "Where the object is reached from inside the cluster." });
export type Addressable = z.infer<typeof AddressableSchema>;
