import type { Condition, ConditionStatus } from "./meta/status.ts";

export type { Condition, ConditionStatus };

/**
 * Conditions as Knative's tools expect them. `Ready` is never set by hand: it is rolled up from the dependents, False
 * beats Unknown beats True, and it carries reason and message of the dependent that makes it so. Conditions outside the
 * dependents (a Revision's `Active`) have severity `Info` and do not count.
 */

/** The condition types of each kind: those that Ready depends on, and those that only inform. */
export const CONDITIONS = {
  Service: { dependents: ["ConfigurationsReady", "RoutesReady"], info: [] },
  Configuration: { dependents: [], info: [] },
  Revision: { dependents: ["ResourcesAvailable", "ContainerHealthy"], info: ["Active"] },
  Route: { dependents: ["AllTrafficAssigned", "CertificateProvisioned", "IngressReady"], info: [] },
  DomainMapping: {
    dependents: ["DomainClaimed", "ReferenceResolved", "IngressReady", "CertificateProvisioned"],
    info: [],
  },
} as const satisfies Record<string, { dependents: readonly string[]; info: readonly string[] }>;

export type ConditionedKind = keyof typeof CONDITIONS;
export type ConditionType<K extends ConditionedKind> =
  | (typeof CONDITIONS)[K]["dependents"][number]
  | (typeof CONDITIONS)[K]["info"][number]
  | (K extends "Configuration" ? "Ready" : never);

/** What a reconciler observed about one aspect. Reason and message say why, and are expected unless the status is True. */
export interface Observation {
  readonly status: ConditionStatus;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}

export const conditionTrue = (reason?: string, message?: string): Observation => ({ status: "True", reason, message });
export const conditionFalse = (reason: string, message: string): Observation => ({ status: "False", reason, message });
export const conditionUnknown = (reason?: string, message?: string): Observation => ({
  status: "Unknown",
  reason,
  message,
});

/**
 * The whole list for `status.conditions`, sorted by type. A dependent that was not observed keeps its previous state, or
 * is Unknown at first; an informational one is kept, or left out. `lastTransitionTime` is `nowMs` for a new condition
 * and for one whose status changed, and the previous time otherwise, so an unchanged state is an unchanged text.
 */
export function buildConditions<K extends ConditionedKind>(
  kind: K,
  observed: Readonly<Partial<Record<ConditionType<K>, Observation>>>,
  previous: readonly Condition[] | undefined,
  nowMs: number,
): Condition[] {
  const observations: Readonly<Record<string, Observation | undefined>> = observed;
  const before = new Map((previous ?? []).map(condition => [condition.type, condition]));
  const seen = (type: string): Observation | undefined => observations[type] ?? before.get(type);
  const dependents = CONDITIONS[kind].dependents.map(
    type => [type, seen(type) ?? conditionUnknown()] as const satisfies readonly [string, Observation],
  );
  const informational = CONDITIONS[kind].info.flatMap(type => {
    const observation = seen(type);
    return observation === undefined ? [] : [[type, observation, "Info"] as const];
  });
  const ready = dependents.length > 0 ? rollUp(dependents.map(([, o]) => o)) : (seen("Ready") ?? conditionUnknown());

  const all: (readonly [string, Observation, string?])[] = [["Ready", ready], ...dependents, ...informational];
  return all
    .map(([type, observation, severity]) => toCondition(type, observation, severity, before.get(type), nowMs))
    .sort((a, b) => (a.type < b.type ? -1 : 1));
}

/** False beats Unknown beats True; the first unhappy dependent, in the order of `CONDITIONS`, lends reason and message. */
export function rollUp(dependents: readonly Observation[]): Observation {
  const unhappy = dependents.find(o => o.status === "False") ?? dependents.find(o => o.status !== "True");
  return unhappy === undefined
    ? conditionTrue()
    : { status: unhappy.status, reason: unhappy.reason, message: unhappy.message };
}

function toCondition(
  type: string,
  observation: Observation,
  severity: string | undefined,
  previous: Condition | undefined,
  nowMs: number,
): Condition {
  const unchanged = previous?.status === observation.status && previous.lastTransitionTime !== undefined;
  return {
    type,
    status: observation.status,
    ...(severity === undefined ? {} : { severity }),
    lastTransitionTime: unchanged ? previous.lastTransitionTime : rfc3339Seconds(nowMs),
    ...(observation.reason ? { reason: observation.reason } : {}),
    ...(observation.message ? { message: observation.message } : {}),
  };
}

/** Kubernetes writes times without fractions of a second. */
const rfc3339Seconds = (nowMs: number): string => `${new Date(nowMs).toISOString().slice(0, 19)}Z`;

interface Conditioned {
  readonly metadata: { readonly generation?: number | undefined };
  readonly status?:
    | { readonly observedGeneration?: number | undefined; readonly conditions?: readonly Condition[] | undefined }
    | undefined;
}

export const findCondition = (object: Pick<Conditioned, "status">, type: string): Condition | undefined =>
  object.status?.conditions?.find(condition => condition.type === type);

const observed = (object: Conditioned): boolean => object.status?.observedGeneration === object.metadata.generation;

/** Ready is True and the status describes the present spec. */
export const isReady = (object: Conditioned): boolean =>
  observed(object) && findCondition(object, "Ready")?.status === "True";

/** Ready is False and the status describes the present spec. */
export const isFailed = (object: Conditioned): boolean =>
  observed(object) && findCondition(object, "Ready")?.status === "False";
