import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { Counter, Histogram, type Registry } from "prom-client";
import { z } from "zod";
import type { KeyPair } from "./certificate-authority.ts";
import type { ComponentLogger } from "./logging.ts";
import type { AdmissionKind, PeprHost } from "./pepr-host.ts";

export interface WebhookFrontOptions {
  readonly pepr: Pick<PeprHost, "review">;
  readonly log: ComponentLogger;
  readonly metrics: Registry;
}

/** The HTTPS server that the API server calls: `POST /mutate` and `POST /validate`. */
export interface WebhookFront {
  /** Listens with a first certificate; resolves with the port. */
  listen(port: number, certificate: KeyPair): Promise<number>;
  /** New connections get this certificate; open ones go on. */
  useCertificate(certificate: KeyPair): void;
  /** From now on each answer ends its connection, so that callers open their next one elsewhere. */
  retire(): void;
  /** Takes no new connection, lets requests end for up to `drainMs`, then closes what is left. */
  close(drainMs: number): Promise<void>;
}

/** Pepr's own limit; an update carries the object twice. */
const LARGEST_FOR_PEPR = 2 * 1024 * 1024;
/** Above this a request is not even read. */
const LARGEST_BODY = 8 * 1024 * 1024;
/** Below the webhooks' timeoutSeconds (10), so that the caller gets our answer. */
const REVIEW_TIMEOUT_MS = 8_000;

const requestSchema = z.object({
  request: z.object({
    uid: z.string().min(1),
    operation: z.string(),
    kind: z.object({ group: z.string(), version: z.string(), kind: z.string() }),
  }),
});
const answerSchema = z.object({
  response: z.looseObject({
    uid: z.string(),
    allowed: z.boolean(),
    warnings: z.array(z.string()).optional(),
    status: z.object({ message: z.string().optional() }).optional(),
  }),
});
type AdmissionAnswer = z.infer<typeof answerSchema>["response"];

/** Puts TLS with a replaceable certificate, limits, metrics and Kubernetes' form of a refusal before Pepr. */
export function createWebhookFront(options: WebhookFrontOptions): WebhookFront {
  const { pepr, log, metrics } = options;
  const requests = new Counter({
    name: "fairway_admission_requests_total",
    help: "Admission requests by webhook, kind, operation and outcome",
    labelNames: ["webhook", "kind", "operation", "outcome"],
    registers: [metrics],
  });
  const seconds = new Histogram({
    name: "fairway_admission_duration_seconds",
    help: "How long the answer to an admission request took",
    labelNames: ["webhook"],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    registers: [metrics],
  });

  let retiring = false;

  const review = async (webhook: AdmissionKind, body: Buffer): Promise<AdmissionAnswer> => {
    const { request } = requestSchema.parse(JSON.parse(body.toString("utf8")));
    const labels = { webhook, kind: request.kind.kind, operation: request.operation };
    const stop = seconds.startTimer({ webhook });
    try {
      const answer =
        body.length > LARGEST_FOR_PEPR
          ? denial(request.uid, 413, `object too large: ${body.length} bytes in review, limit ${LARGEST_FOR_PEPR}`)
          : shape(await pepr.review(webhook, body, AbortSignal.timeout(REVIEW_TIMEOUT_MS)), request.uid);
      requests.inc({ ...labels, outcome: answer.allowed ? "allowed" : "denied" });
      return answer;
    } catch (error) {
      requests.inc({ ...labels, outcome: "error" });
      throw error;
    } finally {
      stop();
    }
  };

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const webhook = request.url?.split("?")[0];
    if (webhook !== "/mutate" && webhook !== "/validate") return end(response, 404, "no such webhook");
    if (request.method !== "POST") return end(response, 405, "only POST");
    if (!/^application\/json\b/.test(request.headers["content-type"] ?? "")) return end(response, 415, "only JSON");
    const body = await readBody(request);
    if (body === undefined) return end(response, 413, `body over ${LARGEST_BODY} bytes`);
    try {
      const answer = await review(webhook.slice(1) as AdmissionKind, body);
      response.writeHead(200, { "content-type": "application/json", ...(retiring ? { connection: "close" } : {}) });
      response.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }));
    } catch (error) {
      const malformed = error instanceof z.ZodError || error instanceof SyntaxError;
      // Anyone in the cluster may send nonsense; it must not fill the log.
      log[malformed ? "debug" : "error"]({ webhook, error }, "admission request failed");
      if (malformed) end(response, 400, "not an AdmissionReview");
      else end(response, 500, "admission failed; see the operator's log");
    }
  };

  const server = createServer(
    {
      minVersion: "TLSv1.2",
      maxHeaderSize: 16_384,
      headersTimeout: 10_000,
      requestTimeout: 30_000,
      keepAliveTimeout: 90_000,
    },
    (request, response) => {
      handle(request, response).catch((error: unknown) => {
        log.debug({ error }, "admission connection broke");
        response.destroy();
      });
    },
  );
  server.maxConnections = 1024;
  server.on("tlsClientError", error => log.debug({ error }, "TLS handshake failed"));

  return {
    async listen(port, certificate) {
      server.setSecureContext(secureContext(certificate));
      server.listen(port);
      await once(server, "listening");
      return (server.address() as AddressInfo).port;
    },
    useCertificate(certificate) {
      server.setSecureContext(secureContext(certificate));
    },
    retire() {
      retiring = true;
    },
    async close(drainMs) {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      const timer = setTimeout(() => server.closeAllConnections(), drainMs);
      await closed;
      clearTimeout(timer);
    },
  };
}

function secureContext({ certificate, key }: KeyPair) {
  return { cert: certificate, key, minVersion: "TLSv1.2" as const };
}

/**
 * Pepr's answer in the form that Kubernetes' own webhooks give: a refusal is a bad request whose message is the reason alone.
 * (Pepr says 422 to a failed validation, and puts the reason of a failed mutation among the warnings.)
 */
function shape(answer: Buffer, uid: string): AdmissionAnswer {
  const { response } = answerSchema.parse(JSON.parse(answer.toString("utf8")));
  if (response.uid !== uid) throw new Error(`pepr answered for ${response.uid}, want ${uid}`);
  const { status, warnings = [], ...rest } = response;
  if (response.allowed) return warnings.length === 0 ? rest : { ...rest, warnings };
  const failed = warnings.filter(warning => warning.startsWith(ACTION_FAILED));
  const message = status?.message ?? failed.map(warning => warning.slice(ACTION_FAILED.length)).join("\n");
  return denial(
    uid,
    400,
    message,
    warnings.filter(warning => !warning.startsWith(ACTION_FAILED)),
  );
}

const ACTION_FAILED = "Action failed: ";

function denial(uid: string, code: number, message: string, warnings: readonly string[] = []): AdmissionAnswer {
  const status = { code, reason: code === 413 ? "RequestEntityTooLarge" : "BadRequest", message };
  return { uid, allowed: false, status, ...(warnings.length === 0 ? {} : { warnings: [...warnings] }) };
}

function end(response: ServerResponse, code: number, message: string): void {
  response.writeHead(code, { "content-type": "text/plain", connection: "close" });
  response.end(`${message}\n`);
}

/** The whole body, or `undefined` when it is too large. */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  if (Number(request.headers["content-length"] ?? 0) > LARGEST_BODY) return undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > LARGEST_BODY) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}
