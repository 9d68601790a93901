import {
  conditionFalse,
  conditionTrue,
  conditionUnknown,
  type Condition,
  type Observation,
} from "../../../api/conditions.ts";
import type { Deployment, Pod } from "../kinds.ts";
import type { ScalingStatus } from "../revision-scaling.ts";
import { findPodProblem, type PodProblem } from "./pod-problem.ts";

export const REASON = {
  deploying: "Deploying",
  notOwned: "NotOwned",
  progressDeadlineExceeded: "ProgressDeadlineExceeded",
  noTraffic: "NoTraffic",
  queued: "Queued",
  timedOut: "TimedOut",
} as const;

/** What is there of a revision's Deployment. */
export type DeploymentState =
  | { readonly kind: "missing" }
  /** The name is taken by an object of someone else. */
  | { readonly kind: "foreign"; readonly name: string }
  /** The API server does not take it: a field it refuses, a policy, a quota of Deployments. */
  | { readonly kind: "refused"; readonly reason: string; readonly message: string }
  | { readonly kind: "present"; readonly deployment: Deployment };

export interface RevisionObservation {
  readonly deployment: DeploymentState;
  /** All pods of the revision. */
  readonly pods: readonly Pod[];
  readonly scaling: ScalingStatus | undefined;
  readonly minScale: number;
  readonly initialScale: number;
  /** As stored in the Revision's status. */
  readonly initialScaleReached: boolean;
  /** A pod without a node is no failure: a cluster autoscaler will make room. */
  readonly waitForNodes: boolean;
  readonly previous: readonly Condition[] | undefined;
}

export interface RevisionOutlook {
  readonly conditions: {
    readonly ResourcesAvailable: Observation;
    readonly ContainerHealthy: Observation;
    readonly Active: Observation;
  };
  readonly initialScaleReached: boolean;
  /** Undefined while there is no Deployment. */
  readonly actualReplicas: number | undefined;
  readonly desiredReplicas: number | undefined;
}

/**
 * What can be said of a revision now. Nothing but the initial scale is remembered: a failure lasts as long as it can be seen
 * (or, while there is no pod to look at, until there is one), so a revision that failed once becomes ready by itself.
 */
export function judgeRevision(o: RevisionObservation): RevisionOutlook {
  if (o.deployment.kind !== "present") {
    return {
      conditions: {
        ResourcesAvailable: withoutDeployment(o.deployment),
        ContainerHealthy: conditionUnknown(REASON.deploying),
        Active: conditionUnknown(REASON.deploying),
      },
      initialScaleReached: o.initialScaleReached,
      actualReplicas: undefined,
      desiredReplicas: undefined,
    };
  }
  const { deployment } = o.deployment;
  const replicas = deployment.spec?.replicas ?? 1;
  const ready = deployment.status?.readyReplicas ?? 0;
  // Before the autoscaler has looked, what it asked for in an earlier life counts.
  const asked = o.scaling === undefined ? replicas : (o.scaling.readyBeforeTraffic ?? 0);
  const needed = Math.max(o.minScale, o.initialScale, asked);
  // The autoscaler counts pods, the Deployment's status comes later: it may have scaled down before this was ever seen here.
  const seenByAutoscaler = o.scaling !== undefined && o.scaling.readyBeforeTraffic === undefined;
  const reached = o.initialScaleReached || seenByAutoscaler || ready >= needed;
  const problem = findPodProblem(o.pods);
  const look: Look = {
    deployment,
    replicas,
    ready,
    needed,
    reached,
    problem: o.waitForNodes && problem?.kind === "unschedulable" ? undefined : problem,
    hasPods: o.pods.some(pod => pod.metadata?.deletionTimestamp === undefined),
    before: type => o.previous?.find(condition => condition.type === type),
  };
  return {
    conditions: {
      ResourcesAvailable: resourcesAvailable(look),
      ContainerHealthy: containerHealthy(look),
      Active: active(look, o),
    },
    initialScaleReached: reached,
    actualReplicas: ready,
    desiredReplicas: o.scaling?.wanted ?? replicas,
  };
}

interface Look {
  readonly deployment: Deployment;
  readonly replicas: number;
  readonly ready: number;
  /** Ready pods without which no traffic moves here for the first time. */
  readonly needed: number;
  readonly reached: boolean;
  readonly problem: PodProblem | undefined;
  readonly hasPods: boolean;
  readonly before: (type: string) => Condition | undefined;
}

function withoutDeployment(state: Exclude<DeploymentState, { kind: "present" }>): Observation {
  switch (state.kind) {
    case "missing":
      return conditionUnknown(REASON.deploying);
    case "foreign":
      return conditionFalse(
        REASON.notOwned,
        `Deployment "${state.name}" exists already and belongs to something else.`,
      );
    case "refused":
      return conditionFalse(state.reason, state.message);
  }
}

function resourcesAvailable(look: Look): Observation {
  // Some pods serve: that others cannot be added is the autoscaler's news, not the revision's end.
  if (look.reached && look.ready > 0) return conditionTrue();
  const failure = podFailure(look.problem) ?? deploymentFailure(look.deployment);
  if (failure !== undefined) return failure;
  const before = look.before("ResourcesAvailable");
  if (!look.hasPods && before?.status === "False" && before.reason !== REASON.notOwned) return before;
  if (look.reached) return conditionTrue();
  return look.replicas === 0
    ? conditionFalse(REASON.progressDeadlineExceeded, "Initial scale was never reached.")
    : conditionUnknown(
        REASON.deploying,
        look.needed > 1 ? `${look.ready} of ${look.needed} pods are ready.` : undefined,
      );
}

const podFailure = (problem: PodProblem | undefined): Observation | undefined =>
  problem === undefined || problem.kind === "exited" ? undefined : conditionFalse(problem.reason, problem.message);

function deploymentFailure(deployment: Deployment): Observation | undefined {
  const find = (type: string, status: string) =>
    deployment.status?.conditions?.find(condition => condition.type === type && condition.status === status);
  const failure = find("ReplicaFailure", "True") ?? find("Progressing", "False");
  return failure === undefined
    ? undefined
    : conditionFalse(failure.reason ?? REASON.progressDeadlineExceeded, failure.message ?? "");
}

function containerHealthy(look: Look): Observation {
  if (look.ready > 0) return conditionTrue();
  if (look.problem?.kind === "exited") {
    return conditionFalse(`ExitCode${look.problem.exitCode}`, `Container failed with: ${look.problem.message}`);
  }
  const before = look.before("ContainerHealthy");
  if (!look.hasPods && before?.status === "False") return before;
  return look.reached ? conditionTrue() : conditionUnknown(REASON.deploying);
}

const QUEUED = conditionUnknown(REASON.queued, "Requests wait until enough pods are ready.");
const NO_TRAFFIC = conditionFalse(REASON.noTraffic, "The revision receives no requests.");
const TIMED_OUT = conditionFalse(REASON.timedOut, "No pod became ready in time.");

function active(look: Look, o: RevisionObservation): Observation {
  switch (o.scaling?.activity.phase) {
    case "activating":
      return QUEUED;
    case "active":
      return conditionTrue(o.scaling.note?.reason, o.scaling.note?.message);
    case "inactive":
      return o.scaling.activity.reason === "timed-out" ? TIMED_OUT : NO_TRAFFIC;
    case undefined: {
      if (look.replicas === 0) return NO_TRAFFIC;
      const threshold = Math.max(o.minScale, o.initialScaleReached ? 1 : o.initialScale);
      return look.ready < threshold ? QUEUED : conditionTrue();
    }
  }
}
