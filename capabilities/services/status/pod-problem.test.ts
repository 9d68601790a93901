import { describe, expect, it } from "vitest";
import type { Pod } from "../kinds.ts";
import { findPodProblem } from "./pod-problem.ts";

type Status = NonNullable<Pod["status"]>;
const pod = (status: Status, name = "p-1"): Pod => ({ metadata: { name }, status });
const container = (state: object, lastState: object = {}, name = "user-container") => ({ name, state, lastState });

describe("findPodProblem", () => {
  it.each<{ title: string; pods: Pod[]; problem: object | undefined }>([
    {
      title: "a pod that is starting has none",
      pods: [pod({ containerStatuses: [container({ waiting: { reason: "ContainerCreating" } })] })],
      problem: undefined,
    },
    {
      title: "a running container that is not ready yet has none",
      pods: [pod({ containerStatuses: [container({ running: {} })] })],
      problem: undefined,
    },
    {
      title: "no node",
      pods: [
        pod({
          conditions: [
            { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/1 nodes: Insufficient cpu." },
          ],
        }),
      ],
      problem: { kind: "unschedulable", reason: "Unschedulable", message: "0/1 nodes: Insufficient cpu." },
    },
    {
      title: "an image that cannot be pulled",
      pods: [pod({ containerStatuses: [container({ waiting: { reason: "ErrImagePull", message: "not found" } })] })],
      problem: { kind: "waiting", reason: "ErrImagePull", message: "not found" },
    },
    {
      title: "a crash, while the container waits for its next start",
      pods: [
        pod({
          containerStatuses: [
            container(
              { waiting: { reason: "CrashLoopBackOff", message: "back-off 10s" } },
              { terminated: { exitCode: 5, message: "Crashed on purpose\n" } },
            ),
          ],
        }),
      ],
      problem: { kind: "exited", exitCode: 5, message: "Crashed on purpose" },
    },
    {
      title: "a crash, while the container runs again",
      pods: [
        pod({
          containerStatuses: [container({ running: {} }, { terminated: { exitCode: 137, reason: "OOMKilled" } })],
        }),
      ],
      problem: { kind: "exited", exitCode: 137, message: "container exited with code 137 (OOMKilled)" },
    },
    {
      title: "an app that ends without an error",
      pods: [pod({ containerStatuses: [container({ terminated: { exitCode: 0, reason: "Completed" } })] })],
      problem: { kind: "exited", exitCode: 0, message: "container exited with no error" },
    },
    {
      title: "the queue-proxy's own end is not the user's",
      pods: [pod({ containerStatuses: [container({ running: {} }, { terminated: { exitCode: 1 } }, "queue-proxy")] })],
      problem: undefined,
    },
    {
      title: "an init container that has done its work is well, one that failed is not",
      pods: [
        pod({
          initContainerStatuses: [
            { ...container({ terminated: { exitCode: 0 } }, {}, "init-1"), ready: true },
            { ...container({ terminated: { exitCode: 3, message: "no schema" } }, {}, "init-2"), ready: false },
          ],
        }),
      ],
      problem: { kind: "exited", exitCode: 3, message: "no schema" },
    },
    {
      title: "of several pods the one whose container ended tells most",
      pods: [
        pod({ conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "full" }] }, "a"),
        pod({ containerStatuses: [container({ waiting: { reason: "ErrImagePull", message: "gone" } })] }, "b"),
        pod({ containerStatuses: [container({ terminated: { exitCode: 1, message: "boom" } })] }, "c"),
      ],
      problem: { kind: "exited", exitCode: 1, message: "boom" },
    },
    {
      title: "ready pods and pods being deleted do not count",
      pods: [
        pod({
          conditions: [{ type: "Ready", status: "True" }],
          containerStatuses: [container({ running: {} }, { terminated: { exitCode: 1, message: "once" } })],
        }),
        {
          metadata: { name: "gone", deletionTimestamp: "2026-01-01T00:00:00Z" },
          status: { containerStatuses: [container({ terminated: { exitCode: 1 } })] },
        },
      ],
      problem: undefined,
    },
  ])("$title", ({ pods, problem }) => {
    expect(findPodProblem(pods)).toEqual(problem);
  });
});
