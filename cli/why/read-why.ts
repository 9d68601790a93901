import { findCondition, type Condition } from "../../api/conditions.ts";
import { RevisionSchema, ServiceSchema, type Revision, type Service } from "../../api/serving/v1/types.ts";
import { ADMIN_PORT, SCALING_DEBUG_PATH, ScalingDebugSchema, type ScalingDebug } from "../../api/wire/why.ts";
import { CliError } from "../cli-error.ts";
import type { ClusterApi } from "../cluster/cluster-api.ts";
import { findLeader } from "../cluster/leader.ts";
import { getFromPod, messageOf, parsePodAnswer, readObject } from "../cluster/objects.ts";

/** What is known of one revision and its number of pods. */
export interface WhyRevision {
  readonly revision: string;
  /** Its part of the service's traffic. */
  readonly percent: number;
  readonly conditions: readonly Condition[];
  /** Absent: the operator has not decided about it. */
  readonly scaling?: ScalingDebug;
  /** Why there is no decision. */
  readonly undecided?: string;
}

export interface Why {
  readonly namespace: string;
  readonly service: string;
  readonly ready: Condition | undefined;
  /** The operator's pod that was asked. */
  readonly leader: string;
  readonly revisions: readonly WhyRevision[];
}

const SERVING = "/apis/serving.knative.dev/v1/namespaces";

/** Revisions worth explaining: those with traffic, and the newest, which may be starting. */
function revisionsOf({ status }: Service): string[] {
  const names = (status?.traffic ?? []).flatMap(target =>
    target.revisionName !== undefined && (target.percent ?? 0) > 0 ? [target.revisionName] : [],
  );
  const newest = status?.latestCreatedRevisionName;
  return [...new Set(newest === undefined ? names : [...names, newest])];
}

/** Asks the API server and the operator's leader. @throws CliError */
export async function readWhy(
  api: ClusterApi,
  name: string,
  revisionName: string | undefined,
  systemNamespace: string,
  nowMs: number,
): Promise<Why> {
  const { namespace } = api;
  const base = `${SERVING}/${encodeURIComponent(namespace)}`;
  const servicePath = `${base}/services/${encodeURIComponent(name)}`;
  const service = await readObject(api, servicePath, ServiceSchema, `service ${namespace}/${name}`);
  const names = revisionName === undefined ? revisionsOf(service) : [revisionName];
  if (names.length === 0) {
    const ready = findCondition(service, "Ready");
    const reason = ready?.message === undefined ? "" : `: ${ready.message}`;
    throw new CliError("notFound", `service ${namespace}/${name} has no revision yet${reason}`);
  }
  const revisions = await Promise.all(
    names.map(revision =>
      readObject(
        api,
        `${base}/revisions/${encodeURIComponent(revision)}`,
        RevisionSchema,
        `revision ${namespace}/${revision}`,
      ),
    ),
  );
  const leader = await findLeader(api, systemNamespace, nowMs);
  const pod = { namespace: systemNamespace, name: leader, port: ADMIN_PORT };
  return {
    namespace,
    service: name,
    ready: findCondition(service, "Ready"),
    leader,
    revisions: await Promise.all(revisions.map(revision => whyRevision(api, pod, service, revision))),
  };
}

async function whyRevision(
  api: ClusterApi,
  pod: { readonly namespace: string; readonly name: string; readonly port: number },
  service: Service,
  { metadata, status }: Revision,
): Promise<WhyRevision> {
  const { name = "", namespace = api.namespace } = metadata;
  const answer = await getFromPod(api, pod, SCALING_DEBUG_PATH, { namespace, revision: name });
  const about = {
    revision: name,
    percent: (service.status?.traffic ?? [])
      .filter(target => target.revisionName === name)
      .reduce((sum, target) => sum + (target.percent ?? 0), 0),
    conditions: status?.conditions ?? [],
  };
  if (answer.status === 404) return { ...about, undecided: messageOf(answer) };
  return { ...about, scaling: parsePodAnswer(answer, ScalingDebugSchema, `scaling of ${namespace}/${name}`) };
}
