/** Who sent a request, as flow schemas see it: a user, and the groups it is in. */
export interface Identity {
  readonly user: string;
  readonly groups: readonly string[];
}

/** Who shows nothing that is believed. Source of the names: Kubernetes' authentication. */
export const ANONYMOUS: Identity = { user: "system:anonymous", groups: ["system:unauthenticated"] };

const AUTHENTICATED = "system:authenticated";
/** What names of the cluster's own begin with. */
const SYSTEM = "system:";

/** An identity that somebody vouched for; it is in `system:authenticated` too. */
export function authenticated(user: string, groups: readonly string[]): Identity {
  return { user, groups: groups.includes(AUTHENTICATED) ? groups : [...groups, AUTHENTICATED] };
}

/**
 * An identity by the word of somebody outside the cluster, who cannot give the cluster's own names: undefined for such a user,
 * and such groups are left out.
 */
export function authenticatedOutside(user: string, groups: readonly string[]): Identity | undefined {
  if (user.startsWith(SYSTEM)) return undefined;
  return authenticated(
    user,
    groups.filter(group => !group.startsWith(SYSTEM)),
  );
}
