/**
 * Whose places are whose, with several gateways. Every gateway computes it from what it sees of pods and gateways; equal
 * views give divisions that add up to each pod's slots exactly. While views differ, the pods' own limit holds.
 *
 * A revision with many places is divided: each gateway gets an equal part of every pod's slots. What does not divide
 * evenly goes by rendezvous hashing (D. Thaler, C. Ravishankar, "Using name-based mappings to increase hit rates",
 * 1998) with bounded loads (V. Mirrokni, M. Thorup, M. Zadimoghaddam, "Consistent hashing with bounded loads", 2018):
 * no gateway has more than one place more than another, and few places change hands when pods or gateways come and go.
 *
 * With few places a part of them would be too coarse: two places at two gateways are one each, and a request waits at
 * one while the other's is free. Then all belong to one home gateway, to which the others pass the revision's requests.
 */
import { hashFlow } from "./flow-hash.ts";

export interface PodSlots {
  readonly pod: string;
  /** Requests that the pod takes at a time: a whole number. Without a limit there is nothing to divide. */
  readonly slots: number;
}

export type PlaceDivision =
  /** This gateway's slots at each pod; pods where it has none are absent. */
  | { readonly kind: "divided"; readonly slots: ReadonlyMap<string, number> }
  /** All places belong to this gateway. */
  | { readonly kind: "home"; readonly gateway: string };

/** Places per gateway below which a division is not worth it. */
export const MIN_PLACES_PER_GATEWAY = 4;

/** All, by how they rank for `key`: a fixed order for each key, even over keys. */
function ranked(key: string, gateways: readonly string[]): string[] {
  return gateways
    .map(gateway => ({ gateway, rank: hashFlow(key, gateway) }))
    .sort((a, b) => a.rank.high - b.rank.high || a.rank.low - b.rank.low || (a.gateway < b.gateway ? -1 : 1))
    .map(({ gateway }) => gateway);
}

/** The gateway where a revision is at home: the same for all who know of the same gateways. At least one is needed. */
export function homeGateway(revision: string, gateways: readonly string[]): string {
  return ranked(revision, gateways)[0]!;
}

/**
 * @param revision A name that is its own in the cluster, such as `namespace/name`.
 * @param gateways All that are ready, `self` among them.
 */
export function dividePlaces(
  revision: string,
  pods: readonly PodSlots[],
  gateways: readonly string[],
  self: string,
  minPlacesPerGateway = MIN_PLACES_PER_GATEWAY,
): PlaceDivision {
  const count = gateways.length;
  const total = pods.reduce((sum, { slots }) => sum + slots, 0);
  if (count > 1 && total < count * minPlacesPerGateway) {
    return { kind: "home", gateway: homeGateway(revision, gateways) };
  }
  const rest = pods.reduce((sum, { slots }) => sum + (slots % count), 0);
  const even = Math.floor(rest / count);
  /** Gateways that may get one more than `even` of what does not divide. */
  let uneven = rest % count;
  const extra = new Map(gateways.map(gateway => [gateway, 0]));
  const mine = new Map<string, number>();
  for (const { pod, slots } of [...pods].sort((a, b) => (a.pod < b.pod ? -1 : 1))) {
    let own = Math.floor(slots / count);
    let left = slots % count;
    // Usually one round; where too few gateways may have more, the first of them get a second one of this pod.
    for (const order = left > 0 ? ranked(pod, gateways) : []; left > 0; ) {
      for (const gateway of order) {
        const has = extra.get(gateway)!;
        if (left === 0 || has > even || (has === even && uneven === 0)) continue;
        if (has === even) uneven--;
        extra.set(gateway, has + 1);
        if (gateway === self) own++;
        left--;
      }
    }
    if (own > 0) mine.set(pod, own);
  }
  return { kind: "divided", slots: mine };
}
