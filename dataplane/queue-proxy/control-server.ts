import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Drain } from "./drain.ts";
import type { Readiness } from "./readiness.ts";

export interface ControlServer {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * For the pod's own kubelet: `GET /drain` is the user container's preStop hook, answered when no request is left, so that
 * the app gets SIGTERM only then; `GET /terminate` is this container's own preStop hook, which says that the pod ends; `GET /ready`
 * tells whether the pod takes traffic.
 */
export async function startControlServer(
  port: number,
  parts: { readonly drain: Drain; readonly readiness: Readiness; readonly onTerminate: () => void },
): Promise<ControlServer> {
  const { drain, readiness, onTerminate } = parts;
  const server = createServer((req, res) => {
    const path = (req.url ?? "/").split("?")[0];
    if (path === "/drain") {
      drain.begin("preStop");
      void drain.whenOver().then(state => text(res, 200, state.phase));
    } else if (path === "/terminate") {
      text(res, 200, "terminating");
      onTerminate();
    } else if (path === "/ready") {
      const { state } = readiness;
      if (drain.state.phase !== "serving") text(res, 503, drain.state.phase);
      else text(res, state.problem === undefined ? 200 : 503, state.problem ?? "ready");
    } else text(res, 404, "not found");
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeIdleConnections();
      }),
  };
}

function text(res: ServerResponse, status: number, body: string): void {
  res.writeHead(status, { "content-type": "text/plain; charset=utf-8", connection: "close" });
  res.end(`${body}\n`);
}
