/** What a rotation has to know of one certificate. */
export interface CertificateFacts {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** The certificates in use, as found in the Secret. */
export interface CertificateFactsInUse {
  readonly authority: CertificateFacts;
  readonly serving: CertificateFacts & { readonly hosts: readonly string[] };
  /** An authority that is announced in the CA bundle but signs nothing yet; since when. */
  readonly next: { readonly announcedMs: number } | undefined;
}

export const ROTATION = {
  authorityDays: 3650,
  servingDays: 90,
  /** A certificate is replaced when this part of its life has passed. */
  renewAfter: 2 / 3,
  /** How long a new authority is in every bundle before something it signed is served. */
  announceMs: 600_000,
} as const;

/**
 * The next step, one at a time:
 * - `create`: there is nothing usable, so everything is made at once
 * - `renew-serving`: the same authority signs a new serving certificate; bundles stay as they are
 * - `announce-authority`: a new authority joins the bundle, and signs nothing yet
 * - `promote-authority`: it has been announced long enough; it signs from now on, and the old one stays in the bundle
 * - `wait`: nothing until `atMs`
 */
export type CertificateStep =
  | { readonly do: "create" | "renew-serving" | "announce-authority" | "promote-authority" }
  | { readonly do: "wait"; readonly atMs: number };

/**
 * Decides the next step of rotation. A serving certificate is replaced after 60 of its 90 days, an authority after 2433 of its
 * 3650; a change of authority never makes a moment in which a caller's bundle lacks the authority of what is served.
 */
export function planCertificates(
  inUse: CertificateFactsInUse | undefined,
  hosts: readonly string[],
  nowMs: number,
): CertificateStep {
  if (inUse === undefined) return { do: "create" };
  const { authority, serving, next } = inUse;
  if (nowMs >= authority.notAfterMs || nowMs < authority.notBeforeMs) return { do: "create" };
  const authorityDueMs = dueMs(authority);
  const promoteMs = next === undefined ? Infinity : next.announcedMs + ROTATION.announceMs;
  if (next !== undefined && nowMs >= promoteMs) return { do: "promote-authority" };
  // Near its end an authority signs shorter and shorter certificates: leave that to the next one.
  const servingDueMs = next === undefined ? dueMs(serving) : serving.notAfterMs - ROTATION.announceMs;
  if (nowMs >= servingDueMs || !hosts.every(host => serving.hosts.includes(host))) return { do: "renew-serving" };
  if (next === undefined && nowMs >= authorityDueMs) return { do: "announce-authority" };
  return { do: "wait", atMs: Math.min(servingDueMs, promoteMs, next === undefined ? authorityDueMs : Infinity) };
}

function dueMs({ notBeforeMs, notAfterMs }: CertificateFacts): number {
  return notBeforeMs + (notAfterMs - notBeforeMs) * ROTATION.renewAfter;
}
