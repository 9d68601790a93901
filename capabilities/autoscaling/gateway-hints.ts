import type { RevisionHint } from "../../api/wire/stats.ts";
import {
  adaptConcurrency,
  type Adaptation,
  type AdaptedConcurrency,
  type InstanceSecond,
} from "../../core/autoscaling/adaptive-concurrency.ts";
import type { CloudRunSpec } from "../../core/autoscaling/cloud-run-spec.ts";
import type { PolicyDecision } from "../../core/autoscaling/scale-revision.ts";

interface Advice {
  demotedPods: readonly string[];
  pendingTimeoutMs: number | undefined;
  maxima: InstanceMaxima | undefined;
  adapted: AdaptedConcurrency;
  adaptations: readonly Adaptation[];
}

/** Maximum concurrency of instances of which the gateways know none: the revision sets no limit, the policy has one. */
export interface InstanceMaxima {
  readonly instances: readonly string[];
  readonly maxConcurrency: number;
}

/**
 * What Cloud Run's policy tells the gateways of each revision: which instances get requests last, how many requests each takes
 * now, how long a request may wait. Other policies have nothing to tell. Keys are `namespace/revision`.
 */
export class GatewayHints {
  readonly #advice = new Map<string, Advice>();

  /** After each decision. */
  decided(key: string, decision: PolicyDecision, maxima: InstanceMaxima | undefined): void {
    if (!decision.valid) return;
    if (decision.policy !== "cloud-run") {
      this.#advice.delete(key);
      return;
    }
    const advice = this.#of(key);
    advice.demotedPods = decision.demoted.map(instance => instance.name);
    advice.pendingTimeoutMs = decision.pendingTimeoutMs;
    advice.maxima = maxima;
  }

  /** Once a second, when the instances were asked for their numbers. */
  second(key: string, spec: CloudRunSpec, seconds: readonly InstanceSecond[]): void {
    const advice = this.#of(key);
    if (!spec.adaptiveConcurrency) {
      advice.adapted = new Map();
      advice.adaptations = [];
      return;
    }
    const { next, adaptations } = adaptConcurrency(spec.maxConcurrency, advice.adapted, seconds);
    advice.adapted = next;
    advice.adaptations = adaptations;
  }

  /** Instances that take fewer requests than configured. */
  adapted(key: string): AdaptedConcurrency | undefined {
    return this.#advice.get(key)?.adapted;
  }

  /** The instances' present maxima, for people; undefined for a revision of another policy. */
  adaptations(key: string): readonly Adaptation[] | undefined {
    return this.#advice.get(key)?.adaptations;
  }

  /** The whole set, as it goes to the gateways. */
  all(): Record<string, RevisionHint> {
    return Object.fromEntries(
      [...this.#advice].map(([key, { demotedPods, pendingTimeoutMs, maxima, adapted }]) => [
        key,
        {
          demotedPods: [...demotedPods],
          podConcurrency: Object.fromEntries([
            ...(maxima?.instances ?? []).map((name): [string, number] => [name, maxima?.maxConcurrency ?? 1]),
            ...adapted,
          ]),
          ...(pendingTimeoutMs === undefined ? {} : { pendingTimeoutMs }),
        },
      ]),
    );
  }

  forget(key: string): void {
    this.#advice.delete(key);
  }

  clear(): void {
    this.#advice.clear();
  }

  #of(key: string): Advice {
    let advice = this.#advice.get(key);
    if (advice === undefined) {
      advice = { demotedPods: [], pendingTimeoutMs: undefined, maxima: undefined, adapted: new Map(), adaptations: [] };
      this.#advice.set(key, advice);
    }
    return advice;
  }
}
