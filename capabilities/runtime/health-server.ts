import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { DebugAnswer } from "./capability.ts";
import type { ComponentLogger } from "./logging.ts";

export interface HealthServerOptions {
  /** The text of all metrics. */
  readonly metrics: () => Promise<string>;
  /** What keeps this replica from being ready; empty when it is. */
  readonly notReady: () => readonly string[];
  /** Pages under `/debug/`, by name. */
  readonly debug: ReadonlyMap<string, DebugAnswer>;
  readonly log: ComponentLogger;
}

export interface HealthServer {
  listen(port: number): Promise<number>;
  close(): Promise<void>;
}

const DEBUG = "/debug/";

/** `/metrics`, `/debug/...`, `/healthz` (the process answers) and `/readyz` (200, or 503 with what is missing). It stops last. */
export function createHealthServer({ metrics, notReady, debug, log }: HealthServerOptions): HealthServer {
  const server: Server = createServer((request, response) => {
    const send = (code: number, text: string, type = "text/plain; charset=utf-8") => {
      response.writeHead(code, { "content-type": type });
      response.end(request.method === "HEAD" ? undefined : text);
    };
    if (request.method !== "GET" && request.method !== "HEAD") return send(405, "only GET\n");
    const [path = "", query = ""] = (request.url ?? "").split("?");
    if (path.startsWith(DEBUG)) {
      try {
        const answer = debug.get(path.slice(DEBUG.length))?.(new URLSearchParams(query));
        return answer === undefined
          ? send(404, "not found\n")
          : send(200, `${JSON.stringify(answer)}\n`, "application/json");
      } catch (error) {
        log.error({ error, path }, "debug page failed");
        return send(500, "debug page failed\n");
      }
    }
    switch (path) {
      case "/healthz":
        return send(200, "ok\n");
      case "/readyz": {
        const missing = notReady();
        return missing.length === 0 ? send(200, "ok\n") : send(503, `not ready: ${missing.join("; ")}\n`);
      }
      case "/metrics":
        metrics().then(
          text => send(200, text, "text/plain; version=0.0.4; charset=utf-8"),
          (error: unknown) => {
            log.error({ error }, "metrics could not be collected");
            send(500, "metrics could not be collected\n");
          },
        );
        return;
      default:
        return send(404, "not found\n");
    }
  });
  server.requestTimeout = 10_000;
  server.headersTimeout = 5_000;
  server.maxConnections = 128;
  return {
    async listen(port) {
      server.listen(port);
      await once(server, "listening");
      return (server.address() as AddressInfo).port;
    },
    async close() {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
