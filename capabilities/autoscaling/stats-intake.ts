import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { GatewayReportSchema, type GatewayReply, type GatewayReport } from "../../api/wire/stats.ts";

/** Largest report accepted: 10,000 active revisions are under 2 MiB. */
const MAX_REPORT_BYTES = 8 * 1024 * 1024;

export interface StatsIntakeOptions {
  readonly port: number;
  /** True for a token of a gateway. Called once per report; caches inside. */
  readonly isGateway: (token: string) => Promise<boolean>;
  /** Takes a valid report and answers it. Must not block. */
  readonly onReport: (report: GatewayReport) => GatewayReply;
  readonly onRefused: (reason: string) => void;
}

export interface StatsIntake {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * The leader's HTTP endpoint for gateway reports (`POST /v1/stats`, bearer token of the gateway's ServiceAccount).
 * 401 without a valid token, 400 with the field's path for a malformed report, 413 over 8 MiB.
 */
export async function startStatsIntake(options: StatsIntakeOptions): Promise<StatsIntake> {
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000, maxHeaderSize: 16_384 }, (req, res) => {
    handle(req, options).then(
      answer => send(res, answer.status, answer.body),
      (error: unknown) => {
        options.onRefused(error instanceof Error ? error.message : String(error));
        send(res, 500, { error: "internal error" });
      },
    );
  });
  await listen(server, options.port);
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve, reject) => {
        server.close(error => (error === undefined ? resolve() : reject(error)));
        server.closeAllConnections();
      }),
  };
}

interface Answer {
  readonly status: number;
  readonly body: object;
}

async function handle(req: IncomingMessage, options: StatsIntakeOptions): Promise<Answer> {
  const refuse = (status: number, error: string): Answer => {
    options.onRefused(error);
    return { status, body: { error } };
  };
  if (req.url !== "/v1/stats") return { status: 404, body: { error: "not found" } };
  if (req.method !== "POST") return { status: 405, body: { error: "use POST" } };
  const token = /^Bearer (\S+)$/.exec(req.headers.authorization ?? "")?.[1];
  if (token === undefined || !(await options.isGateway(token))) return refuse(401, "not a gateway's token");
  const body = await readBody(req);
  if (body === undefined) return refuse(413, `report over ${MAX_REPORT_BYTES} bytes`);
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch (error) {
    return refuse(400, `report is not JSON: ${(error as Error).message}`);
  }
  const parsed = GatewayReportSchema.safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return refuse(400, `${issue?.path.join(".") ?? ""}: ${issue?.message ?? "invalid"}`);
  }
  return { status: 200, body: options.onReport(parsed.data) };
}

/** The body as text, or undefined when it is larger than allowed (the rest is not read). */
async function readBody(req: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_REPORT_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function send(res: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  res.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  res.end(text);
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, () => resolve());
  });
}
