import type { GcConfig } from "../../../api/config/gc.ts";
import { LABEL, STATE_ANNOTATION } from "../../../api/labels.ts";
import type { Configuration, Revision } from "../../../api/serving/v1/types.ts";
import { routingState } from "../reachability.ts";

export interface GarbageSelection {
  /** To delete now, the longest inactive first. */
  readonly garbage: readonly Revision[];
  /** When another one may be due by time alone; undefined: only a change of the revisions can make one. */
  readonly recheckAtMs: number | undefined;
}

/**
 * Which revisions of a Configuration nobody needs. Never one that is routed or may still become so, the latest ready or latest
 * created one, or one that says `serving.knative.dev/no-gc: "true"`. Of the others the newest `min` stay; of the rest those
 * go that are older than both ages, and as many more, oldest first, as there are above `max`. "Old" means the longest without
 * traffic (KS#12341, KS#13036: the newest are kept, in whatever order they are listed).
 */
export function selectGarbage(
  configuration: Pick<Configuration, "status">,
  revisions: readonly Revision[],
  config: GcConfig,
  nowMs: number,
): GarbageSelection {
  const { retainSinceCreateTimeMs, retainSinceLastActiveTimeMs, minNonActiveRevisions, maxNonActiveRevisions } = config;
  const inactive = revisions
    .filter(revision => isCollectable(revision, configuration))
    .toSorted((a, b) => lastActiveMs(a) - lastActiveMs(b) || generationOf(a) - generationOf(b));
  const candidates = inactive.slice(0, Math.max(0, inactive.length - minNonActiveRevisions));
  const ages = retainSinceCreateTimeMs !== undefined || retainSinceLastActiveTimeMs !== undefined;
  const staleAtMs = (revision: Revision): number =>
    ages
      ? Math.max(
          retainSinceCreateTimeMs === undefined ? 0 : createdMs(revision) + retainSinceCreateTimeMs,
          retainSinceLastActiveTimeMs === undefined ? 0 : lastActiveMs(revision) + retainSinceLastActiveTimeMs,
        )
      : Infinity;
  const stale = candidates.filter(revision => staleAtMs(revision) <= nowMs);
  const fresh = candidates.filter(revision => staleAtMs(revision) > nowMs);
  const kept = inactive.length - stale.length;
  const tooMany = maxNonActiveRevisions === undefined ? 0 : Math.max(0, kept - maxNonActiveRevisions);
  const next = Math.min(...fresh.slice(tooMany).map(staleAtMs));
  return {
    garbage: [...stale, ...fresh.slice(0, tooMany)],
    recheckAtMs: Number.isFinite(next) ? next : undefined,
  };
}

function isCollectable(revision: Revision, { status }: Pick<Configuration, "status">): boolean {
  const { name, annotations, deletionTimestamp } = revision.metadata;
  return (
    deletionTimestamp === undefined &&
    routingState(revision) === "reserve" &&
    name !== status?.latestReadyRevisionName &&
    name !== status?.latestCreatedRevisionName &&
    annotations?.[STATE_ANNOTATION.noGc]?.toLowerCase() !== "true"
  );
}

const createdMs = (revision: Revision): number => Date.parse(revision.metadata.creationTimestamp ?? "") || 0;

function lastActiveMs(revision: Revision): number {
  const modified = Date.parse(revision.metadata.annotations?.[STATE_ANNOTATION.routingStateModified] ?? "");
  return Number.isNaN(modified) ? createdMs(revision) : modified;
}

const generationOf = (revision: Revision): number =>
  Number(revision.metadata.labels?.[LABEL.configurationGeneration] ?? 0);
