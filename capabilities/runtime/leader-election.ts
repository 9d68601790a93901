import { Gauge, type Registry } from "prom-client";
import { z } from "zod";
import { ApiError, isAlreadyExists, isConflict, isNotFound } from "./api-error.ts";
import { pause, type Clock } from "./clock.ts";
import type { KubeApi } from "./kube-api.ts";
import type { ComponentLogger } from "./logging.ts";

export interface LeaderElectionOptions {
  readonly api: KubeApi;
  readonly namespace: string;
  /** The Lease's name. */
  readonly name: string;
  /** This candidate; no two processes may share it. */
  readonly identity: string;
  /** Others wait this long after the last renewal before they take over. */
  readonly leaseDurationMs: number;
  /** The leader gives up when it could not renew for this long; below leaseDurationMs. */
  readonly renewDeadlineMs: number;
  /** Between tries. */
  readonly retryPeriodMs: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: ComponentLogger;
  readonly metrics: Registry;
  /**
   * Leads: called when the lease is won. The signal aborts when it is lost or the process stops; the lease is given up (and the
   * next term can begin) only after the returned promise has settled.
   */
  readonly lead: (signal: AbortSignal) => Promise<void>;
}

const leaseSchema = z.object({
  metadata: z.looseObject({ resourceVersion: z.string() }),
  spec: z
    .object({
      holderIdentity: z.string().nullish(),
      leaseDurationSeconds: z.number().nullish(),
      acquireTime: z.string().nullish(),
      renewTime: z.string().nullish(),
      leaseTransitions: z.number().nullish(),
    })
    .default({}),
});
type Lease = z.infer<typeof leaseSchema>;

/** What this candidate knows of the lease: its last state, and when, by our own clock, that state was first seen. */
interface Observed {
  readonly lease: Lease;
  readonly atMs: number;
}

/**
 * Elects one leader by a Lease, by the same rules as client-go: clocks are not compared across machines (a lease is over when
 * its record has not changed for its duration, by the watcher's own clock), every write carries the version it read, and a
 * leader stops before others may take over. Runs term after term until the signal aborts; then gives the lease up.
 */
export class LeaderElection {
  readonly #options: LeaderElectionOptions;
  readonly #path: string;
  #leading = false;

  constructor(options: LeaderElectionOptions) {
    this.#options = options;
    this.#path = `/apis/coordination.k8s.io/v1/namespaces/${options.namespace}/leases`;
    const leading = () => (this.#leading ? 1 : 0);
    new Gauge({
      name: "leader_election_master_status",
      help: "1 while this replica leads",
      labelNames: ["name"],
      registers: [options.metrics],
      collect() {
        this.set({ name: options.name }, leading());
      },
    });
  }

  get isLeader(): boolean {
    return this.#leading;
  }

  async run(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const won = await this.#acquire(stop);
      if (won === undefined) return;
      await this.#term(won, stop);
    }
  }

