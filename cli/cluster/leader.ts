import { z } from "zod";
import { CliError } from "../cli-error.ts";
import type { ClusterApi } from "./cluster-api.ts";
import { findObject } from "./objects.ts";

/** Name of the Lease that the operator's replicas elect their leader by. */
export const OPERATOR_LEASE = "fairway-operator";

const leaseSchema = z.object({
  spec: z
    .object({
      holderIdentity: z.string().nullish(),
      leaseDurationSeconds: z.number().nullish(),
      renewTime: z.string().nullish(),
    })
    .optional(),
});

/**
 * Name of the pod of the operator that leads.
 * @throws CliError when no operator is installed, or none has led for longer than a lease lasts
 */
export async function findLeader(api: ClusterApi, systemNamespace: string, nowMs: number): Promise<string> {
  const what = `lease ${systemNamespace}/${OPERATOR_LEASE}`;
  const path = `/apis/coordination.k8s.io/v1/namespaces/${systemNamespace}/leases/${OPERATOR_LEASE}`;
  const lease = await findObject(api, path, leaseSchema, what);
  if (lease === undefined) {
    throw new CliError(
      "unavailable",
      `${what} not found: no operator of Fairway has run in namespace ${systemNamespace}`,
    );
  }
  const { holderIdentity, renewTime, leaseDurationSeconds } = lease.spec ?? {};
  if (!holderIdentity)
    throw new CliError("unavailable", `no operator leads: ${what} has no holder; try again in seconds`);
  const renewedMs = renewTime ? Date.parse(renewTime) : Number.NaN;
  const staleMs = nowMs - renewedMs - (leaseDurationSeconds ?? 15) * 1000;
  // Clocks may differ; a lease that is over by minutes is no matter of clocks.
  if (staleMs > 60_000) {
    throw new CliError(
      "unavailable",
      `no operator leads: ${holderIdentity} held ${what} and has not renewed it for ${Math.round((nowMs - renewedMs) / 1000)} s`,
    );
  }
  return holderIdentity;
}
