import type { RevisionBackend } from "./revisions/revision-backend.ts";
import type { RoutingTable } from "./routing/routing-table.ts";
import type { ListenerName } from "./routing/hosts.ts";

/** The routing table for people: each host, and where it leads. */
export function debugRoutes(table: RoutingTable<RevisionBackend>): unknown {
  const hosts = (listener: ListenerName) =>
    Object.fromEntries(
      [...table.hosts(listener)].map(([host, target]) => [
        host,
        {
          route: `${target.namespace}/${target.route}`,
          ...(target.tag === "" ? {} : { tag: target.tag }),
          revisions: Object.fromEntries(target.deck.shares.map(share => [share.target.key, share.percent])),
        },
      ]),
    );
  return { external: hosts("external"), internal: hosts("internal") };
}

/** The revisions for people: places, who waits, pods. */
export function debugRevisions(backends: Iterable<RevisionBackend>): unknown {
  return Object.fromEntries(
    [...backends].map(backend => [
      backend.key,
      {
        known: backend.known,
        waiting: backend.waiting,
        inFlight: backend.inFlight,
        places: bounded(backend.capacity),
        maxWaitMs: backend.maxWaitMs,
        ...(backend.home === undefined ? {} : { home: backend.home }),
        levels: backend.levels,
        settings: { ...backend.settings, podConcurrency: bounded(backend.settings.podConcurrency) },
        pods: backend.pods.map(({ name, address, state, inFlight, limit, demoted, readyByProbe }) => ({
          name,
          address,
          state,
          inFlight,
          limit: bounded(limit),
          demoted,
          readyByProbe,
        })),
      },
    ]),
  );
}

const bounded = (value: number): number | "unlimited" => (Number.isFinite(value) ? value : "unlimited");
