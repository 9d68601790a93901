import { dirname, join } from "node:path";
import type { AddressPlan } from "./address-plan.ts";
import { API_PORT, CLUSTER_DOMAIN, type Client } from "./config-files.ts";
import type { ClusterPaths } from "./paths.ts";

/** What `box` (node/box/plan.go) is told: the same fields. */
export interface BoxPlan {
  readonly hostname: string;
  readonly stateFile: string;
  readonly pidFile: string;
  readonly network: {
    readonly hostLink: string;
    readonly hostAddress: string;
    readonly nodeAddress: string;
    readonly podRange: string;
    readonly serviceRange: string;
  };
  readonly mounts: readonly { readonly source?: string; readonly target: string }[];
  readonly sysctls: readonly { readonly path: string; readonly value: string }[];
  readonly components: readonly BoxComponent[];
}

export interface BoxComponent {
  readonly name: string;
  readonly command: readonly string[];
  readonly env: readonly string[];
  readonly logFile: string;
  /** The component is held back until this file exists. */
  readonly startFile?: string;
}

export interface BoxInputs {
  readonly name: string;
  readonly addresses: AddressPlan;
  readonly paths: ClusterPaths;
  readonly binaries: string;
  /** Directories of the system's programs that components call, such as nft. */
  readonly systemPath: string;
}

export function boxPlan(inputs: BoxInputs): BoxPlan {
  const { name, addresses, paths } = inputs;
  return {
    hostname: name,
    stateFile: paths.componentStates,
    pidFile: paths.boxPid,
    network: {
      hostLink: addresses.hostLink,
      hostAddress: `${addresses.hostIp}/${addresses.linkPrefixLength}`,
      nodeAddress: `${addresses.nodeIp}/${addresses.linkPrefixLength}`,
      podRange: addresses.podRange,
      serviceRange: addresses.serviceRange,
    },
    mounts: [
      { target: "/run" },
      { source: paths.varLog, target: "/var/log" },
      { source: paths.kubelet, target: "/var/lib/kubelet" },
    ],
    sysctls: [{ path: "net/ipv4/ip_forward", value: "1" }],
    components: components(inputs),
  };
}

function components({ name, addresses, paths, binaries, systemPath }: BoxInputs): BoxComponent[] {
  const program = (file: string): string => join(binaries, file);
  const pki = (file: string): string => join(paths.pki, file);
  const config = (file: string): string => join(paths.config, file);
  const client = (who: Client): string => config(`${who}.kubeconfig`);
  // The usual limits are for large clusters; here they would only make the start some seconds longer.
  const fastClient = ["--kube-api-qps=500", "--kube-api-burst=1000"];
  const commands: Record<string, string[]> = {
    etcd: [
      program("etcd"),
      `--data-dir=${paths.etcd}`,
      "--listen-client-urls=http://127.0.0.1:2379",
      "--advertise-client-urls=http://127.0.0.1:2379",
      "--listen-peer-urls=http://127.0.0.1:2380",
      "--initial-advertise-peer-urls=http://127.0.0.1:2380",
      "--initial-cluster=default=http://127.0.0.1:2380",
      "--log-level=warn",
      // The data does not outlive the box.
      "--unsafe-no-fsync",
    ],
    containerd: [program("containerd"), `--config=${config("containerd.toml")}`],
    "kube-apiserver": [
      program("kube-apiserver"),
      `--advertise-address=${addresses.nodeIp}`,
      `--secure-port=${API_PORT}`,
      "--etcd-servers=http://127.0.0.1:2379",
      `--service-cluster-ip-range=${addresses.serviceRange}`,
      "--authorization-mode=Node,RBAC",
      "--enable-admission-plugins=NodeRestriction",
      "--allow-privileged=true",
      "--profiling=false",
      `--client-ca-file=${pki("ca.crt")}`,
      `--tls-cert-file=${pki("apiserver.crt")}`,
      `--tls-private-key-file=${pki("apiserver.key")}`,
      `--kubelet-certificate-authority=${pki("ca.crt")}`,
      `--kubelet-client-certificate=${pki("apiserver-to-kubelet.crt")}`,
      `--kubelet-client-key=${pki("apiserver-to-kubelet.key")}`,
      "--kubelet-preferred-address-types=InternalIP",
      `--service-account-issuer=https://kubernetes.default.svc.${CLUSTER_DOMAIN}`,
      `--service-account-key-file=${pki("service-accounts.pub")}`,
      `--service-account-signing-key-file=${pki("service-accounts.key")}`,
    ],
    "kube-controller-manager": [
      program("kube-controller-manager"),
      `--kubeconfig=${client("controller-manager")}`,
      ...fastClient,
      "--leader-elect=false",
      "--bind-address=127.0.0.1",
      "--use-service-account-credentials=true",
      `--root-ca-file=${pki("ca.crt")}`,
      `--service-account-private-key-file=${pki("service-accounts.key")}`,
      `--cluster-signing-cert-file=${pki("ca.crt")}`,
      `--cluster-signing-key-file=${pki("ca.key")}`,
    ],
    "kube-scheduler": [
      program("kube-scheduler"),
      `--kubeconfig=${client("scheduler")}`,
      ...fastClient,
      "--leader-elect=false",
      "--bind-address=127.0.0.1",
    ],
    kubelet: [
      program("kubelet"),
      `--kubeconfig=${client("kubelet")}`,
      `--config=${config("kubelet.yaml")}`,
      `--hostname-override=${name}`,
      `--node-ip=${addresses.nodeIp}`,
    ],
    "kube-proxy": [program("kube-proxy"), `--config=${config("kube-proxy.yaml")}`],
    coredns: [program("coredns"), `-conf=${config("Corefile")}`],
  };
  const startFiles: Record<string, string> = {
    // It ends when there is no container runtime.
    kubelet: paths.containerdSocket,
    // Without its rights it would be refused, and then wait some seconds before it asks again.
    coredns: paths.systemReady,
  };
  const env = [`PATH=${[binaries, systemPath].join(":")}`, `HOME=${dirname(paths.etcd)}`];
  return Object.entries(commands).map(([component, command]) => ({
    name: component,
    command,
    env,
    logFile: join(paths.logs, `${component}.log`),
    ...(startFiles[component] === undefined ? {} : { startFile: startFiles[component] }),
  }));
}
