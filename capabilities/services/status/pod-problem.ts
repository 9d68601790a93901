import { QUEUE_PROXY_CONTAINER } from "../build/pod-settings.ts";
import type { Pod, PodContainerStatus } from "../kinds.ts";

/** Why a pod does not serve, as far as Kubernetes says so. */
export type PodProblem =
  /** No node takes the pod: too little of something, a taint, a volume. */
  | { readonly kind: "unschedulable"; readonly reason: string; readonly message: string }
  /** A container of the user's ended. */
  | { readonly kind: "exited"; readonly exitCode: number; readonly message: string }
  /** A container cannot be started: image, secret, volume. */
  | { readonly kind: "waiting"; readonly reason: string; readonly message: string };

/** States that every start passes through. */
const PASSING_REASONS: ReadonlySet<string> = new Set(["ContainerCreating", "PodInitializing"]);

/**
 * The most telling problem among a revision's pods that are not ready, or undefined when they are merely starting. An
 * ended container says more than one that waits to be started again; that says more than a pod without a node.
 */
export function findPodProblem(pods: readonly Pod[]): PodProblem | undefined {
  const problems = pods
    .filter(pod => pod.metadata?.deletionTimestamp === undefined && !isPodReady(pod))
    .toSorted((a, b) => ((a.metadata?.name ?? "") < (b.metadata?.name ?? "") ? -1 : 1))
    .flatMap(problemsOf);
  return (
    problems.find(problem => problem.kind === "exited") ??
    problems.find(problem => problem.kind === "waiting") ??
    problems[0]
  );
}

export const isPodReady = (pod: Pod): boolean =>
  pod.status?.conditions?.some(condition => condition.type === "Ready" && condition.status === "True") ?? false;

function problemsOf(pod: Pod): PodProblem[] {
  const scheduled = pod.status?.conditions?.find(condition => condition.type === "PodScheduled");
  if (scheduled?.status === "False") {
    return [{ kind: "unschedulable", reason: scheduled.reason ?? "Unschedulable", message: scheduled.message ?? "" }];
  }
  return [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])].flatMap(
    problemOfContainer,
  );
}

function problemOfContainer(status: PodContainerStatus): PodProblem[] {
  const { waiting, terminated } = status.state ?? {};
  const ended = terminated ?? status.lastState?.terminated;
  // An init container that ended well has done its work.
  const failed = ended !== undefined && !(ended.exitCode === 0 && (status.ready ?? false));
  if (failed && status.name !== QUEUE_PROXY_CONTAINER) {
    const exitCode = ended.exitCode ?? 0;
    return [{ kind: "exited", exitCode, message: ended.message?.trim() || wordsFor(exitCode, ended.reason) }];
  }
  if (waiting?.reason !== undefined && !PASSING_REASONS.has(waiting.reason)) {
    return [{ kind: "waiting", reason: waiting.reason, message: waiting.message ?? "" }];
  }
  return [];
}

/** For a container that left no message and no log. */
const wordsFor = (exitCode: number, reason: string | undefined): string =>
  exitCode === 0
    ? "container exited with no error"
    : `container exited with code ${exitCode}${reason === undefined || reason === "Error" ? "" : ` (${reason})`}`;
