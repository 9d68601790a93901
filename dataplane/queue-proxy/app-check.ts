import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import type { ReadinessProbe } from "./config.ts";

/** Looks at the app once: resolves with why it is not ready, or undefined when it is. Never rejects. */
export type AppCheck = (timeoutMs: number) => Promise<string | undefined>;

/** Kubernetes' own probes are told by this, so apps that treat them apart go on doing so. */
const USER_AGENT = "kube-probe/1";

/** Makes the check of one readiness probe, as the kubelet would make it. */
export function appCheck(check: ReadinessProbe["check"]): AppCheck {
  switch (check.kind) {
    case "tcp":
      return timeoutMs => checkTcp(check.host, check.port, timeoutMs);
    case "http":
      return timeoutMs => checkHttp(check, timeoutMs);
    case "grpc":
      // HTTP/2 is loaded only where it is used: it takes its time, and this process starts in every pod.
      return async timeoutMs => (await import("./grpc-check.ts")).checkGrpc(check, timeoutMs);
  }
}

function checkTcp(host: string, port: number, timeoutMs: number): Promise<string | undefined> {
  return new Promise(resolve => {
    const socket = connect({ host, port });
    const done = (problem: string | undefined): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(problem);
    };
    const timer = setTimeout(() => done(`tcp ${host}:${port}: no connection within ${timeoutMs} ms`), timeoutMs);
    socket.on("connect", () => done(undefined));
    socket.on("error", error => done(`tcp ${host}:${port}: ${error.message}`));
  });
}

async function checkHttp(
  check: Extract<ReadinessProbe["check"], { kind: "http" }>,
  timeoutMs: number,
): Promise<string | undefined> {
  const request = check.tls ? (await import("node:https")).request : httpRequest;
  const title = `GET ${check.tls ? "https" : "http"}://${check.host}:${check.port}${check.path}`;
  return new Promise(resolve => {
    const sent = request({
      host: check.host,
      port: check.port,
      path: check.path,
      headers: { "user-agent": USER_AGENT, accept: "*/*", connection: "close", ...check.headers },
      agent: false,
      // As the kubelet: the certificate of an app in the same pod proves nothing.
      ...(check.tls ? { rejectUnauthorized: false } : {}),
    });
    const done = (problem: string | undefined): void => {
      clearTimeout(timer);
      sent.destroy();
      resolve(problem);
    };
    const timer = setTimeout(() => done(`${title}: no answer within ${timeoutMs} ms`), timeoutMs);
    sent.on("response", response => {
      response.resume();
      const status = response.statusCode ?? 0;
      done(status >= 200 && status < 400 ? undefined : `${title}: status ${status}`);
    });
    // Also after the end, where nobody waits for it any more.
    sent.on("error", error => done(`${title}: ${error.message}`));
    sent.end();
  });
}
