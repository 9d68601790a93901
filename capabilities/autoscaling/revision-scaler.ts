import type { V1Deployment, V1Pod } from "@kubernetes/client-node";
import { AUTOSCALER_FIELD_MANAGER, LABEL } from "../../api/labels.ts";
import { deploymentName } from "../../api/names.ts";
import type { Revision } from "../../api/serving/v1/types.ts";
import type { AdaptedConcurrency } from "../../core/autoscaling/adaptive-concurrency.ts";
import { revisionKey, type MetricCollector } from "../../core/autoscaling/collector.ts";
import { observeRevision } from "../../core/autoscaling/observe-revision.ts";
import type { WindowsSpec } from "../../core/autoscaling/revision-windows.ts";
import {
  initialRevisionState,
  scaleRevision,
  type PolicySpec,
  type RevisionObservation,
  type RevisionSpec,
  type RevisionState,
  type ScaleOutcome,
} from "../../core/autoscaling/scale-revision.ts";
import { isNotFound } from "../runtime/api-error.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ClusterWriter, KubeObject, Lister, ObjectKey, ReconcileResult, Reconciler } from "../runtime/types.ts";
import { isReachable } from "../services/reachability.ts";
import { lifecycleFromStatus, livePods, readyPods, type ReadyPod } from "./observe.ts";
import type { ScalingBoard } from "./scaling-board.ts";
import { noteOf } from "./scaling-note.ts";

/** Which pods a ReplicaSet deletes first; a number as text. */
const DELETION_COST = "controller.kubernetes.io/pod-deletion-cost";
const FIRST_TO_GO = "-100";

/** What a revision asks for, from its annotations, its Service's, and config-autoscaler. */
export interface ResolvedScaling {
  readonly spec: RevisionSpec;
  readonly windows: WindowsSpec;
}

/** One decision with what it was made from: for `fairway why`, metrics and the simulator's comparison. */
export interface Decision {
  readonly atMs: number;
  readonly spec: RevisionSpec;
  readonly observation: RevisionObservation;
  readonly outcome: ScaleOutcome;
  /** `.spec.replicas` before this decision. */
  readonly replicasBefore: number | undefined;
  /** When a gateway last told that requests need a pod, if it did since the decision before. */
  readonly pokedMs: number | undefined;
  readonly livePods: number;
}

export interface RevisionScalerDependencies {
  readonly revisions: Lister<Revision & KubeObject>;
  readonly deployments: Lister<V1Deployment & KubeObject>;
  readonly pods: Lister<V1Pod & KubeObject>;
  readonly collector: MetricCollector;
  readonly board: ScalingBoard;
  readonly writer: Pick<ClusterWriter, "applyPart" | "patchMetadata">;
  readonly clock: Pick<Clock, "nowMs">;
  /** Throws when the annotations or the configuration cannot be read; the revision then keeps its pods. */
  readonly resolve: (revision: Revision, reachable: boolean, replicas: number) => ResolvedScaling;
  /** A revision's instances that take fewer requests than configured, by adaptive concurrency. */
  readonly adapted: (key: string) => AdaptedConcurrency | undefined;
  /** Hears each decision; must not block or throw. */
  readonly onDecision: (key: string, revision: Revision, decision: Decision) => void;
  readonly onGone: (key: string, object: ObjectKey) => void;
}

interface Followed {
  readonly state: RevisionState;
  /** Since when requests can only come through the gateways; undefined in serve mode. */
  readonly gatewaysInPathSinceMs: number | undefined;
  readonly ready: readonly ReadyPod[];
  readonly windows: WindowsSpec;
  readonly policy: PolicySpec;
}

/**
 * Decides and writes the number of pods of one revision per call. Woken by the tick while the revision has load or
 * pods, by a gateway's poke, by changes of its objects, and when a wait of its own ends. An idle revision costs nothing.
 *
 * Memory only: a new leader starts with the revision's status and holds the pods until it has data.
 */
export class RevisionScaler implements Reconciler {
  readonly name = "autoscaling";
  readonly #deps: RevisionScalerDependencies;
  readonly #followed = new Map<string, Followed>();
  readonly #active = new Map<string, ObjectKey>();
  /** Revisions, `namespace/name`, about which a gateway poked since they were last decided. */
  readonly #pokedMs = new Map<string, number>();

  constructor(dependencies: RevisionScalerDependencies) {
    this.#deps = dependencies;
  }

  /** Revisions to decide at each tick. */
  active(): Iterable<ObjectKey> {
    return this.#active.values();
  }

  /** Whether the revision, `namespace/name`, is decided at each tick. */
  isActive(key: string): boolean {
    return this.#active.has(key);
  }

  /** A gateway told that requests of the revision, `namespace/name`, need a pod. */
  poked(key: string): void {
    this.#pokedMs.set(key, this.#deps.clock.nowMs());
  }

  /** Revisions whose pods are to be asked for their numbers now. */
  *scrapeTargets(): Iterable<{
    readonly key: string;
    readonly ready: readonly ReadyPod[];
    readonly windows: WindowsSpec;
  }> {
    for (const key of this.#active.keys()) {
      const followed = this.#followed.get(key);
      if (followed !== undefined && followed.ready.length > 0 && followed.windows.scraped) yield { key, ...followed };
    }
  }

