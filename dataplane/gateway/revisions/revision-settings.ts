import { AUTOSCALING_CLASS, FLOW_CONTROL, getAnnotation, type Annotations } from "../../../api/annotations.ts";
import { parseRevisionAutoscaling } from "../../../api/autoscaling.ts";
import { LABEL } from "../../../api/labels.ts";
import { parseDurationMs } from "../../../api/meta/go-format.ts";
import type { Condition } from "../../../api/meta/status.ts";
import type { Revision } from "../../../api/serving/v1/types.ts";
import { NO_STARTS, pendingTimeoutMs } from "../../../core/autoscaling/start-times.ts";
import type { PlacePolicy } from "../../../core/flowcontrol/place-queue.ts";
import type { RelayTimeouts } from "../../shared/http/relay.ts";

/** Why a revision cannot serve, as its conditions say. */
export interface RevisionTrouble {
  readonly reason: string;
  readonly message: string;
}

/** What the gateway goes by for one revision. */
export interface RevisionSettings {
  readonly service: string;
  readonly protocol: "h1" | "h2c";
  /** Requests one pod takes at a time; Infinity for no limit. */
  readonly podConcurrency: number;
  readonly timeouts: RelayTimeouts;
  /** The same, for a pod that no longer can keep them: they come later than the pod's own. */
  readonly backstop: RelayTimeouts;
  /** Requests that may wait for a place here. */
  readonly queueLength: number;
  /** Longest wait for a place by the annotation; absent: as the autoscaler hints, else the revision's own timeout. */
  readonly maxWaitMs?: number;
  /** Longest wait by the scaling policy while the autoscaler has not told it. */
  readonly assumedWaitMs?: number;
  readonly queuePolicy: PlacePolicy;
  /** Seats that a request takes at the gateway. */
  readonly width: number;
  /** Set while the revision has failed (Ready is False). */
  readonly failed?: RevisionTrouble;
  /** What keeps it from having ready pods, failed or not yet: explains a wait that was in vain. */
  readonly trouble?: RevisionTrouble;
}

export interface SettingsDefaults {
  readonly queueLength: number;
}

const DEFAULT_TIMEOUT_SECONDS = 300;
/** How much later the gateway's timeouts come than those of queue-proxy, which sits next to the app and knows better. */
const BACKSTOP_MS = 5_000;

/** A timeout of 0 is none and stays none. */
export function backstopOf({ wholeMs, responseStartMs, idleMs }: RelayTimeouts): RelayTimeouts {
  const later = (limitMs: number): number => (limitMs > 0 ? limitMs + BACKSTOP_MS : 0);
  return { wholeMs: later(wholeMs), responseStartMs: later(responseStartMs), idleMs: later(idleMs) };
}

/** Before the Revision itself is seen. */
export function unknownRevision(defaults: SettingsDefaults): RevisionSettings {
  const timeouts: RelayTimeouts = { wholeMs: DEFAULT_TIMEOUT_SECONDS * 1000, responseStartMs: 0, idleMs: 0 };
  return {
    service: "",
    protocol: "h1",
    podConcurrency: Infinity,
    timeouts,
    backstop: backstopOf(timeouts),
    queueLength: defaults.queueLength,
    queuePolicy: "fair",
    width: 1,
  };
}

/** @param service annotations of the Route, which carry those set on the Service; they win over the revision's */
export function revisionSettings(
  revision: Revision,
  service: Annotations | undefined,
  defaults: SettingsDefaults,
): RevisionSettings {
  const { spec, status, metadata } = revision;
  const read = (definition: (typeof FLOW_CONTROL)[keyof typeof FLOW_CONTROL]): string | undefined =>
    (getAnnotation(service, definition) ?? getAnnotation(metadata.annotations, definition))?.value;

  // Admission has refused wrong values; what got past it counts as absent.
  const queueLength = Number(read(FLOW_CONTROL.queueLength) ?? Number.NaN);
  const width = Number(read(FLOW_CONTROL.width) ?? Number.NaN);
  const scaledLikeCloudRun =
    parseRevisionAutoscaling(metadata.annotations, service).class === AUTOSCALING_CLASS.cloudRun;
  const maxWaitMs = parseDurationMs(read(FLOW_CONTROL.maxWait) ?? "");
  const failed = status?.conditions?.find(condition => condition.type === "Ready" && condition.status === "False");
  const trouble =
    failed ??
    status?.conditions?.find(
      condition => condition.status !== "True" && condition.type !== "Active" && (condition.message ?? "") !== "",
    );
  const limit = spec.containerConcurrency ?? 0;
  const timeouts: RelayTimeouts = {
    wholeMs: (spec.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS) * 1000,
    responseStartMs: (spec.responseStartTimeoutSeconds ?? 0) * 1000,
    idleMs: (spec.idleTimeoutSeconds ?? 0) * 1000,
  };
  return {
    service: metadata.labels?.[LABEL.service] ?? "",
    protocol: isH2c(revision) ? "h2c" : "h1",
    podConcurrency: limit > 0 ? limit : Infinity,
    timeouts,
    backstop: backstopOf(timeouts),
    queueLength: Number.isInteger(queueLength) && queueLength >= 0 ? queueLength : defaults.queueLength,
    ...(maxWaitMs !== undefined && maxWaitMs >= 0 ? { maxWaitMs } : {}),
    ...(scaledLikeCloudRun ? { assumedWaitMs: pendingTimeoutMs(NO_STARTS) } : {}),
    queuePolicy: read(FLOW_CONTROL.queuePolicy) === "fifo" ? "fifo" : "fair",
    width: Number.isInteger(width) && width >= 1 ? width : 1,
    ...(failed === undefined ? {} : { failed: troubleOf(failed) }),
    ...(trouble === undefined ? {} : { trouble: troubleOf(trouble) }),
  };
}

/** The port that takes the requests is named `h2c` for HTTP/2. */
function isH2c(revision: Revision): boolean {
  return revision.spec.containers?.some(container => container.ports?.some(port => port.name === "h2c")) ?? false;
}

function troubleOf(condition: Condition): RevisionTrouble {
  return { reason: condition.reason ?? "Unknown", message: condition.message ?? "" };
}
