import type { Container } from "../../../api/serving/v1/pod-spec.ts";
import type { RevisionSpec } from "../../../api/serving/v1/types.ts";

export const DEFAULT_USER_PORT = 8080;
export const DEFAULT_CONTAINER = "user-container";

/** What the app speaks on its port. */
export type Protocol = "http1" | "h2c";

/** The container that requests go to: the one with a port, or the only one. */
export function servingContainer(spec: RevisionSpec): Container | undefined {
  return spec.containers.find(container => (container.ports?.length ?? 0) > 0) ?? spec.containers[0];
}

export const userPort = (spec: RevisionSpec): number =>
  servingContainer(spec)?.ports?.[0]?.containerPort || DEFAULT_USER_PORT;

export const protocolOf = (spec: RevisionSpec): Protocol =>
  servingContainer(spec)?.ports?.[0]?.name === "h2c" ? "h2c" : "http1";