  /** Ready pods whose instances count one by one, and the nodes they are on. */
  *measuredPods(): Iterable<{ readonly namespace: string; readonly name: string; readonly hostIp: string }> {
    for (const { key, ready, windows } of this.scrapeTargets()) {
      if (windows.perInstance !== true) continue;
      const namespace = key.slice(0, key.indexOf("/"));
      for (const { name, hostIp } of ready) if (hostIp !== undefined) yield { namespace, name, hostIp };
    }
  }

  /** What a followed revision was last decided by. */
  policyOf(key: string): PolicySpec | undefined {
    return this.#followed.get(key)?.policy;
  }

  /** Forgets everything: called when a term as leader begins. */
  reset(): void {
    for (const key of this.#followed.keys()) this.#deps.collector.unregister(key);
    this.#followed.clear();
    this.#active.clear();
    this.#pokedMs.clear();
    this.#deps.board.clear();
  }

  async reconcile(object: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const { revisions, deployments, collector, board, clock } = this.#deps;
    const namespace = object.namespace ?? "";
    const key = revisionKey(namespace, object.name);
    const revision = revisions.get(object);
    if (revision === undefined || revision.metadata.deletionTimestamp !== undefined) {
      this.#forget(object, key);
      return {};
    }
    const deployment = deployments.get({ namespace, name: deploymentName(object.name) });
    // The revision's reconciler makes the Deployment with the initial scale; its arrival wakes this key again.
    if (deployment === undefined) return {};

    const nowMs = clock.nowMs();
    const pokedMs = this.#pokedMs.get(key);
    this.#pokedMs.delete(key);
    const reachable = isReachable(revision);
    const { spec, windows } = this.#deps.resolve(revision, reachable, deployment.spec?.replicas ?? 0);
    collector.register(key, windows, nowMs);

    const pods = this.#deps.pods.list({ namespace, labels: { [LABEL.revision]: object.name } });
    const live = livePods(pods);
    const ready = readyPods(live);
    const before = this.#followed.get(key);
    const state = before?.state ?? initialRevisionState(lifecycleFromStatus(revision, nowMs), ready.length, nowMs);
    const gatewaysInPathSinceMs = before === undefined ? nowMs : before.gatewaysInPathSinceMs;
    const observation = observeRevision(
      spec.policy,
      collector,
      key,
      live,
      gatewaysInPathSinceMs,
      nowMs,
      this.#deps.adapted(key),
    );
    const outcome = scaleRevision(spec, observation, state, nowMs);
    const { step, next } = outcome;
    const replicasBefore = deployment.spec?.replicas;
    if (step.replicas !== undefined && step.replicas !== replicasBefore) {
      await this.#markStops(namespace, outcome, signal);
      await this.#scale(deployment, step.replicas, signal);
    }

    this.#followed.set(key, {
      state: next,
      gatewaysInPathSinceMs: step.mode === "serve" ? undefined : (gatewaysInPathSinceMs ?? nowMs),
      ready,
      windows,
      policy: spec.policy,
    });
    const wantedReplicas = step.replicas ?? replicasBefore ?? 0;
    if (wantedReplicas === 0 && pods.length === 0 && collector.release(key, nowMs)) this.#active.delete(key);
    else this.#active.set(key, object);

    const decision: Decision = {
      atMs: nowMs,
      spec,
      observation,
      outcome,
      replicasBefore,
      pokedMs,
      livePods: live.length,
    };
    const { min, initial } = spec.lifecycle.bounds;
    board.publish(object, {
      mode: step.mode,
      activity: next.lifecycle.activity,
      wanted: step.wanted,
      readyBeforeTraffic: next.lifecycle.initialScaleReached ? undefined : Math.max(min, initial),
      note: noteOf(decision),
    });
    this.#deps.onDecision(key, revision, decision);
    return step.recheckAtMs === undefined ? {} : { requeueAfterMs: Math.max(0, step.recheckAtMs - nowMs) };
  }

  async #scale(deployment: V1Deployment & KubeObject, replicas: number, signal: AbortSignal): Promise<void> {
    const { name, namespace } = deployment.metadata ?? {};
    await this.#deps.writer.applyPart<KubeObject & { readonly spec: { readonly replicas: number } }>(
      { apiVersion: "apps/v1", kind: "Deployment", metadata: { name, namespace }, spec: { replicas } },
      AUTOSCALER_FIELD_MANAGER,
      signal,
    );
  }

  /** Makes the instances that the policy chose the first to go: Kubernetes stops those of the lowest cost first. */
  async #markStops(namespace: string, { decision }: ScaleOutcome, signal: AbortSignal): Promise<void> {
    if (!decision.valid || decision.policy !== "cloud-run") return;
    for (const { name } of decision.stops) {
      const pod = { apiVersion: "v1", kind: "Pod", namespace, name };
      try {
        await this.#deps.writer.patchMetadata(pod, { annotations: { [DELETION_COST]: FIRST_TO_GO } }, signal);
      } catch (error) {
        // It went by itself.
        if (!isNotFound(error)) throw error;
      }
    }
  }

  #forget(object: ObjectKey, key: string): void {
    this.#followed.delete(key);
    this.#active.delete(key);
    this.#pokedMs.delete(key);
    this.#deps.collector.unregister(key);
    this.#deps.board.remove(object);
    this.#deps.onGone(key, object);
  }
}
