import { z } from "zod";
import {
  FLOW_CONTROL_VIEW_PATH,
  FlowControlViewSchema,
  REVISIONS_VIEW_PATH,
  RevisionsViewSchema,
  type FlowControlView,
  type RevisionsView,
} from "../../api/wire/flow.ts";
import { ADMIN_PORT } from "../../api/wire/why.ts";
import { LABEL } from "../../api/labels.ts";
import { CliError } from "../cli-error.ts";
import type { ClusterApi } from "../cluster/cluster-api.ts";
import { getFromPod, listObjects, parsePodAnswer } from "../cluster/objects.ts";

/** One gateway at one moment. */
export interface GatewayState {
  readonly gateway: string;
  readonly flowControl: FlowControlView;
  readonly revisions: RevisionsView;
}

/** What the gateways answered, and what is wrong with those that did not. */
export interface GatewayStates {
  readonly states: readonly GatewayState[];
  readonly problems: readonly string[];
}

const podSchema = z.object({
  metadata: z.object({ name: z.string(), deletionTimestamp: z.string().optional() }),
  status: z.object({ phase: z.string().optional() }).optional(),
});
const GATEWAYS = `${LABEL.appName}=fairway,${LABEL.appComponent}=gateway`;

/** Asks every running gateway. @throws CliError when none answers, or pods may not be listed */
export async function readGateways(api: ClusterApi, systemNamespace: string): Promise<GatewayStates> {
  const path = `/api/v1/namespaces/${systemNamespace}/pods`;
  const pods = await listObjects(api, path, podSchema, "gateways", { labelSelector: GATEWAYS });
  const running = pods
    .filter(({ metadata, status }) => metadata.deletionTimestamp === undefined && status?.phase === "Running")
    .map(({ metadata }) => metadata.name)
    .sort();
  if (running.length === 0) {
    throw new CliError("unavailable", `no gateway runs in namespace ${systemNamespace} (pods with ${GATEWAYS})`);
  }
  const answers = await Promise.allSettled(running.map(name => readGateway(api, systemNamespace, name)));
  const states: GatewayState[] = [];
  const problems: string[] = [];
  let first: unknown;
  for (const answer of answers) {
    if (answer.status === "fulfilled") states.push(answer.value);
    else {
      first ??= answer.reason;
      problems.push(answer.reason instanceof Error ? answer.reason.message : String(answer.reason));
    }
  }
  if (states.length === 0) throw first;
  return { states, problems };
}

async function readGateway(api: ClusterApi, namespace: string, name: string): Promise<GatewayState> {
  const get = (path: string) => getFromPod(api, { namespace, name, port: ADMIN_PORT }, path);
  const [flowControl, revisions] = await Promise.all([get(FLOW_CONTROL_VIEW_PATH), get(REVISIONS_VIEW_PATH)]);
  const what = `gateway ${name}`;
  if (flowControl.status === 404) {
    throw new CliError("unavailable", `${what}: its flow control is off, or it is of an older version`);
  }
  return {
    gateway: name,
    flowControl: parsePodAnswer(flowControl, FlowControlViewSchema, what),
    revisions: parsePodAnswer(revisions, RevisionsViewSchema, what),
  };
}
