import { createRemoteJWKSet, decodeJwt, errors, jwtVerify, type JWTPayload, type JWTVerifyGetKey } from "jose";
import { z } from "zod";
import { authenticatedOutside } from "./identity.ts";
import type { TokenOwner, TokenSource } from "./token-identity.ts";

/** One issuer whose tokens are believed; the fields are those of Kubernetes' `--oidc-*` flags. */
export const OidcIssuerSchema = z.strictObject({
  /** `iss` of its tokens, and where its discovery document is, unless `jwksUrl` says where its keys are. */
  issuer: z.url({ protocol: /^https?$/ }),
  audience: z.string().min(1),
  jwksUrl: z.url({ protocol: /^https?$/ }).optional(),
  usernameClaim: z.string().min(1).default("sub"),
  /** In front of the name, so that it cannot be taken for a cluster's user. */
  usernamePrefix: z.string().optional(),
  groupsClaim: z.string().min(1).default("groups"),
  groupsPrefix: z.string().optional(),
});
export type OidcIssuer = z.infer<typeof OidcIssuerSchema>;

/** Asymmetric ones only: a symmetric key would let the verifier sign. */
const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
const CLOCK_TOLERANCE_S = 10;
const DISCOVERY_TIMEOUT_MS = 3_000;
const discoverySchema = z.object({ issuer: z.string(), jwks_uri: z.url() });

/**
 * Judges the JWTs of the configured issuers. Undefined for what is no JWT, comes from another issuer, or does not hold
 * (signature, audience, time); throws when the issuer's keys cannot be had now.
 */
export function oidcTokens(issuers: readonly OidcIssuer[]): TokenSource {
  const byIssuer = new Map(issuers.map(issuer => [issuer.issuer, { issuer, keys: keysOf(issuer) }]));
  return async token => {
    const iss = issuerOf(token);
    const known = iss === undefined ? undefined : byIssuer.get(iss);
    if (known === undefined) return undefined;
    const { issuer, keys } = known;
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer: issuer.issuer,
        audience: issuer.audience,
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE_S,
        requiredClaims: ["exp"],
      });
      return ownerOf(payload, issuer);
    } catch (error) {
      if (error instanceof errors.JOSEError && !isKeyTrouble(error)) return undefined;
      throw error;
    }
  };
}

/** `iss` of a JWT, unverified; undefined when it is none. */
export function issuerOf(token: string): string | undefined {
  try {
    return decodeJwt(token).iss;
  } catch (error) {
    if (error instanceof errors.JWTInvalid) return undefined;
    throw error;
  }
}

const isKeyTrouble = (error: errors.JOSEError): boolean =>
  error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid || error.code === "ERR_JOSE_GENERIC";

function ownerOf(payload: JWTPayload, issuer: OidcIssuer): TokenOwner | undefined {
  const name = payload[issuer.usernameClaim];
  if (typeof name !== "string" || name === "") return undefined;
  const claimed = payload[issuer.groupsClaim];
  const groups = typeof claimed === "string" ? [claimed] : Array.isArray(claimed) ? (claimed as unknown[]) : [];
  const user = `${issuer.usernamePrefix ?? `${issuer.issuer}#`}${name}`;
  const prefixed = groups
    .filter(group => typeof group === "string")
    .map(group => `${issuer.groupsPrefix ?? ""}${group}`);
  const identity = authenticatedOutside(user, prefixed);
  if (identity === undefined) return undefined;
  return { identity, expiresAtMs: payload.exp === undefined ? undefined : payload.exp * 1000 };
}

/** The issuer's keys, fetched when first needed and again when a token names an unknown one (at most every 30 s). */
function keysOf({ issuer, jwksUrl }: OidcIssuer): JWTVerifyGetKey {
  let keys: JWTVerifyGetKey | undefined = jwksUrl === undefined ? undefined : createRemoteJWKSet(new URL(jwksUrl));
  return async (header, token) => {
    keys ??= createRemoteJWKSet(new URL(await discoverKeys(issuer)));
    return keys(header, token);
  };
}

async function discoverKeys(issuer: string): Promise<string> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const answer = await fetch(url, { signal: AbortSignal.timeout(DISCOVERY_TIMEOUT_MS), redirect: "error" });
  if (!answer.ok) throw new OidcDiscoveryError(`${url}: ${answer.status}`);
  const document = discoverySchema.parse(await answer.json());
  if (document.issuer !== issuer) throw new OidcDiscoveryError(`${url} speaks for ${document.issuer}`);
  return document.jwks_uri;
}

export class OidcDiscoveryError extends Error {
  readonly code = "OIDC_DISCOVERY_FAILED";
}
