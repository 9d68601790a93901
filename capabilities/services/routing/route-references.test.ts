import { describe, expect, it } from "vitest";
import type { Configuration, Revision, Route, TrafficTarget } from "../../../api/serving/v1/types.ts";
import { RouteReferences } from "./route-references.ts";
import { routingPatch } from "./routing-metadata.ts";

const route = (
  name: string,
  spec: TrafficTarget[],
  traffic: TrafficTarget[] = [],
  ready: "True" | "False" | "Unknown" = "True",
): Route => ({
  metadata: { namespace: "ns", name, generation: 1 },
  spec: { traffic: spec },
  status: { observedGeneration: 1, traffic, conditions: [{ type: "Ready", status: ready }] },
});
const latest = { configurationName: "a", latestRevision: true, percent: 100 };
const to = (revisionName: string): TrafficTarget => ({ revisionName, percent: 100 });
const configuration = (created: string, ready: string, routes = ""): Configuration => ({
  metadata: { namespace: "ns", name: "a", generation: 3, annotations: { "serving.knative.dev/routes": routes } },
  spec: { template: { spec: { containers: [] } } },
  status: { latestCreatedRevisionName: created, latestReadyRevisionName: ready },
});
const revision = (name: string, generation = 1, state = "active", routes = "r"): Revision => ({
  metadata: {
    namespace: "ns",
    name,
    labels: {
      "serving.knative.dev/configurationGeneration": String(generation),
      "serving.knative.dev/routingState": state,
    },
    annotations: routes === "" ? {} : { "serving.knative.dev/routes": routes },
  },
  spec: { containers: [] },
});

describe("RouteReferences", () => {
  it("tells whom a Route refers to now and did before", () => {
    const references = new RouteReferences();
    expect(references.update(route("r", [to("a-1")], [to("a-1")]), "added")).toEqual({
      revisions: [{ namespace: "ns", name: "a-1" }],
      configurations: [],
    });
    expect(references.update(route("r", [latest], [to("a-2")]), "modified")).toEqual({
      revisions: [
        { namespace: "ns", name: "a-1" },
        { namespace: "ns", name: "a-2" },
      ],
      configurations: [{ namespace: "ns", name: "a" }],
    });
    expect(references.routesOfRevision({ namespace: "ns", name: "a-1" })).toEqual([]);
    expect(references.routesOfConfiguration({ namespace: "ns", name: "a" })).toEqual([{ namespace: "ns", name: "r" }]);
    references.update(route("r", []), "deleted");
    expect(references.routesOfConfiguration({ namespace: "ns", name: "a" })).toEqual([]);
  });

  it.each<{ title: string; routes: Route[]; of: Revision; config: Configuration; names: string[] }>([
    {
      title: "the latest created one is on its way to traffic",
      routes: [route("r", [latest], [to("a-1")])],
      of: revision("a-3", 3),
      config: configuration("a-3", "a-1"),
      names: ["r"],
    },
    {
      title: "so is one of the present template that the status does not name yet",
      routes: [route("r", [latest], [to("a-1")])],
      of: revision("a-3", 3),
      config: configuration("a-1", "a-1"),
      names: ["r"],
    },
    {
      title: "one that is routed no more, while gateways follow",
      routes: [route("r", [latest], [to("a-3")], "Unknown")],
      of: revision("a-1"),
      config: configuration("a-3", "a-3"),
      names: ["r"],
    },
    {
      title: "one that is routed no more, when all gateways have followed",
      routes: [route("r", [latest], [to("a-3")])],
      of: revision("a-1"),
      config: configuration("a-3", "a-3"),
      names: [],
    },
    {
      title: "one whose Route was deleted",
      routes: [],
      of: revision("a-1"),
      config: configuration("a-3", "a-3"),
      names: [],
    },
    {
      title: "a Service's first revision, before its Route is there",
      routes: [],
      of: revision("a-3", 3),
      config: configuration("", "", "a"),
      names: ["a"],
    },
    {
      title: "the latest of a Service that routes pinned revisions alone",
      routes: [route("a", [to("a-1")], [to("a-1")])],
      of: revision("a-3", 3, "active", "a"),
      config: configuration("a-3", "a-3", "a"),
      names: [],
    },
  ])("$title: $names", ({ routes, of, config, names }) => {
    const references = new RouteReferences();
    for (const each of routes) references.update(each, "added");
    const carried = of.metadata.annotations?.["serving.knative.dev/routes"]?.split(",") ?? [];
    expect(references.routeNames(of, config, carried)).toEqual(names);
  });
});

describe("routingPatch", () => {
  const now = "2026-01-01T00:00:00Z";
  it.each<{ title: string; of: Revision; routes: string[]; patch: object | undefined }>([
    { title: "nothing new", of: revision("a"), routes: ["r"], patch: undefined },
    { title: "never routed", of: revision("a", 1, "pending", ""), routes: [], patch: undefined },
    {
      title: "another Route comes",
      of: revision("a"),
      routes: ["q", "r"],
      patch: { annotations: { "serving.knative.dev/routes": "q,r" } },
    },
    {
      title: "the last Route goes",
      of: revision("a"),
      routes: [],
      patch: {
        labels: { "serving.knative.dev/routingState": "reserve" },
        annotations: { "serving.knative.dev/routes": null, "serving.knative.dev/routingStateModified": now },
      },
    },
    {
      title: "a Route comes back",
      of: revision("a", 1, "reserve", ""),
      routes: ["r"],
      patch: {
        labels: { "serving.knative.dev/routingState": "active" },
        annotations: { "serving.knative.dev/routes": "r", "serving.knative.dev/routingStateModified": now },
      },
    },
  ])("$title", ({ of, routes, patch }) => {
    expect(routingPatch(of, routes, now)).toEqual(patch);
  });
});
