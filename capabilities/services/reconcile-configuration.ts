import {
  buildConditions,
  conditionFalse,
  conditionTrue,
  conditionUnknown,
  findCondition,
  isReady,
  type Observation,
} from "../../api/conditions.ts";
import { LABEL } from "../../api/labels.ts";
import {
  SERVING_API_VERSION,
  type Configuration,
  type ConfigurationStatus,
  type Revision,
} from "../../api/serving/v1/types.ts";
import { isAlreadyExists } from "../runtime/api-error.ts";
import { jsonEqual } from "../runtime/equality.ts";
import type { ObjectKey, ReconcileResult, Reconciler } from "../runtime/types.ts";
import { isControlledBy } from "./build/metadata.ts";
import { buildRevision } from "./build/revision.ts";
import type { ServicesContext } from "./context.ts";
import { selectGarbage } from "./garbage/select-garbage.ts";
import { ownershipOf } from "./ownership.ts";
import { isRefusal, USER_RETRY_MS } from "./refusal.ts";

/** The caches do not show yet what was just made, or still show what is being removed. */
const CACHE_LAG_MS = 250;

/** Configuration -> one Revision per generation of its template; removes those nobody needs. */
export class ConfigurationReconciler implements Reconciler {
  readonly name = "configuration";
  readonly #context: ServicesContext;

  constructor(context: ServicesContext) {
    this.#context = context;
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    const configuration = this.#context.configurations.get(key);
    if (configuration === undefined || configuration.metadata.deletionTimestamp !== undefined) return {};
    const latest = await this.#latestRevision(configuration, signal);
    if (latest.kind === "wait") return { requeueAfterMs: CACHE_LAG_MS };
    if (latest.kind === "refused") return { requeueAfterMs: USER_RETRY_MS };

    const owned = this.#context.revisions.ownedBy(configuration.metadata.uid ?? "");
    const status = this.#status(configuration, latest, owned);
    await this.#context.writer.applyStatus(
      { apiVersion: SERVING_API_VERSION, kind: "Configuration", metadata: configuration.metadata, status },
      signal,
    );
    this.#tell(configuration, status);
    return this.#removeGarbage({ ...configuration, status }, owned, signal);
  }

  /** The revision of the present generation, made if it is not there. */
  async #latestRevision(configuration: Configuration, signal: AbortSignal): Promise<Latest> {
    const { revisions, writer, clock, transitions, references } = this.#context;
    const { namespace, generation } = configuration.metadata;
    const ownName = configuration.spec.template.metadata?.name;
    const existing = ownName
      ? revisions.get({ namespace, name: ownName })
      : revisions
          .list({
            namespace,
            labels: {
              [LABEL.configuration]: configuration.metadata.name ?? "",
              [LABEL.configurationGeneration]: String(generation),
            },
          })
          .find(revision => isControlledBy(revision, configuration));
    if (existing !== undefined) return this.#judgeExisting(existing, configuration);
    const desired = buildRevision(
      configuration,
      references.routesOfLatest(configuration),
      new Date(clock.nowMs()).toISOString(),
    );
    try {
      const revision = await writer.create(desired, signal);
      transitions.tell(
        configuration,
        "created",
        "Normal",
        "Created",
        `Created Revision "${revision.metadata.name ?? ""}"`,
      );
      return { kind: "revision", revision };
    } catch (error) {
      // Made a moment ago, or of a Configuration of this name that was deleted a moment ago.
      if (isAlreadyExists(error)) return { kind: "wait" };
      if (!isRefusal(error)) throw error;
      await this.#refused(configuration, error.detail, signal);
      return { kind: "refused" };
    }
  }

  #judgeExisting(revision: Revision, configuration: Configuration): Latest {
    switch (ownershipOf(revision, configuration, "Configuration")) {
      case "predecessor":
        return { kind: "wait" };
      case "foreign":
        return { kind: "taken", name: revision.metadata.name ?? "" };
      case "ours": {
        const sameGeneration =
          revision.metadata.labels?.[LABEL.configurationGeneration] === String(configuration.metadata.generation);
        // The template of an earlier generation came back under its name: the same revision.
        return sameGeneration || jsonEqual(revision.spec, configuration.spec.template.spec)
          ? { kind: "revision", revision }
          : { kind: "taken", name: revision.metadata.name ?? "" };
      }
    }
  }

  /** The API server refuses the revision itself: what the user wrote cannot run here. */
  async #refused(configuration: Configuration, detail: string, signal: AbortSignal): Promise<void> {
    const message = `Revision creation failed with message: ${detail}.`;
    const { status: before } = configuration;
    await this.#context.writer.applyStatus(
      {
        apiVersion: SERVING_API_VERSION,
        kind: "Configuration",
        metadata: configuration.metadata,
        status: {
          ...before,
          observedGeneration: configuration.metadata.generation,
          conditions: this.#conditions(configuration, conditionFalse("RevisionFailed", message)),
        },
      },
      signal,
    );
    this.#context.transitions.tell(configuration, "created", "Warning", "CreationFailed", message);
  }

  #status(
    configuration: Configuration,
    latest: Exclude<Latest, { kind: "wait" | "refused" }>,
    owned: readonly Revision[],
  ): ConfigurationStatus {
    const { status: before } = configuration;
    if (latest.kind === "taken") {
      const message = `Revision creation failed with message: revisions "${latest.name}" already exists.`;
      return {
        ...before,
        observedGeneration: configuration.metadata.generation,
        conditions: this.#conditions(configuration, conditionFalse("RevisionFailed", message)),
      };
    }
    const latestReady = newestReady(latest.revision, owned, before?.latestReadyRevisionName);
    return {
      observedGeneration: configuration.metadata.generation,
      conditions: this.#conditions(configuration, readyCondition(latest.revision, latestReady, before)),
      latestCreatedRevisionName: latest.revision.metadata.name ?? "",
      ...(latestReady === undefined ? {} : { latestReadyRevisionName: latestReady.metadata.name ?? "" }),
    };
  }

  #conditions(configuration: Configuration, Ready: Observation) {
    return buildConditions("Configuration", { Ready }, configuration.status?.conditions, this.#context.clock.nowMs());
  }

  #tell(configuration: Configuration, status: ConfigurationStatus): void {
    const { transitions } = this.#context;
    const ready = status.latestReadyRevisionName;
    if (ready !== undefined && ready !== configuration.status?.latestReadyRevisionName) {
      transitions.tell(
        configuration,
        "latestReady",
        "Normal",
        "LatestReadyUpdate",
        `The latest ready revision is "${ready}"`,
      );
    }
    const now = findCondition({ status }, "Ready");
    const before = findCondition(configuration, "Ready");
    const isNew = status.latestCreatedRevisionName !== configuration.status?.latestCreatedRevisionName;
    if (now?.status === "False" && (before?.status !== "False" || isNew)) {
      const reason = status.latestCreatedRevisionName === ready ? "LatestReadyFailed" : "LatestCreatedFailed";
      transitions.tell(configuration, "ready", "Warning", reason, now.message ?? "");
    }
  }

  async #removeGarbage(
    configuration: Configuration,
    owned: readonly Revision[],
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { clock, settings, writer } = this.#context;
    const nowMs = clock.nowMs();
    const { garbage, recheckAtMs } = selectGarbage(configuration, owned, settings().gc, nowMs);
    for (const { metadata } of garbage) {
      await writer.delete(
        {
          apiVersion: SERVING_API_VERSION,
          kind: "Revision",
          namespace: metadata.namespace,
          name: metadata.name ?? "",
          uid: metadata.uid ?? "",
        },
        signal,
      );
    }
    return recheckAtMs === undefined ? {} : { requeueAfterMs: Math.max(0, recheckAtMs - nowMs) };
  }
}

