import { parseRevisionAutoscaling } from "../../api/autoscaling.ts";
import { buildConditions, findCondition } from "../../api/conditions.ts";
import { revisionLogUrl } from "../../api/config/observability.ts";
import { AUTOSCALER_FIELD_MANAGER, FIELD_MANAGER, LABEL } from "../../api/labels.ts";
import { deploymentName, privateServiceName, publicServiceName } from "../../api/names.ts";
import { SERVING_API_VERSION, type Revision, type RevisionStatus } from "../../api/serving/v1/types.ts";
import { resolveBounds } from "../../core/autoscaling/bounds.ts";
import type { KubeObject, ObjectKey, ReconcileResult, Reconciler } from "../runtime/types.ts";
import { applyChild } from "./apply-child.ts";
import { buildDeployment, SCALED_BY } from "./build/deployment.ts";
import { buildPublicEndpointSlices } from "./build/public-endpoint-slices.ts";
import { buildPrivateService, buildPublicService } from "./build/revision-services.ts";
import type { ServicesContext } from "./context.ts";
import { INITIAL_SCALE_REACHED, initialScaleReached } from "./initial-scale.ts";
import type { Deployment, Pod } from "./kinds.ts";
import { NotOwnedError } from "./ownership.ts";
import { isReachable } from "./reachability.ts";
import { afterAttempts, asError, isRefusal } from "./refusal.ts";
import { carriedRoutes, routingPatch } from "./routing/routing-metadata.ts";
import { imageDigests } from "./status/container-statuses.ts";
import { judgeRevision, type DeploymentState } from "./status/revision-conditions.ts";

/** Revision -> Deployment, private and public Service with its endpoints; says which Routes lead to it and how it is. */
export class RevisionReconciler implements Reconciler {
  readonly name = "revision";
  readonly #context: ServicesContext;

