import { readFile } from "node:fs/promises";
import { decodeJwt } from "jose";
import { z } from "zod";
import type { KubeClient } from "../watch/kube-client.ts";
import { issuerOf } from "./oidc.ts";
import type { TokenSource } from "./token-identity.ts";

/** `cluster`: tokens that say the cluster made them; `all`: whatever comes as a bearer token; `off`: none. */
export const TOKEN_REVIEW_MODES = ["cluster", "all", "off"] as const;
export type TokenReviewMode = (typeof TOKEN_REVIEW_MODES)[number];

export interface TokenReviewOptions {
  readonly kube: Pick<KubeClient, "create">;
  /** `cluster` keeps tokens of the services' own users from the API server. */
  readonly mode: Exclude<TokenReviewMode, "off">;
  /** A token of this process's own ServiceAccount: names the cluster's issuer. */
  readonly ownTokenFile: string;
}

const REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews";
const reviewSchema = z.object({
  status: z
    .object({
      authenticated: z.boolean().default(false),
      user: z.object({ username: z.string().default(""), groups: z.array(z.string()).nullish() }).optional(),
    })
    .optional(),
});

/** Asks the API server whose a token is (authentication.k8s.io/v1 TokenReview, for the API server's own audience). */
export function reviewedTokens({ kube, mode, ownTokenFile }: TokenReviewOptions): TokenSource {
  let ownIssuer: string | undefined;
  const isOfCluster = async (token: string): Promise<boolean> => {
    const issuer = issuerOf(token);
    if (issuer === undefined) return false;
    // Read when first needed: a gateway outside a cluster has none.
    ownIssuer ??= issuerOf((await readFile(ownTokenFile, "utf8")).trim());
    return issuer === ownIssuer;
  };
  return async (token, signal) => {
    if (mode === "cluster" && !(await isOfCluster(token))) return undefined;
    const review = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token } };
    const { status } = reviewSchema.parse(await kube.create(REVIEWS, review, signal));
    if (status?.authenticated !== true || status.user === undefined || status.user.username === "") return undefined;
    const { username, groups } = status.user;
    return { identity: { user: username, groups: groups ?? [] }, expiresAtMs: expiryOf(token) };
  };
}

function expiryOf(token: string): number | undefined {
  if (issuerOf(token) === undefined) return undefined;
  const { exp } = decodeJwt(token);
  return exp === undefined ? undefined : exp * 1000;
}
