import type { RequestAttributes } from "./classifier.ts";

/** How flow control reads an HTTP request to a service: as the API server reads one for a resource and a path at once. */

const SERVING_GROUP = "serving.knative.dev";

/** HTTP methods in the API's words; others are lower-cased. */
const VERBS: Readonly<Record<string, string>> = {
  GET: "get",
  HEAD: "get",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/** The service a request is for. */
export interface RequestedService {
  readonly namespace: string;
  readonly service: string;
  /** Empty for the service's own host. */
  readonly tag: string;
}

export interface ServiceRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** The value of a header by its lower-case name. */
  header(name: string): string | undefined;
}

/** True for the headers, in lower case, in which an authenticating proxy says who its client is. */
export const isIdentityField = (name: string): boolean =>
  name === "x-remote-user" || name === "x-remote-group" || name.startsWith("x-remote-extra-");

/** What flow control looks at. Fields that say who the client is are not among the headers: they make the identity, if anything. */
export function serviceRequestAttributes(
  request: ServiceRequest,
  { namespace, service, tag }: RequestedService,
  { user, groups }: Pick<RequestAttributes, "user" | "groups">,
): RequestAttributes {
  const { method, target } = request;
  const query = target.indexOf("?");
  return {
    user,
    groups,
    verb: VERBS[method] ?? method.toLowerCase(),
    resource: { apiGroup: SERVING_GROUP, resource: "services", subresource: tag, namespace, name: service },
    path: query < 0 ? target : target.slice(0, query),
    header: name => (isIdentityField(name) ? undefined : request.header(name)),
  };
}