  constructor(context: ServicesContext) {
    this.#context = context;
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const revision = this.#context.revisions.get(key);
    if (revision === undefined || revision.metadata.deletionTimestamp !== undefined) return {};
    await this.#markRouting(revision, key, signal);

    const made = await this.#deployment(revision, key, signal);
    const failure = await this.#network(revision, key, signal);
    const status = this.#status(revision, key, made.state);
    await this.#context.writer.applyStatus(
      { apiVersion: SERVING_API_VERSION, kind: "Revision", metadata: revision.metadata, status },
      signal,
    );
    this.#tell(revision, status);
    return afterAttempts(made.error, failure);
  }

  async #markRouting(revision: Revision, key: ObjectKey, signal: AbortSignal): Promise<void> {
    const { references, configurations, writer, clock } = this.#context;
    const configuration = configurations.get({
      namespace: key.namespace,
      name: revision.metadata.labels?.[LABEL.configuration] ?? "",
    });
    const routes = references.routeNames(revision, configuration, carriedRoutes(revision));
    const patch = routingPatch(revision, routes, new Date(clock.nowMs()).toISOString());
    if (patch === undefined) return;
    await writer.patchMetadata({ apiVersion: SERVING_API_VERSION, kind: "Revision", ...key }, patch, signal);
  }

  /** What is there after it was brought up to date; an error that another attempt may cure comes beside it. */
  async #deployment(
    revision: Revision,
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<{ readonly state: DeploymentState; readonly error?: Error }> {
    const { deployments, settings } = this.#context;
    const name = deploymentName(key.name);
    const cached = deployments.get({ namespace: key.namespace, name });
    const owner = { object: revision, kind: "Revision" };
    const whole = buildDeployment(revision, settings().pods);
    try {
      if (cached?.metadata?.annotations?.[SCALED_BY] === AUTOSCALER_FIELD_MANAGER) {
        const deployment = await applyChild(this.#context, { desired: whole, cached }, owner, signal);
        return { state: { kind: "present", deployment } };
      }
      // `spec.replicas` changes hands: first it is ours, then ours and the autoscaler's, then the autoscaler's alone. Whoever
      // lets go of a field that nobody else has removes it, and Kubernetes would put 1 there.
      const replicas = cached?.spec?.replicas ?? this.#bounds(revision).atStart;
      const first = withReplicas(whole, replicas);
      const made = await applyChild(this.#context, { desired: first, cached }, owner, signal);
      await this.#context.writer.applyPart(scaleOf(made, replicas), AUTOSCALER_FIELD_MANAGER, signal);
      const deployment = await this.#context.writer.apply(whole, signal);
      return { state: { kind: "present", deployment } };
    } catch (error) {
      if (error instanceof NotOwnedError) return { state: { kind: "foreign", name }, error };
      if (isRefusal(error))
        this.#context.transitions.tell(revision, "deployment", "Warning", "DeploymentRefused", error.detail);
      const failure = asError(error);
      // Pods that run are not less well because their Deployment could not be changed.
      if (cached !== undefined) return { state: { kind: "present", deployment: cached }, error: failure };
      return isRefusal(error)
        ? { state: { kind: "refused", reason: error.reason, message: error.detail }, error }
        : { state: { kind: "missing" }, error: failure };
    }
  }

  /** The Services and the public endpoints. An error comes back: the status is written in any case. */
  async #network(revision: Revision, key: ObjectKey, signal: AbortSignal): Promise<Error | undefined> {
    const { coreServices, endpointSlices, gatewaySlices, scaling, writer } = this.#context;
    const { namespace, name } = key;
    const owner = { object: revision, kind: "Revision" };
    try {
      for (const desired of [buildPrivateService(revision), buildPublicService(revision)]) {
        const cached = coreServices.get({ namespace, name: desired.metadata?.name ?? "" });
        await applyChild(this.#context, { desired, cached }, owner, signal);
      }
      const slicesOf = (service: string) =>
        endpointSlices.list({ namespace, labels: { [LABEL.endpointSliceService]: service } });
      const wanted = buildPublicEndpointSlices(revision, scaling.get(key)?.mode ?? "proxy", {
        gateways: gatewaySlices(),
        pods: slicesOf(privateServiceName(name)),
      });
      const present = slicesOf(publicServiceName(name)).filter(
        slice => slice.metadata?.labels?.[LABEL.endpointSliceManagedBy] === FIELD_MANAGER,
      );
      for (const desired of wanted) {
        const cached = present.find(slice => slice.metadata?.name === desired.metadata?.name);
        await applyChild(this.#context, { desired, cached }, owner, signal);
      }
      const names = new Set(wanted.map(slice => slice.metadata?.name));
      for (const { metadata } of present.filter(slice => !names.has(slice.metadata?.name))) {
        await writer.delete(
          {
            apiVersion: "discovery.k8s.io/v1",
            kind: "EndpointSlice",
            namespace,
            name: metadata?.name ?? "",
            uid: metadata?.uid ?? "",
          },
          signal,
        );
      }
      return undefined;
    } catch (error) {
      if (error instanceof NotOwnedError)
        this.#context.transitions.tell(revision, "network", "Warning", "NotOwned", error.message);
      return asError(error);
    }
  }

  #bounds(revision: Revision): { readonly min: number; readonly initial: number; readonly atStart: number } {
    const { autoscaler } = this.#context.settings();
    const { scaling } = parseRevisionAutoscaling(revision.metadata.annotations);
    const { min, initial } = resolveBounds(autoscaler, scaling, isReachable(revision));
    return { min, initial, atStart: Math.max(min, initial) };
  }

  #status(revision: Revision, key: ObjectKey, deployment: DeploymentState): RevisionStatus {
    const { scaling, settings, clock, pods: podLister } = this.#context;
    const { pods: podSettings } = settings();
    const { min, initial } = this.#bounds(revision);
    const needsPods = deployment.kind === "present" && (isLacking(deployment.deployment) || !hasDigests(revision));
    const pods: readonly Pod[] = needsPods
      ? podLister.list({ namespace: key.namespace, labels: { [LABEL.revision]: key.name } })
      : [];
    const outlook = judgeRevision({
      deployment,
      pods,
      scaling: scaling.get(key),
      minScale: min,
      initialScale: initial,
      initialScaleReached: initialScaleReached(revision),
      waitForNodes: podSettings.deployment.podIsAlwaysSchedulable,
      previous: revision.status?.conditions,
    });
    const logUrl = revisionLogUrl(podSettings.observability, revision.metadata.uid ?? "");
    const digests = imageDigests(revision, pods);
    return {
      observedGeneration: revision.metadata.generation,
      conditions: buildConditions("Revision", outlook.conditions, revision.status?.conditions, clock.nowMs()),
      ...(outlook.initialScaleReached ? { annotations: { [INITIAL_SCALE_REACHED]: "true" } } : {}),
      ...(logUrl === undefined ? {} : { logUrl }),
      containerStatuses: [...digests.containerStatuses],
      ...(digests.initContainerStatuses.length === 0
        ? {}
        : { initContainerStatuses: [...digests.initContainerStatuses] }),
      ...(outlook.actualReplicas === undefined ? {} : { actualReplicas: outlook.actualReplicas }),
      ...(outlook.desiredReplicas === undefined ? {} : { desiredReplicas: outlook.desiredReplicas }),
    };
  }

  /** What happened since the last status. */
  #tell(revision: Revision, status: RevisionStatus): void {
    const { transitions } = this.#context;
    const now = findCondition({ status }, "Ready");
    const before = findCondition(revision, "Ready");
    if (now?.status === "True" && before?.status !== "True") {
      transitions.tell(revision, "ready", "Normal", "RevisionReady", "All resources of the revision are ready");
    }
    if (now?.status === "False" && (before?.status !== "False" || before.reason !== now.reason)) {
      transitions.tell(revision, "ready", "Warning", now.reason ?? "Failed", now.message ?? "not ready");
    }
  }
}

/** Not all pods are ready: why is asked of the pods. */
const isLacking = ({ spec, status }: Deployment): boolean => (status?.readyReplicas ?? 0) < (spec?.replicas ?? 1);

const hasDigests = ({ status }: Revision): boolean =>
  (status?.containerStatuses?.length ?? 0) > 0 &&
  (status?.containerStatuses ?? []).every(({ imageDigest }) => imageDigest !== undefined);

function withReplicas(deployment: Deployment, replicas: number): Deployment {
  const annotations = { ...deployment.metadata?.annotations };
  delete annotations[SCALED_BY];
  return {
    ...deployment,
    metadata: { ...deployment.metadata, annotations },
    spec: { ...deployment.spec, replicas },
  };
}

const scaleOf = ({ metadata }: KubeObject, replicas: number): Deployment => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: metadata?.name, namespace: metadata?.namespace },
  spec: { replicas },
});
