import { describe, expect, it } from "vitest";
import { conditionFalse, conditionTrue, conditionUnknown, type Condition } from "../../../api/conditions.ts";
import type { Deployment, Pod } from "../kinds.ts";
import { judgeRevision, type RevisionObservation } from "./revision-conditions.ts";

const deployment = (replicas: number, readyReplicas: number, ...conditions: object[]): Deployment => ({
  spec: { replicas },
  status: { readyReplicas, conditions },
});
const base: RevisionObservation = {
  deployment: { kind: "present", deployment: deployment(1, 0) },
  pods: [],
  scaling: undefined,
  minScale: 0,
  initialScale: 1,
  initialScaleReached: false,
  waitForNodes: false,
  previous: undefined,
};
const crashed: Pod = {
  metadata: { name: "p" },
  status: {
    containerStatuses: [{ name: "user-container", lastState: { terminated: { exitCode: 5, message: "boom" } } }],
  },
};
const starting: Pod = { metadata: { name: "p" }, status: { containerStatuses: [{ name: "user-container" }] } };
const unpullable: Pod = {
  metadata: { name: "p" },
  status: {
    containerStatuses: [
      { name: "user-container", state: { waiting: { reason: "ImagePullBackOff", message: "Back-off pulling x" } } },
    ],
  },
};
const homeless: Pod = {
  metadata: { name: "p" },
  status: {
    conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "Insufficient cpu" }],
  },
};
const before = (type: string, status: "True" | "False" | "Unknown", reason?: string): Condition => ({
  type,
  status,
  ...(reason === undefined ? {} : { reason, message: "as before" }),
});
const deploying = conditionUnknown("Deploying");
const exited = conditionFalse("ExitCode5", "Container failed with: boom");

