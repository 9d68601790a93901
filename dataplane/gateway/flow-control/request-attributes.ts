import type { RequestAttributes } from "../../../core/flowcontrol/classifier.ts";
import { serviceRequestAttributes, type RequestedService } from "../../../core/flowcontrol/service-request.ts";
import type { Exchange } from "../../shared/http/exchange.ts";
import type { Identity } from "../identity/identity.ts";
import { isIdentityField } from "../identity/proxy-identity.ts";

/**
 * What flow control looks at in a request to a service. Fields that say who the client is are not among its headers: whoever
 * believes them has put them into the identity.
 */
export function requestAttributes(
  request: Pick<Exchange, "method" | "target" | "header">,
  service: RequestedService,
  identity: Identity,
): RequestAttributes {
  const { method, target } = request;
  const header = (name: string): string | undefined => (isIdentityField(name) ? undefined : request.header(name));
  return serviceRequestAttributes({ method, target, header }, service, identity);
}
