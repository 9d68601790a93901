import { SYSTEM_NAMESPACE } from "../kit/install.ts";
import type { AnyObject, Kube } from "../kit/kube.ts";
import { metricValue, sumOfMetric } from "../kit/metrics.ts";
import type { Frame } from "./view.ts";

export const SERVICE = { namespace: "default", name: "hello" } as const;

/** Everything the view shows, asked of the cluster as any user may. */
export async function observe(kube: Kube, revision: string, stage: string): Promise<Frame> {
  const [deployment, operators, gateways] = await Promise.all([
    kube.get({
      apiVersion: "apps/v1",
      kind: "Deployment",
      namespace: SERVICE.namespace,
      name: `${revision}-deployment`,
    }),
    metricsOf(kube, "operator"),
    metricsOf(kube, "gateway"),
  ]);
  const labels = { namespace_name: SERVICE.namespace, revision_name: revision };
  const of = { namespace: SERVICE.namespace, revision };
  const ofLeader = (name: string): number | undefined =>
    operators.map(text => metricValue(text, name, labels)).find(value => value !== undefined);
  return {
    stage,
    podsReady: count(deployment, "status", "readyReplicas"),
    podsWanted: count(deployment, "spec", "replicas"),
    concurrency: ofLeader("autoscaler_panic_value"),
    desired: ofLeader("autoscaler_desired_pods"),
    panic: ofLeader("autoscaler_panic_mode") === 1,
    waiting: gateways.reduce((sum, text) => sum + sumOfMetric(text, "fairway_gateway_queue_depth", of), 0),
  };
}

function count(object: AnyObject | undefined, part: "spec" | "status", field: string): number {
  const value = object?.[part]?.[field];
  return typeof value === "number" ? value : 0;
}

/** The text of /metrics of each running pod of a component; a pod that is just going is left out. */
async function metricsOf(kube: Kube, component: string): Promise<readonly string[]> {
  const pods = await kube.list("v1", "Pod", SYSTEM_NAMESPACE, `app.kubernetes.io/component=${component}`);
  const texts = await Promise.all(
    pods.map(pod => kube.podGet(SYSTEM_NAMESPACE, pod.metadata?.name ?? "", 9090, "/metrics").catch(() => "")),
  );
  return texts.filter(text => text !== "");
}
