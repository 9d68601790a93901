/**
 * The objects that are always there. Mandatory: their behaviour holds with or without them. Suggested: a starting point
 * that users may change. Specs are those of k8s.io/apiserver v0.37.2 (pkg/apis/flowcontrol/bootstrap).
 */
import type { FlowSchemaSpec, PolicyRule, PriorityLevelSpec, ResourceRule, Subject } from "./objects.ts";
import { CATCH_ALL, EXEMPT } from "./objects.ts";

export interface BootstrapObject<Spec> {
  readonly name: string;
  readonly spec: Spec;
}

const SYSTEM_MASTERS = "system:masters";
const AUTHENTICATED = "system:authenticated";
const UNAUTHENTICATED = "system:unauthenticated";
const NODES = "system:nodes";
const SERVICE_ACCOUNTS = "system:serviceaccounts";
const CONTROLLER_MANAGER = "system:kube-controller-manager";
const SCHEDULER = "system:kube-scheduler";

const groups = (...names: string[]): Subject[] => names.map(name => ({ kind: "Group", group: { name } }));
const users = (...names: string[]): Subject[] => names.map(name => ({ kind: "User", user: { name } }));
const kubeSystemServiceAccounts: Subject[] = [
  { kind: "ServiceAccount", serviceAccount: { namespace: "kube-system", name: "*" } },
];

const ANY_RESOURCE: ResourceRule = {
  verbs: ["*"],
  apiGroups: ["*"],
  resources: ["*"],
  namespaces: ["*"],
  clusterScope: true,
};
const LEASES: Omit<ResourceRule, "verbs"> = {
  apiGroups: ["coordination.k8s.io"],
  resources: ["leases"],
  namespaces: ["*"],
};
const everythingBy = (subjects: Subject[]): PolicyRule => ({
  subjects,
  resourceRules: [ANY_RESOURCE],
  nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
});

function schema(
  name: string,
  level: string,
  matchingPrecedence: number,
  distinguisher: "ByUser" | "ByNamespace" | undefined,
  rule: PolicyRule,
): BootstrapObject<FlowSchemaSpec> {
  return {
    name,
    spec: {
      priorityLevelConfiguration: { name: level },
      matchingPrecedence,
      ...(distinguisher === undefined ? {} : { distinguisherMethod: { type: distinguisher } }),
      rules: [rule],
    },
  };
}

function queuing(
  name: string,
  nominalConcurrencyShares: number,
  lendablePercent: number,
  queues: number,
  handSize: number,
): BootstrapObject<PriorityLevelSpec> {
  return {
    name,
    spec: {
      type: "Limited",
      limited: {
        nominalConcurrencyShares,
        lendablePercent,
        limitResponse: { type: "Queue", queuing: { queues, handSize, queueLengthLimit: 50 } },
      },
    },
  };
}

export const MANDATORY_PRIORITY_LEVELS: readonly BootstrapObject<PriorityLevelSpec>[] = [
  {
    name: CATCH_ALL,
    spec: {
      type: "Limited",
      limited: { nominalConcurrencyShares: 5, lendablePercent: 0, limitResponse: { type: "Reject" } },
    },
  },
  { name: EXEMPT, spec: { type: "Exempt", exempt: { nominalConcurrencyShares: 0, lendablePercent: 0 } } },
];

export const MANDATORY_FLOW_SCHEMAS: readonly BootstrapObject<FlowSchemaSpec>[] = [
  schema(EXEMPT, EXEMPT, 1, undefined, everythingBy(groups(SYSTEM_MASTERS))),
  schema(CATCH_ALL, CATCH_ALL, 10000, "ByUser", everythingBy(groups(UNAUTHENTICATED, AUTHENTICATED))),
];

export const SUGGESTED_PRIORITY_LEVELS: readonly BootstrapObject<PriorityLevelSpec>[] = [
  queuing("system", 30, 33, 64, 6),
  queuing("node-high", 40, 25, 64, 6),
  queuing("leader-election", 10, 0, 16, 4),
  queuing("workload-high", 40, 50, 128, 6),
  queuing("workload-low", 100, 90, 128, 6),
  queuing("global-default", 20, 50, 128, 6),
];

export const SUGGESTED_FLOW_SCHEMAS: readonly BootstrapObject<FlowSchemaSpec>[] = [
  schema("system-nodes", "system", 500, "ByUser", everythingBy(groups(NODES))),
  schema("system-node-high", "node-high", 400, "ByUser", {
    subjects: groups(NODES),
    resourceRules: [
      { ...ANY_RESOURCE, apiGroups: [""], resources: ["nodes", "nodes/status"] },
      { ...LEASES, verbs: ["*"] },
    ],
  }),
  schema("probes", EXEMPT, 2, undefined, {
    subjects: groups(UNAUTHENTICATED, AUTHENTICATED),
    nonResourceRules: [{ verbs: ["get"], nonResourceURLs: ["/healthz", "/readyz", "/livez"] }],
  }),
  schema("system-leader-election", "leader-election", 100, "ByUser", {
    subjects: [...users(CONTROLLER_MANAGER, SCHEDULER), ...kubeSystemServiceAccounts],
    resourceRules: [{ ...LEASES, verbs: ["get", "create", "update"] }],
  }),
  schema("kube-controller-manager", "workload-high", 800, "ByNamespace", everythingBy(users(CONTROLLER_MANAGER))),
  schema("kube-scheduler", "workload-high", 800, "ByNamespace", everythingBy(users(SCHEDULER))),
  schema("kube-system-service-accounts", "workload-high", 900, "ByNamespace", everythingBy(kubeSystemServiceAccounts)),
  schema("service-accounts", "workload-low", 9000, "ByUser", everythingBy(groups(SERVICE_ACCOUNTS))),
  schema("global-default", "global-default", 9900, "ByUser", everythingBy(groups(UNAUTHENTICATED, AUTHENTICATED))),
];
