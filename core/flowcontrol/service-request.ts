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
  readonly header: (name: string) => string | undefined;
}

export function serviceRequestAttributes(
  { method, target, header }: ServiceRequest,
  { namespace, service, tag }: RequestedService,
  { user, groups }: Pick<RequestAttributes, "user" | "groups">,
): RequestAttributes {
  const query = target.indexOf("?");
  return {
    user,
    groups,
    verb: VERBS[method] ?? method.toLowerCase(),
    resource: { apiGroup: SERVING_GROUP, resource: "services", subresource: tag, namespace, name: service },
    path: query < 0 ? target : target.slice(0, query),
    header,
  };
}
