import { at, generic, invalidValue, missingOneOf, multipleOneOf, outOfBounds } from "../../meta/field-error.ts";
import type { FieldErrors } from "../../meta/field-error.ts";
import { INT32_MAX } from "../../meta/go-format.ts";
import * as mask from "./field-mask.ts";
import { checkFields } from "./field-mask.ts";
import type { Probe } from "./pod-spec.ts";

/** The port that requests go to: the only one in all containers. */
export interface ServingPort {
  readonly name: string;
  readonly containerPort: number;
}

/** `port`: the serving port, which an unnamed probe port stands for; undefined: a sidecar's probe, which must name one. */
export function validateProbe(probe: Probe | undefined, port: ServingPort | undefined): FieldErrors {
  if (probe === undefined) return [];
  const handlers = (["httpGet", "tcpSocket", "exec", "grpc"] as const).filter(name => probe[name] !== undefined);
  const portOf = (name: "httpGet" | "tcpSocket"): FieldErrors => {
    const handler = probe[name];
    if (handler === undefined) return [];
    const value = handler.port ?? 0;
    if (port === undefined) {
      return value === 0 || value === "" ? [invalidValue(value, `${name}.port`, "Probe port must be specified")] : [];
    }
    return typeof value === "string" && value !== "" && value !== port.name
      ? [invalidValue(value, `${name}.port`, "Probe port must match container port")]
      : [];
  };
  return [
    ...checkFields(probe, mask.PROBE_MASK),
    ...at("httpGet", checkFields(probe.httpGet ?? {}, mask.HTTP_GET_MASK)),
    ...at("tcpSocket", checkFields(probe.tcpSocket ?? {}, mask.TCP_SOCKET_MASK)),
    ...at("exec", checkFields(probe.exec ?? {}, mask.EXEC_MASK)),
    ...at("grpc", checkFields(probe.grpc ?? {}, mask.GRPC_MASK)),
    ...portOf("httpGet"),
    ...portOf("tcpSocket"),
    ...(handlers.length === 0 ? [missingOneOf("httpGet", "tcpSocket", "exec", "grpc")] : []),
    ...(handlers.length > 1 ? [multipleOneOf(...handlers)] : []),
  ];
}

/** periodSeconds 0 asks for the queue-proxy's own quick probing, which has no time-out and no count of failures. */
export function validateReadinessProbe(probe: Probe | undefined, port: ServingPort | undefined): FieldErrors {
  if (probe === undefined) return [];
  const atLeast = (name: keyof Probe & `${string}${"Seconds" | "Threshold"}`, min: number): FieldErrors => {
    const value = probe[name] ?? 0;
    return value < min ? [outOfBounds(value, min, INT32_MAX, name)] : [];
  };
  const without = (["failureThreshold", "timeoutSeconds"] as const)
    .filter(name => (probe[name] ?? 0) !== 0)
    .map(name => generic(`${name} is disallowed when periodSeconds is zero`, [name]));
  return [
    ...validateProbe(probe, port),
    ...atLeast("periodSeconds", 0),
    ...atLeast("initialDelaySeconds", 0),
    ...atLeast("successThreshold", 1),
    ...((probe.periodSeconds ?? 0) === 0
      ? without
      : [...atLeast("timeoutSeconds", 1), ...atLeast("failureThreshold", 1)]),
  ];
}
