import type { RequestAttributes } from "../../core/flowcontrol/classifier.ts";
import type { Target } from "./find-target.ts";

/** A request as it stands on the command line. */
export interface AskedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  /** Absent: nobody is known. */
  readonly user: string | undefined;
  readonly groups: readonly string[];
}

export interface Identity {
  readonly user: string;
  readonly groups: readonly string[];
}

const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):[^:]+$/;

/** The user with the groups that authentication adds of itself, as `kubectl --as` has them. */
export function identityOf({ user, groups }: Pick<AskedRequest, "user" | "groups">): Identity {
  if (user === undefined || user === "system:anonymous") {
    return { user: "system:anonymous", groups: [...groups, "system:unauthenticated"] };
  }
  const namespace = SERVICE_ACCOUNT.exec(user)?.[1];
  const ofAccount = namespace === undefined ? [] : ["system:serviceaccounts", `system:serviceaccounts:${namespace}`];
  return { user, groups: [...new Set([...groups, ...ofAccount, "system:authenticated"])] };
}

const VERBS: Readonly<Record<string, string>> = {
  GET: "get",
  HEAD: "get",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/** What flow control looks at: how an HTTP request to a service is read. */
export function attributesOf(request: AskedRequest, target: Target): RequestAttributes {
  const headers = new Map(request.headers.map(([name, value]) => [name.toLowerCase(), value]));
  const [path = "/"] = request.path.split("?");
  return {
    ...identityOf(request),
    verb: VERBS[request.method] ?? request.method.toLowerCase(),
    resource: {
      apiGroup: "serving.knative.dev",
      resource: "services",
      subresource: target.tag,
      namespace: target.namespace,
      name: target.service,
    },
    path,
    header: name => headers.get(name),
  };
}

/** `HOST[/PATH]`, with or without `http://`. */
export function splitAddress(address: string): { readonly host: string; readonly path: string } {
  const bare = address.replace(/^https?:\/\//, "");
  const slash = bare.indexOf("/");
  return slash < 0 ? { host: bare, path: "/" } : { host: bare.slice(0, slash), path: bare.slice(slash) };
}
