import { request } from "undici";
import type { Lister, ObjectKey, ReconcileResult, Reconciler } from "../runtime/types.ts";
import { QUEUE_PROXY_CONTAINER, QUEUE_PROXY_PORTS } from "./build/pod-settings.ts";
import type { Pod } from "./kinds.ts";

/** A queue-proxy that was told by its kubelet and has no request left is gone after about this. */
const TELL_AFTER_MS = 5_000;
const TELL_TIMEOUT_MS = 2_000;

/** Tells the queue-proxy at `ip` that its pod ends. Repeatable. Throws when it does not answer. */
export type TellPodEnds = (ip: string, signal: AbortSignal) => Promise<void>;

/**
 * Tells queue-proxies of pods that are still there a while after their deletion that they end.
 *
 * A pod that is deleted while its first container is being made has that container stopped within milliseconds of its start: the
 * preStop hook finds nobody listening, and a first process that has not yet set up its signals never gets SIGTERM. A kubelet sends
 * neither a second time, and such a pod would stay for the whole of its grace period.
 */
export class PodEndingReconciler implements Reconciler {
  readonly name = "pod-ending";
  readonly #pods: Lister<Pod>;
  readonly #clock: { nowMs(): number };
  readonly #tell: TellPodEnds;

  constructor(pods: Lister<Pod>, clock: { nowMs(): number }, tell: TellPodEnds) {
    this.#pods = pods;
    this.#clock = clock;
    this.#tell = tell;
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const pod = this.#pods.get(key);
    const deletedAtMs = deletedAt(pod);
    if (pod === undefined || deletedAtMs === undefined || !runsQueueProxy(pod)) return {};
    const earlyMs = deletedAtMs + TELL_AFTER_MS - this.#clock.nowMs();
    if (earlyMs > 0) return { requeueAfterMs: earlyMs };
    const ip = pod.status?.podIP;
    if (ip !== undefined) await this.#tell(ip, signal);
    return {};
  }
}

/** A deletion's time stamp is the end of the grace period. */
function deletedAt(pod: Pod | undefined): number | undefined {
  const { deletionTimestamp, deletionGracePeriodSeconds } = pod?.metadata ?? {};
  if (deletionTimestamp === undefined) return undefined;
  return new Date(deletionTimestamp).getTime() - (deletionGracePeriodSeconds ?? 0) * 1000;
}

const runsQueueProxy = (pod: Pod): boolean =>
  pod.status?.initContainerStatuses?.some(
    ({ name, state }) => name === QUEUE_PROXY_CONTAINER && state?.running !== undefined,
  ) ?? false;

/** As the kubelet's call of the queue-proxy's own preStop hook. */
export async function tellPodEnds(
  ip: string,
  signal: AbortSignal,
  port: number = QUEUE_PROXY_PORTS.admin,
): Promise<void> {
  const host = ip.includes(":") ? `[${ip}]` : ip;
  const { statusCode, body } = await request(`http://${host}:${port}/terminate`, {
    signal: AbortSignal.any([signal, AbortSignal.timeout(TELL_TIMEOUT_MS)]),
  });
  await body.dump();
  if (statusCode !== 200)
    throw new Error(`the queue-proxy at ${ip} answered ${statusCode} to /terminate, expected 200`);
}
