import { request } from "undici";
import { podUrl } from "../runtime/pod-url.ts";
import type { ClusterWriter, Lister, ObjectKey, ReconcileResult, Reconciler } from "../runtime/types.ts";
import { QUEUE_PROXY_CONTAINER, QUEUE_PROXY_PORTS } from "./build/pod-settings.ts";
import type { Pod } from "./kinds.ts";

/** Kubernetes' default. A pod's own is for requests to end, and a pod that never was ready has none. */
const UNUSED_GRACE_SECONDS = 30;
/** A queue-proxy that was told by its kubelet and has no request left is gone after about this. */
const TELL_AFTER_MS = 5_000;
const TELL_TIMEOUT_MS = 2_000;

/** Tells the queue-proxy at `ip` that its pod ends. Repeatable. Throws when it does not answer. */
export type TellPodEnds = (ip: string, signal: AbortSignal) => Promise<void>;

export interface PodEndingParts {
  readonly pods: Lister<Pod>;
  readonly writer: Pick<ClusterWriter, "delete">;
  readonly clock: { nowMs(): number };
  readonly tell: TellPodEnds;
}

/**
 * Ends pods that are deleted while they start.
 *
 * A kubelet that makes a container meanwhile stops it within milliseconds of its start. The preStop hook finds nobody listening
 * yet, and a first process that has not set up its signals never gets SIGTERM, which is sent once. Such a pod would stay for the
 * whole of its grace period. So that is made shorter at once, which a kubelet takes on before it begins to stop containers and
 * not after; and a queue-proxy that is still there a while later is told.
 */
export class PodEndingReconciler implements Reconciler {
  readonly name = "pod-ending";
  readonly #parts: PodEndingParts;

  constructor(parts: PodEndingParts) {
    this.#parts = parts;
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const { pods, writer, clock, tell } = this.#parts;
    const pod = pods.get(key);
    const { deletionTimestamp, deletionGracePeriodSeconds = 0, uid = "" } = pod?.metadata ?? {};
    if (pod === undefined || deletionTimestamp === undefined) return {};
    if (deletionGracePeriodSeconds > UNUSED_GRACE_SECONDS && !wasReady(pod)) {
      const ref = { apiVersion: "v1", kind: "Pod", ...key, uid };
      await writer.delete({ ...ref, gracePeriodSeconds: UNUSED_GRACE_SECONDS }, signal);
    }
    // The time stamp of a deletion is the end of the grace period: then its containers are killed, or its node is not there.
    const endMs = new Date(deletionTimestamp).getTime();
    const nowMs = clock.nowMs();
    if (nowMs > endMs) return {};
    const earlyMs = endMs - deletionGracePeriodSeconds * 1000 + TELL_AFTER_MS - nowMs;
    if (earlyMs > 0) return { requeueAfterMs: earlyMs };
    const ip = pod.status?.podIP;
    if (ip !== undefined && runsQueueProxy(pod)) await tell(ip, signal);
    return {};
  }
}

/** Ready is false from a pod's first moments on: that it has not changed since says that it never was true. Times are whole seconds. */
function wasReady({ status }: Pod): boolean {
  const { status: ready, lastTransitionTime } = status?.conditions?.find(({ type }) => type === "Ready") ?? {};
  if (ready === undefined || ready === "True") return ready === "True";
  return Date.parse(lastTransitionTime ?? "") - Date.parse(status?.startTime ?? "") > 1000;
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
  const { statusCode, body } = await request(podUrl(ip, port, "/terminate"), {
    signal: AbortSignal.any([signal, AbortSignal.timeout(TELL_TIMEOUT_MS)]),
  });
  await body.dump();
  if (statusCode !== 200)
    throw new Error(`the queue-proxy at ${ip} answered ${statusCode} to /terminate, expected 200`);
}
