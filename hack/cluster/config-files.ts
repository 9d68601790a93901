import { join } from "node:path";
import { stringify } from "yaml";
import type { AddressPlan } from "./address-plan.ts";
import type { ClusterPaths } from "./paths.ts";

export const CLUSTER_DOMAIN = "cluster.local";
export const PAUSE_IMAGE = "fairway.dev/pause:1";
export const API_PORT = 6443;
export const DNS_READY_PORT = 8181;
export const PROXY_HEALTH_PORT = 10256;
export const KUBELET_HEALTH_PORT = 10248;
const MAX_PODS = 200;

export interface ConfigInputs {
  readonly name: string;
  readonly addresses: AddressPlan;
  readonly paths: ClusterPaths;
  readonly binaries: string;
  readonly runc: string;
  /** `overlayfs`, or `native` where the state directory is itself on an overlay. */
  readonly snapshotter: string;
  /** Path of the cluster's cgroup below the root of each hierarchy. */
  readonly cgroup: string;
}

/** The components that talk to the API server, by the name of their client certificate. */
export const CLIENTS = ["admin", "kubelet", "controller-manager", "scheduler", "proxy", "coredns"] as const;
export type Client = (typeof CLIENTS)[number];

/** Every configuration file but the kubeconfigs, by its path below the cluster's `config` directory. */
export function configFiles(inputs: ConfigInputs): Map<string, string> {
  return new Map([
    ["containerd.toml", containerdConfig(inputs)],
    ["cni/10-bridge.conflist", json(cniConfig(inputs))],
    ["kubelet.yaml", stringify(kubeletConfig(inputs))],
    ["kube-proxy.yaml", stringify(kubeProxyConfig(inputs))],
    ["Corefile", corefile(inputs)],
    ["resolv.conf", ""],
    [
      "system.yaml",
      systemObjects(inputs)
        .map(object => stringify(object))
        .join("---\n"),
    ],
  ]);
}

export interface KubeconfigInputs {
  readonly name: string;
  readonly nodeIp: string;
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
}

/** A kubeconfig with everything in it (PEM contents, not paths), so that it can be copied. */
export function kubeconfig(inputs: KubeconfigInputs): string {
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name: inputs.name,
        cluster: {
          server: `https://${inputs.nodeIp}:${API_PORT}`,
          "certificate-authority-data": base64(inputs.authority),
        },
      },
    ],
    users: [
      {
        name: inputs.name,
        user: {
          "client-certificate-data": base64(inputs.certificate),
          "client-key-data": base64(inputs.key),
        },
      },
    ],
    contexts: [{ name: inputs.name, context: { cluster: inputs.name, user: inputs.name } }],
    "current-context": inputs.name,
  });
}

function containerdConfig({ paths, binaries, runc, snapshotter }: ConfigInputs): string {
  const quote = (text: string): string => JSON.stringify(text);
  return `version = 3
root = ${quote(join(paths.containerd, "root"))}
state = ${quote(join(paths.containerd, "state"))}
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs"]

[grpc]
  address = ${quote(paths.containerdSocket)}

[plugins."io.containerd.cri.v1.images"]
  snapshotter = ${quote(snapshotter)}

[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = ${quote(PAUSE_IMAGE)}

[plugins."io.containerd.cri.v1.runtime"]
  disable_apparmor = true
  restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = [${quote(binaries)}]
  conf_dir = ${quote(join(paths.config, "cni"))}

[plugins."io.containerd.cri.v1.runtime".containerd]
  default_runtime_name = "runc"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
    BinaryName = ${quote(runc)}
    SystemdCgroup = false

[plugins."io.containerd.transfer.v1.local"]
  unpack_config = [{ platform = "linux", snapshotter = ${quote(snapshotter)} }]
`;
}

