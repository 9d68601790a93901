import type { Revision, Service } from "../../api/serving/v1/types.ts";
import { matchCapacity } from "../../core/autoscaling/rollout-capacity.ts";
import type { CloudRunLoad } from "../../core/autoscaling/cloud-run-drivers.ts";
import { initialScaleReached } from "../services/initial-scale.ts";
import type { ResolvedScaling } from "./revision-scaler.ts";

/** A new revision that traffic is to move to. */
export interface Rollout {
  /** Its part of the traffic to be. */
  readonly percent: number;
  /** Revisions that have the traffic now. */
  readonly from: readonly string[];
}

/** Undefined when the revision is no new one, or none that the Service's traffic leads to. */
export function rolloutOf(
  service: Service | undefined,
  revision: Pick<Revision, "metadata" | "status">,
): Rollout | undefined {
  const { name = "" } = revision.metadata;
  if (service === undefined || initialScaleReached(revision)) return undefined;
  const isLatest = service.status?.latestCreatedRevisionName === name;
  const traffic = service.spec?.traffic ?? [{ latestRevision: true, percent: 100 }];
  const percent = traffic
    .filter(target => (target.revisionName ? target.revisionName === name : isLatest))
    .reduce((sum, target) => sum + (target.percent ?? 0), 0);
  if (percent === 0) return undefined;
  const from = (service.status?.traffic ?? []).flatMap(target =>
    target.revisionName !== undefined && target.revisionName !== name && (target.percent ?? 0) > 0
      ? [target.revisionName]
      : [],
  );
  return { percent, from: [...new Set(from)] };
}

/**
 * Cloud Run's rule: so many pods as the present load will need are ready before traffic moves. They are the new revision's initial
 * scale, so the path to them, its end and its explanation are initial scale's.
 *
 * @param loads of the revisions that traffic leaves; undefined where there are no data
 * @param replicas of the new revision now: what was asked for stays while data are missing, as after a restart
 */
export function withRolloutCapacity(
  resolved: ResolvedScaling,
  percent: number,
  loads: readonly (CloudRunLoad | undefined)[],
  replicas: number,
): ResolvedScaling {
  const { policy, lifecycle } = resolved.spec;
  if (policy.kind !== "cloud-run" || !lifecycle.reachable) return resolved;
  const known = loads.flatMap(load => (load === undefined ? [] : [partOf(load, percent)]));
  const matched = matchCapacity(policy.cloudRun, known);
  const needed = Math.max(
    matched.drivers.needed > 0 ? matched.instances : 0,
    known.length < loads.length ? replicas : 0,
    lifecycle.bounds.initial,
  );
  const bounds = { ...lifecycle.bounds, initial: needed };
  return { ...resolved, spec: { policy, lifecycle: { ...lifecycle, bounds } } };
}

const partOf = (load: CloudRunLoad, percent: number): CloudRunLoad => ({
  concurrency1m: (load.concurrency1m * percent) / 100,
  concurrency10m: (load.concurrency10m * percent) / 100,
  cpu1m: load.cpu1m === undefined ? undefined : (load.cpu1m * percent) / 100,
});
