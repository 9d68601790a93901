import { conditionFalse, conditionUnknown, findCondition, isReady, type Observation } from "../../../api/conditions.ts";
import { LABEL } from "../../../api/labels.ts";
import type { Configuration, Revision, Route, TrafficTarget } from "../../../api/serving/v1/types.ts";

/** What a Route's targets are looked up in: objects of the Route's namespace. */
export interface TrafficSources {
  configuration(name: string): Configuration | undefined;
  revision(name: string): Revision | undefined;
}

export type TrafficResolution =
  /** Every target has a ready revision: what `status.traffic` becomes, without URLs. */
  | { readonly kind: "assigned"; readonly traffic: readonly TrafficTarget[] }
  /** Nothing changes until this is resolved. */
  | { readonly kind: "unresolved"; readonly condition: Observation };

/**
 * Takes each target to one revision. A revision becomes a target only when it is ready, so the one before keeps its traffic
 * until then. Of several targets that cannot be resolved, one that has failed is told before one that is only not ready yet.
 */
export function resolveTraffic(route: Route, sources: TrafficSources): TrafficResolution {
  const resolved = (route.spec?.traffic ?? []).map(target => resolveTarget(target, route, sources));
  const problems = resolved.flatMap(result => (result.kind === "problem" ? [result.condition] : []));
  const problem = problems.findLast(condition => condition.status === "False") ?? problems[0];
  if (problem !== undefined) return { kind: "unresolved", condition: problem };
  return { kind: "assigned", traffic: merged(resolved.flatMap(result => (result.kind === "target" ? [result] : []))) };
}

type Resolved =
  | { readonly kind: "target"; readonly target: TrafficTarget }
  | { readonly kind: "problem"; readonly condition: Observation };

const problem = (condition: Observation): Resolved => ({ kind: "problem", condition });

function resolveTarget(target: TrafficTarget, route: Route, sources: TrafficSources): Resolved {
  const { revisionName, configurationName } = target;
  if (revisionName) return resolveRevision(target, revisionName, route, sources);
  if (!configurationName) {
    return problem(conditionFalse("RevisionMissing", "A traffic target names neither a Revision nor a Configuration."));
  }
  const configuration = sources.configuration(configurationName);
  if (configuration === undefined) return problem(missing("Configuration", configurationName));
  const latest = configuration.status?.latestReadyRevisionName;
  if (!latest) return problem(unreadyConfiguration(configuration));
  const revision = sources.revision(latest);
  if (revision === undefined) return problem(missing("Revision", latest));
  return isReady(revision) ? found(target, latest) : problem(unreadyRevision(revision));
}

function resolveRevision(target: TrafficTarget, name: string, route: Route, sources: TrafficSources): Resolved {
  const revision = sources.revision(name);
  if (revision === undefined) return problem(missing("Revision", name));
  const service = route.metadata.labels?.[LABEL.service];
  const owner = revision.metadata.labels?.[LABEL.service];
  if (service && service !== owner) {
    const belongs = owner
      ? `belongs to Service "${owner}", not Service "${service}"`
      : `is not of Service "${service}"`;
    return problem(conditionFalse("RevisionNotOwned", `Revision "${name}" ${belongs}.`));
  }
  return isReady(revision) ? found(target, name) : problem(unreadyRevision(revision));
}

const found = (target: TrafficTarget, revisionName: string): Resolved => ({
  kind: "target",
  target: {
    ...(target.tag ? { tag: target.tag } : {}),
    revisionName,
    latestRevision: target.latestRevision ?? !target.revisionName,
    percent: target.percent ?? 0,
  },
});

const missing = (kind: "Configuration" | "Revision", name: string): Observation =>
  conditionFalse(`${kind}Missing`, `${kind} "${name}" referenced in traffic not found.`);

function unreadyConfiguration(configuration: Configuration): Observation {
  const name = configuration.metadata.name ?? "";
  return findCondition(configuration, "Ready")?.status === "False"
    ? conditionFalse("RevisionMissing", `Configuration "${name}" has no ready Revision.`)
    : conditionUnknown("RevisionMissing", `Configuration "${name}" waits for its first Revision to become ready.`);
}

function unreadyRevision(revision: Revision): Observation {
  const name = revision.metadata.name ?? "";
  const ready = findCondition(revision, "Ready");
  return ready?.status === "False"
    ? conditionFalse("RevisionMissing", `Revision "${name}" is not ready: ${ready.message ?? ready.reason ?? "failed"}`)
    : conditionUnknown("RevisionMissing", `Revision "${name}" is not yet ready.`);
}

/** Targets of the same tag, revision and kind become one. */
function merged(targets: readonly { readonly target: TrafficTarget }[]): TrafficTarget[] {
  const byIdentity = new Map<string, TrafficTarget>();
  for (const { target } of targets) {
    const id = JSON.stringify([target.tag ?? "", target.revisionName, target.latestRevision]);
    const known = byIdentity.get(id);
    byIdentity.set(id, { ...target, percent: (known?.percent ?? 0) + (target.percent ?? 0) });
  }
  return [...byIdentity.values()];
}
