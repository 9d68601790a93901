/**
 * Flow-control objects as the core reads them: the specs of flowcontrol.apiserver.k8s.io/v1, field for field, with
 * Fairway's extensions. What validation has let through and defaulted; absent fields mean the defaults all the same.
 */

export interface QueuingSpec {
  readonly queues?: number | undefined;
  readonly handSize?: number | undefined;
  readonly queueLengthLimit?: number | undefined;
}

export interface LimitResponseSpec {
  readonly type: "Reject" | "Queue";
  readonly queuing?: QueuingSpec | undefined;
}

export interface LimitedSpec {
  readonly nominalConcurrencyShares?: number | undefined;
  readonly lendablePercent?: number | undefined;
  /** Absent: no limit. */
  readonly borrowingLimitPercent?: number | undefined;
  readonly limitResponse: LimitResponseSpec;
}

export interface ExemptSpec {
  readonly nominalConcurrencyShares?: number | undefined;
  readonly lendablePercent?: number | undefined;
}

export interface PriorityLevelSpec {
  readonly type: "Limited" | "Exempt";
  readonly limited?: LimitedSpec | undefined;
  readonly exempt?: ExemptSpec | undefined;
}

export interface PriorityLevelObject {
  readonly name: string;
  /** Empty for a mandatory one that has no object. */
  readonly uid: string;
  readonly spec: PriorityLevelSpec;
}

export interface Subject {
  readonly kind: "User" | "Group" | "ServiceAccount";
  readonly user?: { readonly name: string } | undefined;
  readonly group?: { readonly name: string } | undefined;
  readonly serviceAccount?: { readonly namespace: string; readonly name: string } | undefined;
}

export interface ResourceRule {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly clusterScope?: boolean | undefined;
  readonly namespaces?: readonly string[] | undefined;
}

export interface NonResourceRule {
  readonly verbs: readonly string[];
  /** Exact paths, paths with `/*` at the end, or `*`. As upstream, `/a` and `/a/*` both match what is below `/a/`. */
  readonly nonResourceURLs: readonly string[];
}

/** Extension: a request header by its exact value or by a prefix of it. Names are compared without case. */
export interface HeaderMatch {
  readonly name: string;
  readonly exact?: string | undefined;
  readonly prefix?: string | undefined;
}

export interface PolicyRule {
  readonly subjects: readonly Subject[];
  readonly resourceRules?: readonly ResourceRule[] | undefined;
  readonly nonResourceRules?: readonly NonResourceRule[] | undefined;
  /** Extension: only requests to services of these names; absent or `["*"]`: any. */
  readonly serviceNames?: readonly string[] | undefined;
  /** Extension: only requests on which all of these match. */
  readonly headers?: readonly HeaderMatch[] | undefined;
}

export interface FlowSchemaSpec {
  readonly priorityLevelConfiguration: { readonly name: string };
  readonly matchingPrecedence?: number | undefined;
  readonly distinguisherMethod?: { readonly type: "ByUser" | "ByNamespace" } | undefined;
  readonly rules?: readonly PolicyRule[] | undefined;
}

export interface FlowSchemaObject {
  readonly name: string;
  /** Empty for a mandatory one that has no object. */
  readonly uid: string;
  readonly spec: FlowSchemaSpec;
}

export const DEFAULT_SHARES = 30;
export const DEFAULT_MATCHING_PRECEDENCE = 1000;
export const DEFAULT_QUEUES = 64;
export const DEFAULT_HAND_SIZE = 8;
export const DEFAULT_QUEUE_LENGTH_LIMIT = 50;

export const EXEMPT = "exempt";
export const CATCH_ALL = "catch-all";

/** The order in which schemas are tried: lower precedence first, then the smaller name. */
export function compareFlowSchemas(a: FlowSchemaObject, b: FlowSchemaObject): number {
  const byPrecedence =
    (a.spec.matchingPrecedence ?? DEFAULT_MATCHING_PRECEDENCE) -
    (b.spec.matchingPrecedence ?? DEFAULT_MATCHING_PRECEDENCE);
  if (byPrecedence !== 0) return byPrecedence;
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}