function cniConfig({ name, addresses }: ConfigInputs): object {
  return {
    cniVersion: "1.0.0",
    name,
    plugins: [
      {
        type: "bridge",
        bridge: "cni0",
        isGateway: true,
        hairpinMode: true,
        ipam: {
          type: "host-local",
          // Inside the box, so that it ends with it.
          dataDir: "/run/cni-addresses",
          ranges: [[{ subnet: addresses.podRange }]],
          routes: [{ dst: "0.0.0.0/0" }],
        },
      },
      { type: "portmap", backend: "nftables", capabilities: { portMappings: true } },
    ],
  };
}

function kubeletConfig({ addresses, paths, cgroup }: ConfigInputs): object {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    address: addresses.nodeIp,
    healthzBindAddress: addresses.nodeIp,
    healthzPort: KUBELET_HEALTH_PORT,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: join(paths.pki, "ca.crt") },
    },
    authorization: { mode: "Webhook" },
    tlsCertFile: join(paths.pki, "kubelet.crt"),
    tlsPrivateKeyFile: join(paths.pki, "kubelet.key"),
    containerRuntimeEndpoint: `unix://${paths.containerdSocket}`,
    cgroupDriver: "cgroupfs",
    failCgroupV1: false,
    cgroupRoot: `/${cgroup}`,
    failSwapOn: false,
    // Images come from files and cannot be pulled again, so a full disk must not remove them or evict pods.
    evictionHard: {},
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    maxPods: MAX_PODS,
    clusterDNS: [addresses.nodeIp],
    clusterDomain: CLUSTER_DOMAIN,
    resolvConf: join(paths.config, "resolv.conf"),
    serializeImagePulls: false,
    registryPullQPS: 0,
    kubeAPIQPS: 500,
    kubeAPIBurst: 1000,
    eventRecordQPS: 0,
  };
}

function kubeProxyConfig({ name, addresses, paths }: ConfigInputs): object {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode: "nftables",
    clientConnection: { kubeconfig: join(paths.config, "proxy.kubeconfig") },
    clusterCIDR: addresses.podRange,
    hostnameOverride: name,
    bindAddress: addresses.nodeIp,
    healthzBindAddress: `${addresses.nodeIp}:${PROXY_HEALTH_PORT}`,
    metricsBindAddress: "127.0.0.1:10249",
    // The table of connections is the host's to size.
    conntrack: { maxPerCore: 0 },
    // Changes reach the rules at once, not after a second's gathering.
    nftables: { minSyncPeriod: "50ms" },
  };
}

function corefile({ addresses, paths }: ConfigInputs): string {
  return `${CLUSTER_DOMAIN}:53 in-addr.arpa:53 ip6.arpa:53 {
    bind ${addresses.nodeIp}
    errors
    ready ${addresses.nodeIp}:${DNS_READY_PORT}
    kubernetes ${CLUSTER_DOMAIN} in-addr.arpa ip6.arpa {
        kubeconfig ${join(paths.config, "coredns.kubeconfig")}
        pods insecure
        ttl 5
    }
}

# Nothing outside the cluster can be reached from it, so no other name is known.
.:53 {
    bind ${addresses.nodeIp}
    errors
    template ANY ANY . {
        rcode NXDOMAIN
    }
}
`;
}

/** What a cluster has from the start beside what Kubernetes itself makes: the name server's rights and Service. */
function systemObjects({ name, addresses }: ConfigInputs): object[] {
  const ports = [
    { name: "dns", protocol: "UDP", port: 53 },
    { name: "dns-tcp", protocol: "TCP", port: 53 },
  ];
  const labels = { "k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS" };
  return [
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: { name: "system:coredns" },
      rules: [
        { apiGroups: [""], resources: ["services", "pods", "namespaces"], verbs: ["list", "watch"] },
        { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] },
      ],
    },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: "system:coredns" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "system:coredns" },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "system:coredns" }],
    },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "kube-dns", namespace: "kube-system", labels },
      spec: { clusterIP: addresses.dnsServiceIp, ports },
    },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        name: "kube-dns",
        namespace: "kube-system",
        labels: { ...labels, "kubernetes.io/service-name": "kube-dns" },
      },
      addressType: "IPv4",
      endpoints: [{ addresses: [addresses.nodeIp], nodeName: name, conditions: { ready: true } }],
      ports,
    },
  ];
}

function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
