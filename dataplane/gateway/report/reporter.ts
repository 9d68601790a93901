import type { GatewayReply, GatewayReport, RevisionStat } from "../../../api/wire/stats.ts";
import type { Clock, Timer } from "../../shared/clock.ts";
import type { Logger } from "../../shared/logger.ts";
import type { RevisionBackend } from "../revisions/revision-backend.ts";

/** Delivers a report. Rejects when it was not accepted. Bounded in time. */
export type SendReport = (report: GatewayReport) => Promise<GatewayReply>;

export interface ReporterOptions {
  readonly gateway: string;
  /** New at each start of the process. */
  readonly instance: string;
  readonly clock: Clock;
  readonly send: SendReport;
  readonly backends: () => Iterable<RevisionBackend>;
  readonly onHints: (hints: GatewayReply["hints"]) => void;
  readonly logger: Logger;
  readonly onAccepted: (kind: "regular" | "poke" | "programmed") => void;
  /** A report did not arrive; with the requests that it told of. */
  readonly onFailed: (requests: number) => void;
}

const PERIOD_MS = 1_000;
/** Requests that need a pod and come together are one poke. */
const POKE_GAP_MS = 50;
/** A poke that did not arrive is sent again while anybody waits. */
const POKE_RETRY_MS = 100;
const LONGEST_POKE_RETRY_MS = 1_000;
const PROGRAMMED_DELAY_MS = 10;

/**
 * Tells the autoscaler what this gateway sees: each second what every revision with traffic had; at once when a request
 * needs a pod (the revision is at zero, or its policy starts pods on demand); soon when routes were programmed. Reports never
 * delay a request, and a failed one changes nothing but a counter.
 */
export class Reporter {
  readonly #options: ReporterOptions;
  /** Revisions in the last report that were not idle: they are told of once more. */
  #active = new Set<string>();
  /** How many wait at each revision, as the autoscaler was last told. */
  #toldWaiting = new Map<string, number>();
  #programmed: ReadonlyMap<string, string> = new Map();
  /** What the operator has acknowledged. */
  #acknowledged = new Map<string, string>();
  #needFull = true;
  #sequence = 0;
  #tick: Timer | undefined;
  #poke: Timer | undefined;
  #lastPokeMs = -Infinity;
  #pokeFailures = 0;
  #changed: Timer | undefined;
  #isStopped = false;
  #isFailing = false;

  constructor(options: ReporterOptions) {
    this.#options = options;
  }

