import type { RequestAttributes } from "../../core/flowcontrol/classifier.ts";
import { serviceRequestAttributes, type RequestedService } from "../../core/flowcontrol/service-request.ts";

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

/** A user that there may be; undefined for none, and for a service account without its namespace or name. */
export function userOf(text: string): string | undefined {
  const isWhole = !text.startsWith("system:serviceaccount:") || SERVICE_ACCOUNT.test(text);
  return text !== "" && isWhole ? text : undefined;
}

/** The user with the groups that authentication adds of itself, as `kubectl --as` has them. */
export function identityOf({ user, groups }: Pick<AskedRequest, "user" | "groups">): Identity {
  if (user === undefined || user === "system:anonymous") {
    return { user: "system:anonymous", groups: [...groups, "system:unauthenticated"] };
  }
  const namespace = SERVICE_ACCOUNT.exec(user)?.[1];
  const ofAccount = namespace === undefined ? [] : ["system:serviceaccounts", `system:serviceaccounts:${namespace}`];
  return { user, groups: [...new Set([...groups, ...ofAccount, "system:authenticated"])] };
}

/** What flow control looks at. */
export function attributesOf(request: AskedRequest, service: RequestedService): RequestAttributes {
  const headers = new Map(request.headers.map(([name, value]) => [name.toLowerCase(), value]));
  const { method, path } = request;
  return serviceRequestAttributes(
    { method, target: path, header: name => headers.get(name) },
    service,
    identityOf(request),
  );
}

/** `HOST[/PATH]`, with or without `http://`. */
export function splitAddress(address: string): { readonly host: string; readonly path: string } {
  const bare = address.replace(/^https?:\/\//, "");
  const end = bare.search(/[/?]/);
  if (end < 0) return { host: bare, path: "/" };
  const rest = bare.slice(end);
  return { host: bare.slice(0, end), path: rest.startsWith("/") ? rest : `/${rest}` };
}
