import { describe, expect, it } from "vitest";
import type { Route } from "../../../api/serving/v1/types.ts";
import { compileRoute, type CompileOptions } from "./compiled-route.ts";
import { RoutingTable } from "./routing-table.ts";

const options: CompileOptions<string> = {
  clusterDomain: "cluster.local",
  random: () => 0.5,
  revision: (namespace, name) => `${namespace}/${name}`,
};

function route(name: string, more: Partial<Route["metadata"]> & { status?: Route["status"] } = {}): Route {
  const { status, ...metadata } = more;
  return {
    metadata: {
      name,
      namespace: "default",
      uid: `uid-${name}`,
      creationTimestamp: "2026-01-01T00:00:00Z",
      ...metadata,
    },
    status: status ?? {
      url: `http://${name}.default.example.com`,
      traffic: [
        { revisionName: `${name}-00001`, percent: 0, tag: "old", url: `http://old-${name}.default.example.com` },
        { revisionName: `${name}-00002`, percent: 100, latestRevision: true },
      ],
    },
  };
}

const table = (...routes: Route[]): RoutingTable<string> =>
  new RoutingTable(routes.map(item => compileRoute(item, options)));

describe("routing by host", () => {
  const hello = table(route("hello"));

  it.each([
    ["external", "hello.default.example.com", "default/hello-00002"],
    ["external", "HELLO.default.example.com:80", "default/hello-00002"],
    ["external", "old-hello.default.example.com", "default/hello-00001"],
    ["internal", "hello.default.example.com", "default/hello-00002"],
    ["internal", "hello.default", "default/hello-00002"],
    ["internal", "hello.default.svc:8080", "default/hello-00002"],
    ["internal", "hello.default.svc.cluster.local", "default/hello-00002"],
    ["internal", "old-hello.default.svc.cluster.local", "default/hello-00001"],
  ] as const)("%s %s -> %s", (listener, host, revision) => {
    expect(hello.find(listener, host)?.deck.draw()).toBe(revision);
  });

  it.each(["hello.default", "hello.default.svc.cluster.local", "other.default.example.com", ""])(
    "knows no %j on the external listener",
    host => expect(hello.find("external", host)).toBeUndefined(),
  );

  it("keeps cluster-local Routes off the external listener, by label and by host", () => {
    const status = {
      url: "http://hello.default.svc.cluster.local",
      traffic: [{ revisionName: "hello-00001", percent: 100 }],
    };
    const byLabel = table(route("hello", { labels: { "networking.knative.dev/visibility": "cluster-local" } }));
    const byHost = table(route("hello", { status }));
    expect([...byLabel.hosts("external")]).toEqual([]);
    expect([...byHost.hosts("external")]).toEqual([]);
    expect(byHost.find("internal", "hello.default.svc.cluster.local")?.deck.draw()).toBe("default/hello-00001");
  });

  it("serves nothing for a Route without traffic", () => {
    const empty = table(route("hello", { status: { url: "http://hello.default.example.com" } }));
    expect(empty.find("external", "hello.default.example.com")).toBeUndefined();
  });

  it("gives a host that two Routes claim to the older one, whatever the order they are read in", () => {
    const older = route("older", {
      creationTimestamp: "2025-01-01T00:00:00Z",
      status: { url: "http://same.example.com", traffic: [{ revisionName: "older-00001", percent: 100 }] },
    });
    const newer = route("newer", {
      status: { url: "http://same.example.com", traffic: [{ revisionName: "newer-00001", percent: 100 }] },
    });
    for (const both of [table(older, newer), table(newer, older)])
      expect(both.find("external", "same.example.com")?.deck.draw()).toBe("default/older-00001");
  });
});
