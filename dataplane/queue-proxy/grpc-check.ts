import { connect } from "node:http2";
import type { ReadinessProbe } from "./config.ts";

const SERVING = 1;
const STATUS_NAMES = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];

/** One call of `grpc.health.v1.Health/Check`: resolves with why the app is not serving, or undefined. Never rejects. */
export function checkGrpc(
  check: Extract<ReadinessProbe["check"], { kind: "grpc" }>,
  timeoutMs: number,
): Promise<string | undefined> {
  const title = `grpc ${check.host}:${check.port} service "${check.service}"`;
  return new Promise(resolve => {
    const session = connect(`http://${check.host}:${check.port}`);
    const done = (problem: string | undefined): void => {
      clearTimeout(timer);
      session.destroy();
      resolve(problem);
    };
    const timer = setTimeout(() => done(`${title}: no answer within ${timeoutMs} ms`), timeoutMs);
    session.on("error", (error: Error) => done(`${title}: ${error.message}`));
    const stream = session.request({
      ":method": "POST",
      ":path": "/grpc.health.v1.Health/Check",
      "content-type": "application/grpc",
      te: "trailers",
    });
    const parts: Buffer[] = [];
    let grpcStatus: string | undefined;
    const note = (fields: Record<string, unknown>): void => {
      if (typeof fields["grpc-status"] === "string") grpcStatus = fields["grpc-status"];
    };
    stream.on("response", note);
    stream.on("trailers", note);
    stream.on("data", (part: Buffer) => parts.push(part));
    stream.on("error", (error: Error) => done(`${title}: ${error.message}`));
    stream.on("end", () => {
      if (grpcStatus !== "0") return done(`${title}: grpc-status ${grpcStatus ?? "absent"}`);
      const status = decodeStatus(Buffer.concat(parts));
      done(status === SERVING ? undefined : `${title}: ${STATUS_NAMES[status] ?? `status ${status}`}`);
    });
    stream.end(frame(check.service));
  });
}

/** A gRPC frame (no compression, length) with `HealthCheckRequest { string service = 1; }`. */
function frame(service: string): Buffer {
  const name = Buffer.from(service, "utf8");
  const message = name.length === 0 ? name : Buffer.concat([Buffer.from([0x0a, ...varint(name.length)]), name]);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)];
}

/** The status of `HealthCheckResponse { ServingStatus status = 1; }`; an absent field is 0, UNKNOWN. */
function decodeStatus(body: Buffer): number {
  return body[5] === 0x08 ? (body[6] ?? 0) : 0;
}
