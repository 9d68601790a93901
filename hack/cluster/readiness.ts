import { request } from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import { API_PORT, DNS_READY_PORT, PROXY_HEALTH_PORT } from "./config-files.ts";

const POLL_INTERVAL_MS = 100;
const REQUEST_TIMEOUT_MS = 5_000;

/** The credentials of a cluster's administrator (PEM). */
export interface ApiAccess {
  readonly nodeIp: string;
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
}

/** A condition of a cluster that is about to be usable, and the component whose log explains its absence. */
export interface Check {
  readonly what: string;
  readonly component: string;
  /** Gives undefined when the condition holds, or else what is the case instead. */
  readonly probe: () => Promise<string | undefined>;
}

export class NotReadyError extends Error {
  readonly code = "CLUSTER_NOT_READY";
  readonly component: string;
  constructor(message: string, component: string) {
    super(message);
    this.component = component;
  }
}

export function apiCheck(access: ApiAccess): Check {
  return {
    what: "API server",
    component: "kube-apiserver",
    probe: async () => {
      const { status, body } = await apiGet(access, "/readyz");
      return status === 200 ? undefined : `HTTP ${status} ${body.trim().slice(-500)}`;
    },
  };
}

/** What else a cluster must have to be used: its node, the account that pods run as, services and names. */
export function usableChecks(access: ApiAccess, node: string): Check[] {
  return [
    {
      what: "node",
      component: "kubelet",
      probe: async () => {
        const { status, body } = await apiGet(access, `/api/v1/nodes/${node}`);
        if (status !== 200) return `HTTP ${status}`;
        const { status: nodeStatus } = JSON.parse(body) as NodeObject;
        const ready = nodeStatus.conditions?.find(condition => condition.type === "Ready");
        return ready?.status === "True" ? undefined : (ready?.message ?? "has no Ready condition");
      },
    },
    {
      what: "service account of pods",
      component: "kube-controller-manager",
      probe: async () => {
        const { status } = await apiGet(access, "/api/v1/namespaces/default/serviceaccounts/default");
        return status === 200 ? undefined : `HTTP ${status}`;
      },
    },
    httpCheck("services", "kube-proxy", `http://${access.nodeIp}:${PROXY_HEALTH_PORT}/healthz`),
    httpCheck("cluster DNS", "coredns", `http://${access.nodeIp}:${DNS_READY_PORT}/ready`),
  ];
}

/**
 * Waits until a check passes.
 * @param isAlive called before each try; once it gives false there is nothing to wait for
 * @throws NotReadyError
 */
export async function awaitCheck(check: Check, timeoutMs: number, isAlive: () => Promise<boolean>): Promise<void> {
  const deadlineMs = Date.now() + timeoutMs;
  for (;;) {
    if (!(await isAlive())) throw new NotReadyError("the box ended while it started", "box");
    const reason = await tryProbe(check);
    if (reason === undefined) return;
    if (Date.now() > deadlineMs) {
      throw new NotReadyError(`${check.what} not ready after ${timeoutMs} ms: ${reason}`, check.component);
    }
    await delay(POLL_INTERVAL_MS);
  }
}

/** Runs a check once; a failure to ask at all is an answer too. */
export async function tryProbe(check: Check): Promise<string | undefined> {
  try {
    return await check.probe();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

interface NodeObject {
  readonly status: { readonly conditions?: readonly { type: string; status: string; message?: string }[] };
}

function httpCheck(what: string, component: string, url: string): Check {
  return {
    what,
    component,
    probe: async () => {
      const response = await fetch(url, { signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
      await response.arrayBuffer();
      return response.ok ? undefined : `HTTP ${response.status}`;
    },
  };
}

export async function apiGet(access: ApiAccess, path: string): Promise<{ status: number; body: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
  const call = request(
    {
      host: access.nodeIp,
      port: API_PORT,
      path,
      ca: access.authority,
      cert: access.certificate,
      key: access.key,
      agent: false,
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    },
    response => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString("utf8") }),
      );
      response.on("error", reject);
    },
  );
  call.on("error", reject);
  call.end();
  return promise;
}
