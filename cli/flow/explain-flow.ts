import { FlowSchemaSchema, PriorityLevelConfigurationSchema } from "../../api/flowcontrol/v1/types.ts";
import type { ObjectMeta } from "../../api/meta/object-meta.ts";
import { RouteSchema } from "../../api/serving/v1/types.ts";
import type { RequestAttributes } from "../../core/flowcontrol/classifier.ts";
import { FlowController } from "../../core/flowcontrol/flow-controller.ts";
import { sharesOf } from "../../core/flowcontrol/limits.ts";
import {
  compareFlowSchemas,
  DEFAULT_MATCHING_PRECEDENCE,
  type FlowSchemaObject,
  type PriorityLevelObject,
} from "../../core/flowcontrol/objects.ts";
import { CliError } from "../cli-error.ts";
import type { ClusterApi } from "../cluster/cluster-api.ts";
import { listObjects } from "../cluster/objects.ts";
import { findTarget, noTargetInWords, type Target } from "./find-target.ts";
import type { GatewayState } from "./gateways.ts";
import { attributesOf, type AskedRequest, type Identity } from "./request.ts";

/** Which schema takes a request, and what that means for it. */
export interface FlowExplanation {
  readonly target: Target;
  readonly identity: Identity;
  readonly verb: string;
  readonly path: string;
  /** Schemas tried before, in order, with what stood against each of their rules. */
  readonly missed: readonly {
    readonly schema: string;
    readonly precedence: number;
    readonly rules: readonly (readonly string[])[];
  }[];
  readonly schema: { readonly name: string; readonly precedence: number; readonly distinguisher: string | undefined };
  readonly level: {
    readonly name: string;
    readonly type: "Limited" | "Exempt";
    readonly shares: number;
    readonly shareSum: number;
    readonly response: string;
  };
  /** Empty: all requests of the schema are one flow. */
  readonly flow: string;
  /** Queues that the flow may join, by its hash; empty: the level has none. */
  readonly hand: readonly number[];
  /** The level at each gateway now. */
  readonly now: readonly LevelNow[];
  /** Schemas and levels that do not work. */
  readonly problems: readonly string[];
}

export interface LevelNow {
  readonly gateway: string;
  readonly nominal: number;
  readonly currentLimit: number;
  readonly seatsInUse: number;
  readonly waiting: number;
  /** The queue that the request would join, the shortest of its hand; undefined: none. */
  readonly queue: { readonly index: number; readonly waiting: number } | undefined;
}

const FLOW_CONTROL = "/apis/flowcontrol.fairway.dev/v1";

const objectOf = <S>({
  metadata,
  spec,
}: {
  metadata: ObjectMeta;
  spec: S;
}): { name: string; uid: string; spec: S } => ({
  name: metadata.name ?? "",
  uid: metadata.uid ?? "",
  spec,
});

/** The flow-control objects of the cluster. */
export async function readFlowObjects(
  api: ClusterApi,
): Promise<{ readonly levels: readonly PriorityLevelObject[]; readonly schemas: readonly FlowSchemaObject[] }> {
  const [levels, schemas] = await Promise.all([
    listObjects(
      api,
      `${FLOW_CONTROL}/prioritylevelconfigurations`,
      PriorityLevelConfigurationSchema,
      "priority levels",
    ),
    listObjects(api, `${FLOW_CONTROL}/flowschemas`, FlowSchemaSchema, "flow schemas"),
  ]);
  return { levels: levels.map(objectOf), schemas: schemas.map(objectOf).sort(compareFlowSchemas) };
}

/** The service behind a host. @throws CliError when no route leads there */
export async function readTarget(api: ClusterApi, host: string): Promise<Target> {
  const routes = await listObjects(api, "/apis/serving.knative.dev/v1/routes", RouteSchema, "routes");
  const target = findTarget(host, routes);
  if (target === undefined) throw new CliError("notFound", noTargetInWords(host, routes));
  return target;
}

/** Total seats only matter for numbers that the gateways tell better; the schema, level and hand do not depend on it. */
const ANY_TOTAL_SEATS = 600;

/** Evaluates with the gateway's own classifier, on the objects as they are in the cluster. Pure. */
export function explainFlow(
  request: AskedRequest,
  target: Target,
  objects: { readonly levels: readonly PriorityLevelObject[]; readonly schemas: readonly FlowSchemaObject[] },
  gateways: readonly GatewayState[],
): FlowExplanation {
  const hooks = { dispatched: () => undefined, expired: () => undefined };
  const controller = new FlowController<never>({ totalSeats: ANY_TOTAL_SEATS, maxWaitMs: 0, hooks }, 0);
  const { dangling, broken } = controller.configure(objects.levels, objects.schemas, 0);
  const attributes: RequestAttributes = attributesOf(request, target);
  const { classification, missed } = controller.explain(attributes);
  const { schema, level, flow } = classification;
  const hand = controller.queueOf(classification)?.hand ?? [];
  const precedence = (object: FlowSchemaObject): number =>
    object.spec.matchingPrecedence ?? DEFAULT_MATCHING_PRECEDENCE;
  return {
    target,
    identity: { user: attributes.user, groups: attributes.groups },
    verb: attributes.verb,
    path: attributes.path ?? "",
    missed: missed.map(({ schema: object, mismatches }) => ({
      schema: object.name,
      precedence: precedence(object),
      rules: mismatches,
    })),
    schema: { name: schema.name, precedence: precedence(schema), distinguisher: schema.spec.distinguisherMethod?.type },
    level: {
      name: level.name,
      type: level.spec.type,
      shares: sharesOf(level.spec),
      shareSum: controller
        .status()
        .filter(({ quiescing }) => !quiescing)
        .reduce((sum, status) => sum + sharesOf(status.level.spec), 0),
      response: level.spec.limited?.limitResponse.type ?? "never waits",
    },
    flow,
    hand,
    now: gateways.flatMap(gateway => levelNow(gateway, level.name, hand)),
    problems: [
      ...dangling.map(one => `flow schema ${one.schema} is not used: its priority level ${one.level} does not exist`),
      ...broken.map(one => `priority level ${one.level} is not used: ${one.problem}`),
    ],
  };
}

function levelNow({ gateway, flowControl }: GatewayState, name: string, hand: readonly number[]): LevelNow[] {
  const level = flowControl.levels.find(candidate => candidate.name === name);
  if (level === undefined) return [];
  const lengths = new Map(
    flowControl.queues.filter(queue => queue.level === name).map(queue => [queue.index, queue.waiting]),
  );
  const dealt = hand.map(index => ({ index, waiting: lengths.get(index) ?? 0 }));
  const shortest = dealt.reduce<LevelNow["queue"]>(
    (best, queue) => (best === undefined || queue.waiting < best.waiting ? queue : best),
    undefined,
  );
  const { nominal, currentLimit, seatsInUse, waiting } = level;
  return [{ gateway, nominal, currentLimit, seatsInUse, waiting, queue: shortest }];
}
