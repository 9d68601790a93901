import { readFile } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { pause, type Clock } from "../runtime/clock.ts";

/** Kubelets refresh their numbers about every ten seconds. */
const ROUND_MS = 10_000;
/** A number of three rounds ago says nothing about now. */
const STALE_MS = 30_000;
const KUBELET_PORT = 10_250;
const TIMEOUT_MS = 4_000;
/** About 400 bytes for each container of a node. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
const MAX_CONCURRENT_NODES = 16;
const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";
/** Its CPU is not the user's. */
const SIDECAR = "queue-proxy";

/** A pod whose CPU nobody inside tells. */
export interface MeasuredPod {
  readonly namespace: string;
  readonly name: string;
  readonly hostIp: string;
}

/** Gives the text of `/metrics/resource` of a node's kubelet. */
export type ReadNode = (hostIp: string, signal: AbortSignal) => Promise<string>;

export interface KubeletCpuOptions {
  readonly pods: () => Iterable<MeasuredPod>;
  readonly read: ReadNode;
  readonly clock: Clock;
  readonly onFailed: (hostIp: string, error: unknown) => void;
}

interface Meter {
  readonly cpuSeconds: number;
  /** By the node's clock. */
  readonly atMs: number;
  /** By ours; does not jump. */
  readonly heardMs: number;
  /** Undefined until the second look. */
  readonly cpus: number | undefined;
}

/** CPU use of pods as their nodes' kubelets count it, over the ten seconds or so between two looks. */
export class KubeletCpu {
  readonly #options: KubeletCpuOptions;
  #meters = new Map<string, Meter>();

  constructor(options: KubeletCpuOptions) {
    this.#options = options;
  }

  /** CPUs the user containers of `pod` (`namespace/name`) use; undefined while that is not known. */
  usage(pod: string): number | undefined {
    const meter = this.#meters.get(pod);
    const nowMs = this.#options.clock.elapsedMs();
    return meter === undefined || nowMs - meter.heardMs > STALE_MS ? undefined : meter.cpus;
  }

  /** Looks every ten seconds until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.look(signal);
      await pause(this.#options.clock, ROUND_MS, signal);
    }
  }

  /** Asks the kubelets of all pods once. */
  async look(signal: AbortSignal): Promise<void> {
    const byNode = new Map<string, Set<string>>();
    for (const { namespace, name, hostIp } of this.#options.pods()) {
      const pods = byNode.get(hostIp) ?? new Set();
      byNode.set(hostIp, pods.add(`${namespace}/${name}`));
    }
    const nodes = [...byNode];
    const seen = new Map<string, Meter>();
    const worker = async (): Promise<void> => {
      for (let node = nodes.pop(); node !== undefined && !signal.aborted; node = nodes.pop()) {
        const [hostIp, pods] = node;
        try {
          this.#take(await this.#options.read(hostIp, signal), pods, seen);
        } catch (error) {
          for (const pod of pods) this.#keep(pod, seen);
          if (!signal.aborted) this.#options.onFailed(hostIp, error);
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(MAX_CONCURRENT_NODES, nodes.length) }, worker));
    this.#meters = seen;
  }

  #take(text: string, pods: ReadonlySet<string>, seen: Map<string, Meter>): void {
    const counters = parseCpuSeconds(text);
    for (const pod of pods) {
      const counter = counters.get(pod);
      if (counter === undefined) {
        this.#keep(pod, seen);
        continue;
      }
      const before = this.#meters.get(pod);
      const cpuSeconds = counter.cpuSeconds;
      const atMs = counter.atMs ?? this.#options.clock.nowMs();
      const elapsedMs = before === undefined ? 0 : atMs - before.atMs;
      if (before !== undefined && elapsedMs <= 0) seen.set(pod, before);
      else {
        // A container that started again counts from 0: what it used before is not known.
        const used = before === undefined ? undefined : cpuSeconds - before.cpuSeconds;
        const cpus = used === undefined ? undefined : used < 0 ? before?.cpus : (used * 1000) / elapsedMs;
        seen.set(pod, { cpuSeconds, atMs, heardMs: this.#options.clock.elapsedMs(), cpus });
      }
    }
  }

  #keep(pod: string, seen: Map<string, Meter>): void {
    const before = this.#meters.get(pod);
    if (before !== undefined) seen.set(pod, before);
  }
}

interface Counter {
  readonly cpuSeconds: number;
  /** When the kubelet looked; the text may leave it out. */
  readonly atMs: number | undefined;
}

const LINE = /^container_cpu_usage_seconds_total\{([^}]*)\} (\S+)(?: (\d+))?$/gm;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** By `namespace/pod`: the sum over the user's containers. */
function parseCpuSeconds(text: string): Map<string, Counter> {
  const counters = new Map<string, Counter>();
  for (const [, labels = "", value = "", time] of text.matchAll(LINE)) {
    const { container, namespace, pod } = Object.fromEntries(
      [...labels.matchAll(LABEL)].map(([, key = "", word = ""]) => [key, word]),
    ) as Readonly<Record<string, string | undefined>>;
    const seconds = Number(value);
    if (container === SIDECAR || namespace === undefined || pod === undefined || !Number.isFinite(seconds)) continue;
    const key = `${namespace}/${pod}`;
    const before = counters.get(key);
    counters.set(key, {
      cpuSeconds: (before?.cpuSeconds ?? 0) + seconds,
      atMs: latest(before?.atMs, time === undefined ? undefined : Number(time)),
    });
  }
  return counters;
}

const latest = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : b === undefined ? a : Math.max(a, b);

/**
 * Reads a node's kubelet with the operator's own token, which needs `get` on `nodes/metrics` alone. The kubelet must show a
 * certificate of the cluster's CA for its address: the token goes to no one else.
 * @throws KubeletError, or the error of the connection
 */
export function kubeletReader(directory = SERVICE_ACCOUNT, port = KUBELET_PORT): ReadNode {
  return async (hostIp, signal) => {
    // Both are renewed while the process runs.
    const [ca, token] = await Promise.all([
      readFile(join(directory, "ca.crt"), "utf8"),
      readFile(join(directory, "token"), "utf8"),
    ]);
    return new Promise((resolve, reject) => {
      const get = request(
        {
          host: hostIp,
          port,
          path: "/metrics/resource",
          headers: { authorization: `Bearer ${token.trim()}` },
          ca,
          agent: false,
          signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
        },
        response => {
          const chunks: Buffer[] = [];
          let size = 0;
          response.on("data", (chunk: Buffer) => {
            size += chunk.length;
            if (size > MAX_ANSWER_BYTES) get.destroy(new KubeletError(`${hostIp}: over ${MAX_ANSWER_BYTES} bytes`));
            else chunks.push(chunk);
          });
          response.on("error", reject);
          response.on("end", () => {
            if (response.statusCode === 200) resolve(Buffer.concat(chunks).toString("utf8"));
            else reject(new KubeletError(`${hostIp}: /metrics/resource answered ${response.statusCode ?? 0}`));
          });
        },
      );
      get.on("error", reject);
      get.end();
    });
  };
}

/** A kubelet did not tell its numbers. */
export class KubeletError extends Error {
  readonly code = "KUBELET_METRICS_FAILED";
}
