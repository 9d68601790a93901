import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { Counter, type Registry } from "prom-client";
import type { Clock } from "./clock.ts";
import type { KubeApi } from "./kube-api.ts";
import type { ComponentLogger } from "./logging.ts";
import type { EventRecorder, KubeObject } from "./types.ts";

export interface EventRecorderOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly log: ComponentLogger;
  readonly metrics: Registry;
  /** This replica's name. */
  readonly instance: string;
  /** Aborts at the end of the process. */
  readonly signal: AbortSignal;
}

const COMPONENT = "fairway-operator";
/** Per object: a burst, then one more each so often. As client-go's spam filter, with a smaller burst. */
const BURST = 10;
const REFILL_MS = 30_000;
/** Equal events within this time are one event with a count. */
const SERIES_MS = 600_000;
const REMEMBERED = 4096;
const LONGEST_MESSAGE = 1024;
/** Events that wait for the API server; more are dropped and counted. */
const LARGEST_BACKLOG = 500;

interface Series {
  readonly name: string;
  readonly firstMs: number;
  readonly lastMs: number;
  readonly count: number;
}

interface Bucket {
  readonly tokens: number;
  readonly atMs: number;
}

/**
 * Writes core/v1 Events, which every kubectl shows under `describe`. An equal event raises the count of the one that is there.
 * They are written one after the other in the background; when the API server is away they are dropped, not kept.
 */
export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  const { api, clock, log, signal, instance } = options;
  const series = new LRUCache<string, Series>({ max: REMEMBERED });
  const buckets = new LRUCache<string, Bucket>({ max: REMEMBERED });
  const backlog: (() => Promise<void>)[] = [];
  let draining = false;
  const counter = new Counter({
    name: "fairway_events_total",
    help: "Events on objects by result",
    labelNames: ["result"],
    registers: [options.metrics],
  });

  const allow = (object: string): boolean => {
    const nowMs = clock.elapsedMs();
    const bucket = buckets.get(object) ?? { tokens: BURST, atMs: nowMs };
    const tokens = Math.min(BURST, bucket.tokens + (nowMs - bucket.atMs) / REFILL_MS);
    const allowed = tokens >= 1;
    buckets.set(object, { tokens: allowed ? tokens - 1 : tokens, atMs: nowMs });
    return allowed;
  };

  const drain = async (): Promise<void> => {
    if (draining) return;
    draining = true;
    for (let write = backlog.shift(); write !== undefined && !signal.aborted; write = backlog.shift()) {
      try {
        await write();
        counter.inc({ result: "written" });
      } catch (error) {
        counter.inc({ result: "failed" });
        log.debug({ error }, "event not written");
      }
    }
    draining = false;
  };

  return {
    event(object, type, reason, message) {
      const target = involved(object);
      if (target === undefined || signal.aborted) return;
      const text = message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE - 3)}...` : message;
      const nowMs = clock.nowMs();
      const id = createHash("sha256")
        .update(JSON.stringify([target, type, reason, text]))
        .digest("hex");
      if (backlog.length >= LARGEST_BACKLOG || !allow(`${target.uid ?? ""} ${target.namespace}/${target.name}`)) {
        counter.inc({ result: "dropped" });
        return;
      }
      const known = series.get(id);
      const fresh = known === undefined || nowMs - known.lastMs > SERIES_MS;
      const next: Series = fresh
        ? {
            name: `${target.name.slice(0, 200)}.${id.slice(0, 8)}${nowMs.toString(16)}`,
            firstMs: nowMs,
            lastMs: nowMs,
            count: 1,
          }
        : { ...known, lastMs: nowMs, count: known.count + 1 };
      series.set(id, next);
      const namespace = target.namespace ?? "default";
      const collection = `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`;
      const body = {
        apiVersion: "v1",
        kind: "Event",
        metadata: { name: next.name, namespace },
        involvedObject: target,
        type,
        reason,
        message: text,
        source: { component: COMPONENT },
        reportingComponent: COMPONENT,
        reportingInstance: instance,
        firstTimestamp: seconds(next.firstMs),
        lastTimestamp: seconds(next.lastMs),
        count: next.count,
      };
      log.info(
        { object: `${target.kind} ${target.namespace ?? ""}/${target.name}`, type, reason, message: text },
        "event",
      );
      backlog.push(async () => {
        // An apply makes the event again when the cluster has dropped it meanwhile.
        await api.call("PATCH", `${collection}/${encodeURIComponent(next.name)}`, {
          query: { fieldManager: "fairway", force: true },
          contentType: "application/apply-patch+yaml",
          body,
          signal,
        });
      });
      void drain();
    },
  };
}

function involved(object: KubeObject) {
  const { name, namespace, uid, resourceVersion } = object.metadata ?? {};
  if (name === undefined || object.kind === undefined) return undefined;
  return { apiVersion: object.apiVersion, kind: object.kind, namespace, name, uid, resourceVersion };
}

function seconds(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
