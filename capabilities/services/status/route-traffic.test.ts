import { describe, expect, it } from "vitest";
import type { Configuration, Revision, Route, TrafficTarget } from "../../../api/serving/v1/types.ts";
import { resolveTraffic } from "./route-traffic.ts";

type Status = "True" | "False" | "Unknown";
const revision = (name: string, ready: Status, service = "hello"): Revision => ({
  metadata: { name, generation: 1, labels: { "serving.knative.dev/service": service } },
  spec: { containers: [] },
  status: { observedGeneration: 1, conditions: [{ type: "Ready", status: ready, message: `it is ${ready}` }] },
});
const configuration = (name: string, latest: string | undefined, ready: Status = "True"): Configuration => ({
  metadata: { name },
  spec: { template: { spec: { containers: [] } } },
  status: {
    ...(latest === undefined ? {} : { latestReadyRevisionName: latest }),
    conditions: [{ type: "Ready", status: ready }],
  },
});
const resolve = (traffic: TrafficTarget[], objects: { configurations?: Configuration[]; revisions?: Revision[] }) => {
  const route: Route = {
    metadata: { name: "hello", labels: { "serving.knative.dev/service": "hello" } },
    spec: { traffic },
  };
  return resolveTraffic(route, {
    configuration: name => objects.configurations?.find(c => c.metadata.name === name),
    revision: name => objects.revisions?.find(r => r.metadata.name === name),
  });
};
const latest = { configurationName: "hello", latestRevision: true, percent: 100 };

describe("resolveTraffic", () => {
  it("takes the latest ready revision, and leaves the Configuration out of the status", () => {
    expect(
      resolve([latest], {
        configurations: [configuration("hello", "hello-00002")],
        revisions: [revision("hello-00002", "True")],
      }),
    ).toEqual({
      kind: "assigned",
      traffic: [{ revisionName: "hello-00002", latestRevision: true, percent: 100 }],
    });
  });

  it("keeps pinned and latest apart although they are the same revision, and sums equal ones", () => {
    const traffic = [
      { ...latest, percent: 20 },
      { revisionName: "hello-00001", percent: 30 },
      { revisionName: "hello-00001", percent: 30 },
      { revisionName: "hello-00001", percent: 20, tag: "old", latestRevision: false },
    ];
    expect(
      resolve(traffic, {
        configurations: [configuration("hello", "hello-00001")],
        revisions: [revision("hello-00001", "True")],
      }),
    ).toEqual({
      kind: "assigned",
      traffic: [
        { revisionName: "hello-00001", latestRevision: true, percent: 20 },
        { revisionName: "hello-00001", latestRevision: false, percent: 60 },
        { revisionName: "hello-00001", latestRevision: false, percent: 20, tag: "old" },
      ],
    });
  });

  it.each<{
    title: string;
    traffic: TrafficTarget[];
    objects: Parameters<typeof resolve>[1];
    condition: object;
  }>([
    {
      title: "no revision was ready yet",
      traffic: [latest],
      objects: { configurations: [configuration("hello", undefined, "Unknown")] },
      condition: {
        status: "Unknown",
        reason: "RevisionMissing",
        message: 'Configuration "hello" waits for its first Revision to become ready.',
      },
    },
    {
      title: "the first revision failed",
      traffic: [latest],
      objects: { configurations: [configuration("hello", undefined, "False")] },
      condition: {
        status: "False",
        reason: "RevisionMissing",
        message: 'Configuration "hello" has no ready Revision.',
      },
    },
    {
      title: "a pinned revision does not exist",
      traffic: [{ revisionName: "gone", percent: 100 }],
      objects: {},
      condition: {
        status: "False",
        reason: "RevisionMissing",
        message: 'Revision "gone" referenced in traffic not found.',
      },
    },
    {
      title: "the Configuration does not exist",
      traffic: [latest],
      objects: {},
      condition: { status: "False", reason: "ConfigurationMissing" },
    },
    {
      title: "a pinned revision is of another Service",
      traffic: [{ revisionName: "other-1", percent: 100 }],
      objects: { revisions: [revision("other-1", "True", "other")] },
      condition: {
        status: "False",
        reason: "RevisionNotOwned",
        message: 'Revision "other-1" belongs to Service "other", not Service "hello".',
      },
    },
    {
      title: "the failed one is told before the one that is not ready yet",
      traffic: [
        { revisionName: "a", percent: 50 },
        { revisionName: "b", percent: 50 },
      ],
      objects: { revisions: [revision("a", "Unknown"), revision("b", "False")] },
      condition: { status: "False", reason: "RevisionMissing", message: 'Revision "b" is not ready: it is False' },
    },
  ])("is unresolved when $title", ({ traffic, objects, condition }) => {
    expect(resolve(traffic, objects)).toMatchObject({ kind: "unresolved", condition });
  });
});