  async #acquire(stop: AbortSignal): Promise<Observed | undefined> {
    const { clock, log, identity, retryPeriodMs, random } = this.#options;
    let observed: Observed | undefined;
    let holder: string | undefined;
    while (!stop.aborted) {
      try {
        const attempt = await this.#tryAcquire(observed, stop);
        if (attempt.won) return attempt.observed;
        observed = attempt.observed;
        const seen = observed?.lease.spec.holderIdentity ?? undefined;
        if (seen !== holder) log.info({ holder: seen, identity }, "another replica leads");
        holder = seen;
      } catch (error) {
        if (!stop.aborted) log.warn({ error }, "lease could not be read or taken");
      }
      await pause(clock, retryPeriodMs * (1 + 0.2 * random()), stop);
    }
    return undefined;
  }

  async #tryAcquire(
    observed: Observed | undefined,
    stop: AbortSignal,
  ): Promise<{ readonly won: boolean; readonly observed: Observed | undefined }> {
    const { api, clock, identity, name, namespace, renewDeadlineMs } = this.#options;
    const timeoutMs = renewDeadlineMs;
    const current = await this.#read(stop, timeoutMs);
    if (current === undefined) {
      try {
        const body = {
          apiVersion: "coordination.k8s.io/v1",
          kind: "Lease",
          metadata: { name, namespace },
          spec: this.#record(0, undefined),
        };
        const startedMs = clock.elapsedMs();
        const lease = leaseSchema.parse(await api.call("POST", this.#path, { body, signal: stop, timeoutMs }));
        return { won: true, observed: { lease, atMs: startedMs } };
      } catch (error) {
        if (isAlreadyExists(error)) return { won: false, observed };
        throw error;
      }
    }
    const seen =
      observed?.lease.metadata.resourceVersion === current.metadata.resourceVersion
        ? observed
        : { lease: current, atMs: clock.elapsedMs() };
    const { holderIdentity, leaseDurationSeconds, leaseTransitions } = current.spec;
    const held = holderIdentity !== undefined && holderIdentity !== null && holderIdentity !== "";
    const overMs = seen.atMs + (leaseDurationSeconds ?? 0) * 1000;
    if (held && holderIdentity !== identity && clock.elapsedMs() < overMs) return { won: false, observed: seen };
    try {
      const startedMs = clock.elapsedMs();
      const transitions = (leaseTransitions ?? 0) + (holderIdentity === identity ? 0 : 1);
      const lease = await this.#write(current, this.#record(transitions, undefined), stop, timeoutMs);
      return { won: true, observed: { lease, atMs: startedMs } };
    } catch (error) {
      if (isConflict(error)) return { won: false, observed: seen };
      throw error;
    }
  }

  async #term(won: Observed, stop: AbortSignal): Promise<void> {
    const { log, identity, lead } = this.#options;
    const end = new AbortController();
    const onStop = () => end.abort();
    stop.addEventListener("abort", onStop, { once: true });
    this.#leading = true;
    log.info({ identity, transitions: won.lease.spec.leaseTransitions }, "leading");
    let last: Lease = won.lease;
    const { clock, renewDeadlineMs } = this.#options;
    // Whatever hangs: without a renewal in time this replica stops leading before another can begin.
    let disarm = clock.after(renewDeadlineMs, () => end.abort());
    const renewing = this.#renew(won, end.signal, (lease, renewedMs) => {
      last = lease;
      disarm();
      disarm = clock.after(renewedMs + renewDeadlineMs - clock.elapsedMs(), () => end.abort());
    }).finally(() => {
      disarm();
      end.abort();
    });
    try {
      await lead(end.signal);
    } finally {
      const lost = !stop.aborted && end.signal.aborted;
      end.abort();
      this.#leading = false;
      stop.removeEventListener("abort", onStop);
      await renewing;
      if (lost) log.error({ identity }, "lease lost");
      else await this.#release(last);
    }
  }

  /** Renews until the signal aborts; returns earlier when the lease is lost. Never rejects. */
  async #renew(
    won: Observed,
    signal: AbortSignal,
    onRenewed: (lease: Lease, renewedMs: number) => void,
  ): Promise<void> {
    const { clock, log, renewDeadlineMs, retryPeriodMs, identity } = this.#options;
    let lease = won.lease;
    let renewedMs = won.atMs;
    for (;;) {
      await pause(clock, retryPeriodMs, signal);
      if (signal.aborted) return;
      const startedMs = clock.elapsedMs();
      const leftMs = renewedMs + renewDeadlineMs - startedMs;
      if (leftMs <= 0) return;
      try {
        const record = this.#record(lease.spec.leaseTransitions ?? 0, lease.spec.acquireTime ?? undefined);
        // A hanging call must leave time for another try.
        lease = await this.#write(lease, record, signal, Math.max(leftMs / 2, retryPeriodMs));
        renewedMs = startedMs;
        onRenewed(lease, renewedMs);
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ error, leftMs: Math.round(leftMs) }, "lease not renewed");
        if (!isConflict(error) && !isNotFound(error)) continue;
        const current = await this.#reread(signal, leftMs);
        if (current === undefined) continue;
        if (current.spec.holderIdentity !== identity) return;
        lease = current;
      }
    }
  }

  async #reread(signal: AbortSignal, timeoutMs: number): Promise<Lease | undefined> {
    try {
      return await this.#read(signal, timeoutMs);
    } catch (error) {
      this.#options.log.warn({ error }, "lease not read");
      return undefined;
    }
  }

  /** Lets another replica take over at once. */
  async #release(lease: Lease): Promise<void> {
    const { log, clock } = this.#options;
    const now = microTime(clock.nowMs());
    const record = {
      holderIdentity: "",
      leaseDurationSeconds: 1,
      acquireTime: now,
      renewTime: now,
      leaseTransitions: lease.spec.leaseTransitions ?? 0,
    };
    try {
      await this.#write(lease, record, new AbortController().signal, this.#options.retryPeriodMs);
      log.info("lease given up");
    } catch (error) {
      log.warn({ error }, "lease not given up: it will run out by itself");
    }
  }

  #record(leaseTransitions: number, acquireTime: string | undefined) {
    const { identity, leaseDurationMs, clock } = this.#options;
    const now = microTime(clock.nowMs());
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000),
      acquireTime: acquireTime ?? now,
      renewTime: now,
      leaseTransitions,
    };
  }

  async #read(signal: AbortSignal, timeoutMs: number): Promise<Lease | undefined> {
    try {
      return leaseSchema.parse(
        await this.#options.api.call("GET", `${this.#path}/${this.#options.name}`, { signal, timeoutMs }),
      );
    } catch (error) {
      if (error instanceof ApiError && isNotFound(error)) return undefined;
      throw error;
    }
  }

  async #write(lease: Lease, spec: object, signal: AbortSignal, timeoutMs: number): Promise<Lease> {
    const { api, name } = this.#options;
    const body = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: lease.metadata, spec };
    return leaseSchema.parse(await api.call("PUT", `${this.#path}/${name}`, { body, signal, timeoutMs }));
  }
}

function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