  /** At a fixed beat: timers fire a little late, and if that added up, the reports would move against the seconds they are counted in. */
  start(): void {
    const { clock } = this.#options;
    let dueMs = clock.nowMs();
    const schedule = (): void => {
      const nowMs = clock.nowMs();
      dueMs += Math.max(1, Math.ceil((nowMs - dueMs) / PERIOD_MS)) * PERIOD_MS;
      this.#tick = clock.after(dueMs - nowMs, () => {
        if (this.#isStopped) return;
        schedule();
        void this.#regular();
      });
    };
    schedule();
  }

  /** Tells what has happened since the last report, and then nothing more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const timer of [this.#tick, this.#poke, this.#changed])
      if (timer !== undefined) this.#options.clock.cancel(timer);
    await this.#regular();
  }

  /**
   * A request of the revision needs a pod. Does not block. Pokes of all revisions have a gap between them; where pods take requests
   * only more waiting ones than were told of are worth one.
   */
  poke(backend: RevisionBackend): void {
    if (this.#isStopped || this.#poke !== undefined || !this.#isWorthPoke(backend)) return;
    const { clock } = this.#options;
    const waitMs = this.#lastPokeMs + POKE_GAP_MS - clock.nowMs();
    if (waitMs <= 0) void this.#sendPoke();
    else this.#poke = clock.after(waitMs, () => void this.#sendPoke());
  }

  /** Fingerprints of all routes that this gateway has programmed. Does not block. */
  programmed(fingerprints: ReadonlyMap<string, string>): void {
    this.#programmed = fingerprints;
    if (this.#isStopped || this.#changed !== undefined || this.#news().size === 0) return;
    this.#changed = this.#options.clock.after(PROGRAMMED_DELAY_MS, () => {
      this.#changed = undefined;
      // Marked as a poke: it is no second's report.
      if (this.#news().size > 0) void this.#deliver([], "programmed");
    });
  }

  async #regular(): Promise<void> {
    const nowMs = this.#options.clock.nowMs();
    const stats: RevisionStat[] = [];
    const active = new Set<string>();
    this.#toldWaiting.clear();
    for (const backend of this.#options.backends()) {
      const { averageConcurrentRequests, requestCount } = backend.meter.take(nowMs);
      const isActive = averageConcurrentRequests > 0 || requestCount > 0;
      if (!isActive && !this.#active.has(backend.key)) continue;
      if (isActive) active.add(backend.key);
      stats.push(stat(backend, averageConcurrentRequests, requestCount));
      if (backend.waiting > 0) this.#toldWaiting.set(backend.key, backend.waiting);
    }
    this.#active = active;
    if (!(await this.#deliver(stats, "regular"))) this.#toldWaiting.clear();
  }

  async #sendPoke(): Promise<void> {
    this.#poke = undefined;
    const { clock, backends } = this.#options;
    this.#lastPokeMs = clock.nowMs();
    const stats: RevisionStat[] = [];
    for (const backend of backends()) {
      if (!backend.needsPod || !this.#isWorthPoke(backend)) continue;
      stats.push(stat(backend, backend.meter.current, backend.meter.requestsSoFar));
      this.#toldWaiting.set(backend.key, backend.waiting);
    }
    if (stats.length === 0) return;
    const accepted = await this.#deliver(stats, "poke");
    if (accepted) {
      this.#pokeFailures = 0;
      return;
    }
    this.#toldWaiting.clear();
    const delayMs = Math.min(LONGEST_POKE_RETRY_MS, POKE_RETRY_MS * 2 ** this.#pokeFailures++);
    if (!this.#isStopped) this.#poke ??= clock.after(delayMs, () => void this.#sendPoke());
  }

  #isWorthPoke(backend: RevisionBackend): boolean {
    return !backend.hasRoutablePod || backend.waiting > (this.#toldWaiting.get(backend.key) ?? 0);
  }

  /** True when it was accepted. Never rejects. */
  async #deliver(revisions: RevisionStat[], kind: "regular" | "poke" | "programmed"): Promise<boolean> {
    const { gateway, instance, clock, send, onHints, onAccepted, onFailed, logger } = this.#options;
    const full = this.#needFull;
    const programmed = full ? this.#programmed : this.#news();
    const report: GatewayReport = {
      gateway,
      instance,
      sequence: ++this.#sequence,
      timestampMs: clock.wallMs(),
      revisions,
      programmed: Object.fromEntries(programmed),
      full,
      poke: kind !== "regular",
    };
    try {
      const reply = await send(report);
      if (full) this.#acknowledged = new Map(programmed);
      else for (const [route, fingerprint] of programmed) this.#acknowledged.set(route, fingerprint);
      this.#needFull = reply.needFull;
      if (this.#isFailing) logger.info("the autoscaler takes reports again");
      this.#isFailing = false;
      onHints(reply.hints);
      onAccepted(kind);
      if (reply.needFull && !full) this.programmed(this.#programmed);
      return true;
    } catch (error) {
      if (!this.#isFailing) logger.warn({ err: error }, "the autoscaler does not take reports");
      this.#isFailing = true;
      onFailed(kind === "regular" ? revisions.reduce((sum, { requestCount }) => sum + requestCount, 0) : 0);
      return false;
    }
  }

  /** What the operator does not know yet. A route that went is told with the next full report. */
  #news(): ReadonlyMap<string, string> {
    if (this.#needFull) return this.#programmed;
    const news = new Map<string, string>();
    for (const [route, fingerprint] of this.#programmed)
      if (this.#acknowledged.get(route) !== fingerprint) news.set(route, fingerprint);
    return news;
  }
}

function stat(backend: RevisionBackend, averageConcurrentRequests: number, requestCount: number): RevisionStat {
  return {
    namespace: backend.namespace,
    revision: backend.name,
    averageConcurrentRequests,
    requestCount,
    waiting: backend.waiting,
    inFlight: backend.inFlight,
  };
}
