import type { RequestAttributes } from "../../../core/flowcontrol/classifier.ts";
import type { Exchange } from "../../shared/http/exchange.ts";
import type { Identity } from "../identity/identity.ts";
import { isIdentityField } from "../identity/proxy-identity.ts";

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

export const verbOf = (method: string): string => VERBS[method] ?? method.toLowerCase();

/** The service a request is for. */
export interface RequestedService {
  readonly namespace: string;
  readonly service: string;
  /** Empty for the service's own host. */
  readonly tag: string;
}

/**
 * What flow control looks at in a request to a service. Fields that say who the client is are not among its headers: whoever
 * believes them has put them into the identity.
 */
export function requestAttributes(
  request: Pick<Exchange, "method" | "target" | "header">,
  { namespace, service, tag }: RequestedService,
  { user, groups }: Identity,
): RequestAttributes {
  const query = request.target.indexOf("?");
  return {
    user,
    groups,
    verb: verbOf(request.method),
    resource: {
      apiGroup: SERVING_GROUP,
      resource: "services",
      subresource: tag,
      namespace,
      name: service,
    },
    path: query < 0 ? request.target : request.target.slice(0, query),
    header: name => (isIdentityField(name) ? undefined : request.header(name)),
  };
}
