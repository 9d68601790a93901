import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { addressPlan } from "./address-plan.ts";
import { boxPlan } from "./box-plan.ts";
import { configFiles, kubeconfig, type ConfigInputs } from "./config-files.ts";
import { clusterPaths } from "./paths.ts";

const inputs: ConfigInputs = {
  name: "two",
  addresses: addressPlan(1),
  paths: clusterPaths("two"),
  binaries: "/cache/bin",
  runc: "/usr/sbin/runc",
  snapshotter: "overlayfs",
  cgroup: "fairway-cluster-two",
};
const plan = boxPlan({ ...inputs, systemPath: "/usr/sbin" });
const files = configFiles(inputs);

function file(name: string): string {
  const content = files.get(name);
  if (content === undefined) throw new Error(`no file ${name}`);
  return content;
}

describe("boxPlan", () => {
  it("has every component of a node and a control plane, each with a log of its own", () => {
    expect(plan.components.map(component => component.name)).toEqual([
      "etcd",
      "containerd",
      "kube-apiserver",
      "kube-controller-manager",
      "kube-scheduler",
      "kubelet",
      "kube-proxy",
      "coredns",
    ]);
    expect(new Set(plan.components.map(component => component.logFile)).size).toBe(plan.components.length);
  });

  it("starts programs of the cache, with configuration files that exist", () => {
    const known = [...files.keys(), "controller-manager", "scheduler", "kubelet", "proxy", "coredns"];
    for (const component of plan.components) {
      expect(component.command[0]).toBe(`/cache/bin/${component.name}`);
      const configPaths = component.command.flatMap(argument => argument.split(`${inputs.paths.config}/`).slice(1));
      for (const path of configPaths) expect(known).toContain(path.replace(/\.kubeconfig$/, ""));
    }
  });

  it("has the addresses of its cluster's index", () => {
    expect(plan.network).toEqual({
      hostLink: "fairway1",
      hostAddress: "10.90.0.5/30",
      nodeAddress: "10.90.0.6/30",
      podRange: "10.91.1.0/24",
      serviceRange: "10.92.16.0/20",
    });
  });
});

describe("configFiles", () => {
  it("keeps pods in the cluster's own cgroup", () => {
    expect(parse(file("kubelet.yaml"))).toMatchObject({ cgroupRoot: "/fairway-cluster-two" });
  });

  it("points pods at the name server on the node's address", () => {
    expect(parse(file("kubelet.yaml"))).toMatchObject({ clusterDNS: ["10.90.0.6"], clusterDomain: "cluster.local" });
    expect(file("Corefile")).toContain("bind 10.90.0.6");
  });

  it("gives the name server the rights it needs and its usual Service", () => {
    const objects = parseAllDocuments(file("system.yaml")).map(document => document.toJS() as { kind: string });
    expect(objects.map(object => object.kind)).toEqual([
      "ClusterRole",
      "ClusterRoleBinding",
      "Service",
      "EndpointSlice",
    ]);
    expect(objects[2]).toMatchObject({ spec: { clusterIP: "10.92.16.10" } });
  });

  it("gives pods the addresses of the pod range", () => {
    expect(JSON.parse(file("cni/10-bridge.conflist"))).toMatchObject({
      plugins: [{ type: "bridge", ipam: { ranges: [[{ subnet: "10.91.1.0/24" }]] } }, { type: "portmap" }],
    });
  });
});

describe("kubeconfig", () => {
  it("holds the credentials themselves", () => {
    const config: unknown = parse(
      kubeconfig({ name: "two", nodeIp: "10.90.0.6", authority: "CA", certificate: "CERT", key: "KEY" }),
    );
    expect(config).toMatchObject({
      "current-context": "two",
      clusters: [{ cluster: { server: "https://10.90.0.6:6443", "certificate-authority-data": "Q0E=" } }],
      users: [{ user: { "client-certificate-data": "Q0VSVA==", "client-key-data": "S0VZ" } }],
    });
  });
});
