import { Gauge, type Registry } from "prom-client";
import type { Decision } from "./revision-scaler.ts";

const LABELS = ["namespace_name", "revision_name"] as const;
type Gauges = ReturnType<typeof gauges>;

function gauges(registry: Registry) {
  const gauge = (name: string, help: string): Gauge<(typeof LABELS)[number]> =>
    new Gauge({ name: `autoscaler_${name}`, help, labelNames: LABELS, registers: [registry] });
  return {
    desired_pods: gauge("desired_pods", "Pods the policy wants"),
    requested_pods: gauge("requested_pods", "Pods asked of Kubernetes"),
    actual_pods: gauge("actual_pods", "Ready pods"),
    not_ready_pods: gauge("not_ready_pods", "Pods that are not ready"),
    excess_burst_capacity: gauge("excess_burst_capacity", "Excess burst capacity over the panic window"),
    stable_value: gauge("stable_value", "Concurrency or requests per second over the stable window"),
    panic_value: gauge("panic_value", "Concurrency or requests per second over the panic window"),
    target_value: gauge("target_value", "Aimed-at concurrency or requests per second of a pod"),
    panic_mode: gauge("panic_mode", "1 in panic, else 0"),
  };
}

/** The autoscaler's numbers of each revision it follows, under Knative's names where they mean the same. */
export class ScalingMetrics {
  readonly #gauges: Gauges;

  constructor(registry: Registry) {
    this.#gauges = gauges(registry);
  }

  observe(namespace: string, revision: string, decision: Decision): void {
    const labels = { namespace_name: namespace, revision_name: revision };
    const { outcome, observation, replicasBefore, livePods } = decision;
    const ready = observation.readyPods ?? 0;
    this.#gauges.desired_pods.set(labels, outcome.desired ?? 0);
    this.#gauges.requested_pods.set(labels, outcome.step.replicas ?? replicasBefore ?? 0);
    this.#gauges.actual_pods.set(labels, ready);
    this.#gauges.not_ready_pods.set(labels, Math.max(0, livePods - ready));
    this.#gauges.excess_burst_capacity.set(labels, outcome.excessBurstCapacity);
    if (!outcome.decision.valid || outcome.decision.policy !== "kpa") return;
    const { explanation } = outcome.decision;
    this.#gauges.stable_value.set(labels, explanation.stableValue);
    this.#gauges.panic_value.set(labels, explanation.panicValue);
    this.#gauges.target_value.set(labels, explanation.targetValue);
    this.#gauges.panic_mode.set(labels, explanation.panicRatchet > 0 ? 1 : 0);
  }

  forget(namespace: string, revision: string): void {
    for (const gauge of Object.values(this.#gauges)) {
      gauge.remove({ namespace_name: namespace, revision_name: revision });
    }
  }
}