type Latest =
  | { readonly kind: "revision"; readonly revision: Revision }
  /** A revision of this name was not made from this template. */
  | { readonly kind: "taken"; readonly name: string }
  | { readonly kind: "wait" }
  /** The API server does not take it; the status says so. */
  | { readonly kind: "refused" };

const generationOf = (revision: Revision): number =>
  Number(revision.metadata.labels?.[LABEL.configurationGeneration] ?? 0);

/**
 * The newest ready revision that is not older than the one that was it before; the present template's comes first, whatever its
 * generation (a name of the user's own may have come back). Undefined: none was ever ready, or it was deleted.
 */
function newestReady(latest: Revision, owned: readonly Revision[], before: string | undefined): Revision | undefined {
  if (isReady(latest)) return latest;
  const previous = owned.find(revision => revision.metadata.name === before);
  const floor = previous === undefined ? 0 : generationOf(previous);
  const candidates = owned
    .filter(revision => revision.metadata.name !== latest.metadata.name && generationOf(revision) >= floor)
    .toSorted((a, b) => generationOf(b) - generationOf(a));
  return candidates.find(isReady) ?? previous;
}

function readyCondition(
  latest: Revision,
  latestReady: Revision | undefined,
  before: ConfigurationStatus | undefined,
): Observation {
  const name = latest.metadata.name ?? "";
  const ready = findCondition(latest, "Ready");
  if (ready?.status === "False") {
    return conditionFalse(
      "RevisionFailed",
      `Revision "${name}" failed with message: ${ready.message ?? ready.reason ?? ""}.`,
    );
  }
  if (isReady(latest)) return conditionTrue();
  return latestReady === undefined && before?.latestReadyRevisionName !== undefined
    ? conditionUnknown("RevisionDeleted", `Revision "${before.latestReadyRevisionName}" was deleted.`)
    : conditionUnknown();
}
