import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PeprModule, type Capability } from "pepr";
import { Pool } from "undici";
import { createAuthority, issueServerCertificate } from "./certificate-authority.ts";
import { pause, type Clock } from "./clock.ts";

export type AdmissionKind = "mutate" | "validate";

/** Pepr's admission controller, reachable from this process alone. */
export interface PeprHost {
  /** Hands one AdmissionReview to Pepr and returns its answer; throws when Pepr does not answer with 200 in time. */
  review(kind: AdmissionKind, body: Buffer, signal: AbortSignal): Promise<Buffer>;
  /** Resolves once Pepr answers; throws `PeprNotReady` after `timeoutMs`. */
  whenReady(timeoutMs: number, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** Pepr did not bind its endpoints, which it does once it has read its store; it never tries again by itself. */
export class PeprNotReady extends Error {
  readonly code = "PEPR_NOT_READY";
}

const HOST = "pepr.local";
/** Pepr's own server never rotates its certificate; nothing but this process sees it. */
const CERTIFICATE_DAYS = 3650;

/**
 * Runs Pepr's HTTPS server on a Unix socket in a private directory instead of on a port of the pod: the TLS that the API server
 * sees is ours (`webhook-front.ts`), so that its certificate can change without a restart. Every capability's watch bindings
 * must have been taken out before (`pepr-watches.ts`).
 */
export async function startPepr(capabilities: readonly Capability[], clock: Clock): Promise<PeprHost> {
  const directory = await mkdtemp(join(tmpdir(), "fairway-pepr-"));
  const socketPath = join(directory, "socket");
  const authority = await createAuthority(clock.nowMs(), CERTIFICATE_DAYS);
  const certificate = await issueServerCertificate(authority, [HOST], clock.nowMs(), CERTIFICATE_DAYS);
  const keyPath = join(directory, "tls.key");
  const certificatePath = join(directory, "tls.crt");
  await writeFile(keyPath, certificate.key, { mode: 0o600 });
  await writeFile(certificatePath, certificate.certificate, { mode: 0o600 });
  const token = randomBytes(16).toString("hex");
  process.env["SSL_KEY_PATH"] = keyPath;
  process.env["SSL_CERT_PATH"] = certificatePath;
  process.env["PEPR_API_PATH"] = token;

  const module = new PeprModule(
    {
      description: "Fairway",
      pepr: { uuid: "fairway", onError: "reject", alwaysIgnore: { namespaces: [] }, webhookTimeout: 10_000 },
    },
    [...capabilities],
    { deferStart: true },
  );
  withoutSignalHandlers(() => {
    // Pepr passes this to Node's server.listen, which takes a socket's path as well as a port.
    module.start(socketPath as unknown as number);
  });

  const pool = new Pool(`https://${HOST}`, {
    connect: { socketPath, ca: authority.certificate, servername: HOST },
    connections: 32,
    headersTimeout: 10_000,
    bodyTimeout: 10_000,
  });

  return {
    async review(kind, body, signal) {
      const response = await pool.request({
        method: "POST",
        path: `/${kind}/${token}`,
        headers: { "content-type": "application/json" },
        body,
        signal,
      });
      const answer = Buffer.from(await response.body.arrayBuffer());
      if (response.statusCode !== 200) {
        throw new Error(`pepr answered ${response.statusCode} to ${kind}: ${answer.toString("utf8").slice(0, 200)}`);
      }
      return answer;
    },
    async whenReady(timeoutMs, signal) {
      const untilMs = clock.elapsedMs() + timeoutMs;
      while (!signal.aborted) {
        if (await answers(pool)) return;
        if (clock.elapsedMs() >= untilMs) {
          throw new PeprNotReady(`pepr did not serve within ${timeoutMs} ms: can it use its store in pepr-system?`);
        }
        await pause(clock, 50, signal);
      }
    },
    async close() {
      await pool.destroy();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function answers(pool: Pool): Promise<boolean> {
  try {
    const response = await pool.request({ method: "GET", path: "/healthz", signal: AbortSignal.timeout(1000) });
    await response.body.dump();
    return response.statusCode === 200;
  } catch {
    // Not listening yet.
    return false;
  }
}

/** Pepr ends the process by itself at SIGTERM as soon as its server is idle; stopping in order is `operator.ts`'s to do. */
function withoutSignalHandlers(start: () => void): void {
  const before = new Set(process.listeners("SIGTERM"));
  start();
  for (const listener of process.listeners("SIGTERM")) if (!before.has(listener)) process.off("SIGTERM", listener);
}
