import { z } from "zod";
import type { Identity } from "../identity/identity.ts";

/**
 * The field by which a gateway tells another what it has found out about a request it passes on. It counts from gateways only;
 * from anybody else it is dropped.
 */
export const PASSED_FIELD = "k-gateway-passed";

/** A request that another gateway has routed: it is served where it has come to, and passed on no further. */
export interface PassedRequest {
  /** `namespace/name`. */
  readonly revision: string;
  readonly service: string;
  /** Empty for the service's own host. */
  readonly tag: string;
  readonly identity: Identity;
}

const schema = z.object({
  revision: z.string(),
  service: z.string(),
  tag: z.string(),
  identity: z.object({ user: z.string(), groups: z.array(z.string()) }),
});

/** The field's value: JSON in the characters that a field may have. */
export function formatPassed(passed: PassedRequest): string {
  return JSON.stringify(passed).replace(
    /[\u007f-\uffff]/g,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Undefined for what is no such value. */
export function parsePassed(value: string): PassedRequest | undefined {
  try {
    return schema.safeParse(JSON.parse(value)).data;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
