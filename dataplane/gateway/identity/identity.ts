/** Who sent a request, as flow schemas see it: a user, and the groups it is in. */
export interface Identity {
  readonly user: string;
  readonly groups: readonly string[];
}

/** Who shows nothing that is believed. Source of the names: Kubernetes' authentication. */
export const ANONYMOUS: Identity = { user: "system:anonymous", groups: ["system:unauthenticated"] };

const AUTHENTICATED = "system:authenticated";

/** An identity that somebody vouched for; it is in `system:authenticated` too. */
export function authenticated(user: string, groups: readonly string[]): Identity {
  return { user, groups: groups.includes(AUTHENTICATED) ? groups : [...groups, AUTHENTICATED] };
}
