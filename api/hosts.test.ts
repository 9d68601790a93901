import { describe, expect, it } from "vitest";
import { clusterHosts, hostOfUrl, isClusterHost, normalizeHost, parseClusterHost } from "./hosts.ts";

describe("hosts", () => {
  it.each([
    ["Hello.Default.Example.COM", "hello.default.example.com"],
    ["hello.default.example.com:8080", "hello.default.example.com"],
    ["hello.default.example.com.", "hello.default.example.com"],
    ["hello.default.example.com.:80", "hello.default.example.com"],
    ["[::1]:80", "[::1]"],
    ["", ""],
  ])("looks %j up as %j", (authority, host) => expect(normalizeHost(authority)).toBe(host));

  it("knows the names of a Service inside the cluster", () => {
    expect(clusterHosts("hello", "default", "cluster.local")).toEqual([
      "hello.default",
      "hello.default.svc",
      "hello.default.svc.cluster.local",
    ]);
    for (const host of clusterHosts("hello", "default", "corp.lan"))
      expect(parseClusterHost(host, "corp.lan")).toEqual({ service: "hello", namespace: "default" });
  });

  it.each(["hello", "hello.default.svc.other.lan", "hello.default.example.com", ".default", "hello."])(
    "takes %j for no Service inside the cluster",
    host => expect(parseClusterHost(host, "cluster.local")).toBeUndefined(),
  );

  it("tells cluster hosts from public ones", () => {
    expect(isClusterHost("a.b.svc.cluster.local", "cluster.local")).toBe(true);
    expect(isClusterHost("a.b.svc", "cluster.local")).toBe(true);
    expect(isClusterHost("a.b.example.com", "cluster.local")).toBe(false);
  });

  it("reads the host of a status URL", () => {
    expect(hostOfUrl("http://Hello.default.example.com")).toBe("hello.default.example.com");
    expect(hostOfUrl("https://hello.default.example.com:8443/x")).toBe("hello.default.example.com");
    expect(hostOfUrl("")).toBeUndefined();
    expect(hostOfUrl("no url")).toBeUndefined();
  });
});