describe("judgeRevision", () => {
  it.each<{
    title: string;
    observed: Partial<RevisionObservation>;
    resources: object;
    container: object;
    reached?: boolean;
  }>([
    {
      title: "nothing made yet",
      observed: { deployment: { kind: "missing" } },
      resources: deploying,
      container: deploying,
    },
    {
      title: "the Deployment's name is taken",
      observed: { deployment: { kind: "foreign", name: "a-deployment" } },
      resources: conditionFalse("NotOwned", 'Deployment "a-deployment" exists already and belongs to something else.'),
      container: deploying,
    },
    { title: "pods start", observed: { pods: [starting] }, resources: deploying, container: deploying },
    {
      title: "the first pod is ready",
      observed: { deployment: { kind: "present", deployment: deployment(1, 1) } },
      resources: conditionTrue(),
      container: conditionTrue(),
      reached: true,
    },
    {
      title: "KS#16649: three of twenty initial pods are ready",
      observed: { deployment: { kind: "present", deployment: deployment(20, 3) }, initialScale: 20 },
      resources: conditionUnknown("Deploying", "3 of 20 pods are ready."),
      container: conditionTrue(),
      reached: false,
    },
    {
      title: "min scale above initial scale counts too",
      observed: { deployment: { kind: "present", deployment: deployment(5, 4) }, minScale: 5 },
      resources: conditionUnknown("Deploying", "4 of 5 pods are ready."),
      container: conditionTrue(),
      reached: false,
    },
    {
      title: "what the autoscaler wants ready before traffic moves counts too",
      observed: {
        deployment: { kind: "present", deployment: deployment(4, 3) },
        scaling: { activity: { phase: "activating" }, wanted: 4, mode: "proxy", readyBeforeTraffic: 4 },
      },
      resources: conditionUnknown("Deploying", "3 of 4 pods are ready."),
      container: conditionTrue(),
      reached: false,
    },
    {
      title: "a new operator, whose autoscaler has not looked yet, goes by what was asked for",
      observed: { deployment: { kind: "present", deployment: deployment(4, 3) } },
      resources: conditionUnknown("Deploying", "3 of 4 pods are ready."),
      container: conditionTrue(),
      reached: false,
    },
    {
      title: "the autoscaler wants no more than the initial scale",
      observed: {
        deployment: { kind: "present", deployment: deployment(4, 3) },
        scaling: { activity: { phase: "active" }, wanted: 4, mode: "proxy" },
      },
      resources: conditionTrue(),
      container: conditionTrue(),
      reached: true,
    },
    {
      title: "the autoscaler saw the initial scale ready, and scaled down before the Deployment's status said so",
      observed: {
        deployment: { kind: "present", deployment: deployment(1, 1) },
        initialScale: 3,
        scaling: { activity: { phase: "active" }, wanted: 1, mode: "proxy" },
      },
      resources: conditionTrue(),
      container: conditionTrue(),
      reached: true,
    },
    {
      title: "initial scale zero is ready without a pod",
      observed: { deployment: { kind: "present", deployment: deployment(0, 0) }, initialScale: 0 },
      resources: conditionTrue(),
      container: conditionTrue(),
      reached: true,
    },
    {
      title: "the app crashes at its first start",
      observed: { pods: [crashed] },
      resources: deploying,
      container: exited,
      reached: false,
    },
    {
      title: "the image cannot be pulled",
      observed: { pods: [unpullable] },
      resources: conditionFalse("ImagePullBackOff", "Back-off pulling x"),
      container: deploying,
    },
    {
      title: "no node has room",
      observed: { pods: [homeless] },
      resources: conditionFalse("Unschedulable", "Insufficient cpu"),
      container: deploying,
    },
    {
      title: "no node has room, where a cluster autoscaler will make some",
      observed: { pods: [homeless], waitForNodes: true },
      resources: deploying,
      container: deploying,
    },
    {
      title: "a quota lets no pod be made",
      observed: {
        deployment: {
          kind: "present",
          deployment: deployment(1, 0, {
            type: "ReplicaFailure",
            status: "True",
            reason: "FailedCreate",
            message: "forbidden: exceeded quota: q",
          }),
        },
      },
      resources: conditionFalse("FailedCreate", "forbidden: exceeded quota: q"),
      container: deploying,
    },
    {
      title: "the pod's own reason beats the deadline",
      observed: {
        deployment: {
          kind: "present",
          deployment: deployment(1, 0, { type: "Progressing", status: "False", reason: "ProgressDeadlineExceeded" }),
        },
        pods: [unpullable],
      },
      resources: conditionFalse("ImagePullBackOff", "Back-off pulling x"),
      container: deploying,
    },
    {
      title: "KS#12330: what failed before is forgotten when the pod becomes ready",
      observed: {
        deployment: { kind: "present", deployment: deployment(1, 1) },
        previous: [
          before("ResourcesAvailable", "False", "ProgressDeadlineExceeded"),
          before("ContainerHealthy", "False", "ExitCode1"),
        ],
      },
      resources: conditionTrue(),
      container: conditionTrue(),
      reached: true,
    },
    {
      title: "a new attempt is not judged by the last one",
      observed: {
        pods: [starting],
        initialScaleReached: true,
        previous: [before("ContainerHealthy", "False", "ExitCode1")],
      },
      resources: conditionTrue(),
      container: conditionTrue(),
      reached: true,
    },
    {
      title: "at zero the last failure stays visible",
      observed: {
        deployment: { kind: "present", deployment: deployment(0, 0) },
        initialScaleReached: true,
        previous: [before("ContainerHealthy", "False", "ExitCode1")],
      },
      resources: conditionTrue(),
      container: { status: "False", reason: "ExitCode1" },
      reached: true,
    },
    {
      title: "given up before it was ever ready",
      observed: { deployment: { kind: "present", deployment: deployment(0, 0) } },
      resources: conditionFalse("ProgressDeadlineExceeded", "Initial scale was never reached."),
      container: deploying,
      reached: false,
    },
    {
      title: "some pods serve while others cannot be scheduled",
      observed: {
        deployment: {
          kind: "present",
          deployment: deployment(9, 2, { type: "Progressing", status: "False", reason: "ProgressDeadlineExceeded" }),
        },
        pods: [crashed],
        initialScaleReached: true,
      },
      resources: conditionTrue(),
      container: conditionTrue(),
      reached: true,
    },
    {
      title: "all pods of a running revision crash",
      observed: { pods: [crashed], initialScaleReached: true },
      resources: conditionTrue(),
      container: exited,
      reached: true,
    },
  ])("$title", ({ observed, resources, container, reached }) => {
    const outlook = judgeRevision({ ...base, ...observed });
    expect(outlook.conditions.ResourcesAvailable).toMatchObject(resources);
    expect(outlook.conditions.ContainerHealthy).toMatchObject(container);
    if (reached !== undefined) expect(outlook.initialScaleReached).toBe(reached);
  });

  it.each<{ title: string; observed: Partial<RevisionObservation>; status: string; reason?: string }>([
    { title: "no Deployment", observed: { deployment: { kind: "missing" } }, status: "Unknown", reason: "Deploying" },
    {
      title: "the autoscaler says inactive",
      observed: {
        scaling: { activity: { phase: "inactive", reason: "no-traffic" }, wanted: 0, mode: "proxy" },
      },
      status: "False",
      reason: "NoTraffic",
    },
    {
      title: "the autoscaler gave up",
      observed: { scaling: { activity: { phase: "inactive", reason: "timed-out" }, wanted: 0, mode: "proxy" } },
      status: "False",
      reason: "TimedOut",
    },
    {
      title: "pods are wanted",
      observed: { scaling: { activity: { phase: "activating" }, wanted: 1, mode: "proxy" } },
      status: "Unknown",
      reason: "Queued",
    },
    {
      title: "the autoscaler says active",
      observed: { scaling: { activity: { phase: "active" }, wanted: 1, mode: "serve" } },
      status: "True",
    },
    {
      title: "without the autoscaler: at zero",
      observed: { deployment: { kind: "present", deployment: deployment(0, 0) } },
      status: "False",
      reason: "NoTraffic",
    },
    { title: "without the autoscaler: starting", observed: {}, status: "Unknown", reason: "Queued" },
    {
      title: "without the autoscaler: ready",
      observed: { deployment: { kind: "present", deployment: deployment(2, 1) } },
      status: "True",
    },
  ])("Active when $title", ({ observed, status, reason }) => {
    const { Active } = judgeRevision({ ...base, ...observed }).conditions;
    expect([Active.status, Active.reason]).toEqual([status, reason]);
  });

  it("says under Active what bounds the number", () => {
    const note = { reason: "MaxScaleReached", message: "More than max scale (3) is wanted." };
    const scaling = { activity: { phase: "active" }, wanted: 3, mode: "proxy", note } as const;
    expect(judgeRevision({ ...base, scaling }).conditions.Active).toEqual({ status: "True", ...note });
  });

  it("shows the autoscaler's number, and the Deployment's without it", () => {
    const scaling = { activity: { phase: "active" }, wanted: 7, mode: "proxy" } as const;
    const present = { kind: "present", deployment: deployment(3, 2) } as const;
    expect(judgeRevision({ ...base, deployment: present, scaling })).toMatchObject({
      actualReplicas: 2,
      desiredReplicas: 7,
    });
    expect(judgeRevision({ ...base, deployment: present }).desiredReplicas).toBe(3);
  });
});
