import { setTimeout as delay } from "node:timers/promises";
import { SYSTEM_NAMESPACE } from "../../hack/kit/install.ts";
import { KubeError, type AnyObject } from "../../hack/kit/kube.ts";
import { load, type LoadReport, type Target } from "../../hack/kit/load.ts";
import { waitFor } from "../../hack/kit/wait.ts";
import { kube, target } from "./support.ts";

/** What the tests read of the operator's `/debug/scaling` page. */
export interface ScalingPage {
  readonly decision: {
    readonly atMs: number;
    readonly replicasBefore?: number;
    readonly observation: { readonly readyPods?: number };
    readonly outcome: {
      readonly desired?: number;
      readonly excessBurstCapacity: number;
      readonly decision: {
        readonly valid: boolean;
        readonly explanation?: Readonly<Record<string, number | string | undefined>>;
        readonly demoted?: readonly { readonly name: string; readonly group: string }[];
        readonly pendingTimeoutMs?: number;
      };
      readonly step: { readonly mode: "proxy" | "serve"; readonly wanted?: number };
    };
  };
  readonly explanation: {
    readonly pods?: number;
    readonly winner: string;
    readonly lines: readonly { readonly rule: string; readonly text: string; readonly won: boolean }[];
  };
  readonly lastChange?: {
    readonly atMs: number;
    readonly from: number;
    readonly to: number;
    readonly winner: string;
    readonly pokedMs?: number;
  };
  readonly adaptations?: readonly {
    readonly name: string;
    readonly maximum: number;
    readonly rule: string;
    readonly cpu?: number;
  }[];
}

async function podNames(component: "operator" | "gateway"): Promise<string[]> {
  const selector = `app.kubernetes.io/component=${component}`;
  const pods = await kube().list("v1", "Pod", SYSTEM_NAMESPACE, selector);
  return pods.flatMap(pod => pod.metadata?.name ?? []);
}

/** The leading operator's last decision; undefined while there is none. */
export async function scalingPage(namespace: string, revision: string): Promise<ScalingPage | undefined> {
  for (const pod of await podNames("operator")) {
    try {
      const path = `/debug/scaling?namespace=${namespace}&revision=${revision}`;
      return JSON.parse(await kube().podGet(SYSTEM_NAMESPACE, pod, 9090, path)) as ScalingPage;
    } catch (error) {
      // The other replica leads, or this one is going.
      if (!(error instanceof KubeError)) throw error;
    }
  }
  return undefined;
}

/** Waits until the last decision satisfies `matches`. */
export async function waitForDecision(
  namespace: string,
  revision: string,
  what: string,
  matches: (page: ScalingPage) => boolean,
  timeoutMs = 60_000,
): Promise<ScalingPage> {
  return waitFor(
    `a decision about ${revision} with ${what}`,
    async () => {
      const page = await scalingPage(namespace, revision);
      if (page !== undefined && matches(page)) return page;
      throw new Error(JSON.stringify(page?.explanation));
    },
    { timeoutMs, everyMs: 250 },
  );
}

/** A revision as one gateway knows it. */
export interface GatewayRevision {
  readonly waiting: number;
  readonly inFlight: number;
  /** Longest wait for a place. */
  readonly maxWaitMs: number;
  readonly pods: readonly {
    readonly name: string;
    readonly limit: number | "unlimited";
    readonly demoted: boolean;
    readonly inFlight: number;
  }[];
}

/** The revision as each gateway knows it. */
export async function gatewayRevisions(namespace: string, revision: string): Promise<GatewayRevision[]> {
  const found: GatewayRevision[] = [];
  for (const pod of await podNames("gateway")) {
    const page = JSON.parse(await kube().podGet(SYSTEM_NAMESPACE, pod, 9090, "/debug/revisions")) as Readonly<
      Record<string, GatewayRevision>
    >;
    const known = page[`${namespace}/${revision}`];
    if (known !== undefined) found.push(known);
  }
  return found;
}

/** The service at each gateway: who goes by the gateways' Service cannot choose how many of its connections come to which. */
export async function targetsByGateway(namespace: string, name: string): Promise<Target[]> {
  const { host } = target(namespace, name);
  return (await gatewayAddresses()).map(address => ({ address, port: 8080, host }));
}

export const gatewayAddresses = (): Promise<string[]> =>
  podAddresses(SYSTEM_NAMESPACE, "app.kubernetes.io/component=gateway");

/** Addresses of the pods that the selector matches and that have one. */
export async function podAddresses(namespace: string, labelSelector: string): Promise<string[]> {
  const pods = await kube().list("v1", "Pod", namespace, labelSelector);
  return pods.flatMap(({ status }) => (typeof status?.["podIP"] === "string" ? [status["podIP"]] : [])).sort();
}

/** Messages of the events of a reason about an object, oldest first. */
export async function eventsOf(namespace: string, objectName: string, reason: string): Promise<string[]> {
  const events = await kube().list("v1", "Event", namespace);
  return (events as readonly (AnyObject & EventFields)[])
    .filter(event => event.involvedObject?.name === objectName && event.reason === reason)
    .map(event => event.message ?? "");
}

interface EventFields {
  readonly involvedObject?: { readonly name?: string };
  readonly reason?: string;
  readonly message?: string;
}

/** Load that goes on in the background until `end` is called, which gives the report. */
export function startLoad(
  target: Target,
  options: Omit<Parameters<typeof load>[1], "perClient" | "until">,
): { end(): Promise<LoadReport> } {
  const stop = new AbortController();
  const sending = load(target, { ...options, perClient: 1_000_000, until: stop.signal });
  // Whoever never asks for the end must not end the process.
  sending.catch(() => undefined);
  return {
    end: () => {
      stop.abort();
      return sending;
    },
  };
}

/** Calls `look` every `everyMs` until it returns true or `timeoutMs` is over; gives whether it did. */
export async function watchUntil(look: () => Promise<boolean>, timeoutMs: number, everyMs = 500): Promise<boolean> {
  const deadline = Date.now() + timeoutMs;
  while (Date.now() < deadline) {
    if (await look()) return true;
    await delay(everyMs);
  }
  return false;
}

/** Addresses in the public EndpointSlices of a revision's own Service. */
export async function publicAddresses(namespace: string, revision: string): Promise<string[]> {
  const slices = await kube().list(
    "discovery.k8s.io/v1",
    "EndpointSlice",
    namespace,
    `kubernetes.io/service-name=${revision}`,
  );
  return (slices as readonly (AnyObject & { endpoints?: readonly { addresses: readonly string[] }[] | null })[])
    .flatMap(slice => slice.endpoints ?? [])
    .flatMap(endpoint => endpoint.addresses)
    .sort();
}
