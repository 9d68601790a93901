import type { RequestAttributes } from "../../../core/flowcontrol/classifier.ts";
import type { Exchange } from "../../shared/http/exchange.ts";
import type { RouteTarget } from "../routing/compiled-route.ts";
import type { Identity } from "../identity/identity.ts";

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

/** What flow control looks at in a request to a service. */
export function requestAttributes(
  request: Pick<Exchange, "method" | "target" | "header">,
  target: Pick<RouteTarget<unknown>, "namespace" | "service" | "tag">,
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
      subresource: target.tag,
      namespace: target.namespace,
      name: target.service,
    },
    path: query < 0 ? request.target : request.target.slice(0, query),
    header: name => request.header(name),
  };
}
