import { request } from "node:http";
import type { Clock } from "../../shared/clock.ts";
import type { Pod } from "./pod.ts";
import type { RevisionBackend } from "./revision-backend.ts";

/** True when a pod says that it takes requests. Never rejects; bounded in time. */
export type ReadinessProbe = (address: string) => Promise<boolean>;

export interface EarlyReadinessOptions {
  readonly clock: Clock;
  readonly probe: ReadinessProbe;
  /** Between two questions to a pod. */
  readonly periodMs: number;
}

/** Questions to one pod that are still open: more would only queue up in a network that is not there yet. */
const OPEN_PER_POD = 4;

/**
 * While requests wait, asks pods that have an address but never were ready whether they are: their own answer comes sooner than
 * kubelet, API server, endpoint controller and watch can pass it on. Asks nobody when nobody waits.
 */
export class EarlyReadiness {
  readonly #options: EarlyReadinessOptions;
  readonly #asking = new Set<RevisionBackend>();
  readonly #open = new WeakMap<Pod, number>();

  constructor(options: EarlyReadinessOptions) {
    this.#options = options;
  }

  /** Called when somebody begins to wait at a revision or its pods change while somebody does; does not block. */
  watch(backend: RevisionBackend): void {
    if (this.#asking.has(backend)) return;
    this.#asking.add(backend);
    this.#round(backend);
  }

  #round(backend: RevisionBackend): void {
    const starting = backend.waiting > 0 ? backend.startingPods : [];
    if (starting.length === 0) {
      this.#asking.delete(backend);
      return;
    }
    for (const pod of starting) this.#ask(backend, pod);
    this.#options.clock.after(this.#options.periodMs, () => this.#round(backend));
  }

  #ask(backend: RevisionBackend, pod: Pod): void {
    const open = this.#open.get(pod) ?? 0;
    if (open >= OPEN_PER_POD) return;
    this.#open.set(pod, open + 1);
    void this.#options.probe(pod.address).then(isReady => {
      this.#open.set(pod, (this.#open.get(pod) ?? 1) - 1);
      if (isReady) backend.readyByProbe(pod);
    });
  }
}

const PROBE_TIMEOUT_MS = 500;

/**
 * Asks queue-proxy over HTTP/1.1 whether the pod takes requests. It answers for the user's container.
 *
 * @param port where queue-proxy answers; the address's own port is for requests and may speak HTTP/2 only
 */
export function queueProxyProbe(port: number): ReadinessProbe {
  return address =>
    new Promise(resolve => {
      const host = address.slice(0, address.lastIndexOf(":")).replace(/^\[(.*)\]$/, "$1");
      const req = request(
        {
          host,
          port,
          path: "/",
          agent: false,
          headers: { "K-Network-Probe": "queue", "User-Agent": "fairway-gateway", Host: "queue-proxy" },
          signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
        },
        res => {
          res.resume();
          res.on("error", () => resolve(false));
          resolve(res.statusCode === 200);
        },
      );
      // Refused, unreachable or too late: not ready, which is what is expected of a pod that starts.
      req.on("error", () => resolve(false));
      req.end();
    });
}
