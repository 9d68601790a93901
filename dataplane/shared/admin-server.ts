import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Registry } from "prom-client";

export interface AdminServerOptions {
  /** 0: any free port. */
  readonly port: number;
  readonly host?: string;
  readonly registry: Registry;
  /** Why the process must be restarted; undefined while it is well. Must not block. */
  readonly unhealthy: () => string | undefined;
  /** Why no traffic should come here; undefined while it should. Must not block. */
  readonly unready: () => string | undefined;
  /** More `GET` paths, each answered with the JSON of what it returns. */
  readonly json?: Readonly<Record<string, (query: URLSearchParams) => unknown>>;
  /** The same as text. */
  readonly text?: Readonly<Record<string, (query: URLSearchParams) => string>>;
}

export interface AdminServer {
  readonly port: number;
  /** Closes at once; the last thing to stop. Repeatable. */
  close(): Promise<void>;
}

/** `/metrics`, `/healthz`, `/readyz` and JSON views, apart from the traffic: it goes on answering while that drains. */
export async function startAdminServer(options: AdminServerOptions): Promise<AdminServer> {
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 5_000 }, (req, res) => {
    answer(req, res, options).catch((error: unknown) => {
      if (!res.headersSent) text(res, 500, error instanceof Error ? error.message : String(error));
      else res.destroy();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, resolve);
  });
  let closed: Promise<void> | undefined;
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      (closed ??= new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      })),
  };
}

async function answer(req: IncomingMessage, res: ServerResponse, options: AdminServerOptions): Promise<void> {
  const url = new URL(req.url ?? "/", "http://admin");
  if (req.method !== "GET" && req.method !== "HEAD") return text(res, 405, "use GET");
  switch (url.pathname) {
    case "/metrics": {
      const body = await options.registry.metrics();
      res.writeHead(200, { "content-type": options.registry.contentType });
      res.end(body);
      return;
    }
    case "/healthz":
      return state(res, options.unhealthy());
    case "/readyz":
      return state(res, options.unready());
    default: {
      const page = options.text?.[url.pathname];
      if (page !== undefined) return text(res, 200, page(url.searchParams));
      const view = options.json?.[url.pathname];
      if (view === undefined) return text(res, 404, "not found");
      const body = JSON.stringify(view(url.searchParams), undefined, 2);
      res.writeHead(200, { "content-type": "application/json" });
      res.end(`${body}\n`);
    }
  }
}

function state(res: ServerResponse, problem: string | undefined): void {
  text(res, problem === undefined ? 200 : 503, problem ?? "ok");
}

function text(res: ServerResponse, status: number, body: string): void {
  res.writeHead(status, { "content-type": "text/plain; charset=utf-8" });
  res.end(body + "\n");
}
