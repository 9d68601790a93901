import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { FakeClock, settle } from "../../core/testing/fake-clock.ts";
import { ApiError } from "./api-error.ts";
import type { KubeApi } from "./kube-api.ts";
import { LeaderElection } from "./leader-election.ts";
import { silentLogger } from "./logging.ts";

interface LeaseSpec {
  readonly holderIdentity: string;
  readonly leaseDurationSeconds: number;
  readonly leaseTransitions: number;
  readonly renewTime: string;
}

/** A Lease in memory, with optimistic locking; `away` makes calls of one candidate fail. */
function leaseStore() {
  const away = new Set<string>();
  let version = 0;
  let stored: { metadata: { resourceVersion: string }; spec: LeaseSpec } | undefined;
  const apiOf = (identity: string): KubeApi => ({
    async call(method, _path, { body }) {
      if (away.has(identity)) throw new ApiError("away", 0, "Unreachable");
      const sent = body as { metadata: { resourceVersion?: string }; spec: LeaseSpec };
      if (method === "GET" && stored === undefined) throw new ApiError("none", 404, "NotFound");
      if (method === "POST" && stored !== undefined) throw new ApiError("exists", 409, "AlreadyExists");
      if (method === "PUT" && stored?.metadata.resourceVersion !== sent.metadata.resourceVersion) {
        throw new ApiError("changed", 409, "Conflict");
      }
      if (method !== "GET") stored = { metadata: { resourceVersion: String(++version) }, spec: sent.spec };
      return structuredClone(stored);
    },
    async *watch() {
      // Leases are not watched.
    },
    discover: () => Promise.reject(new Error("not needed")),
    close: () => Promise.resolve(),
  });
  return {
    apiOf,
    away,
    get spec() {
      return stored?.spec;
    },
    clear() {
      stored = undefined;
    },
    seize(holderIdentity: string) {
      if (stored === undefined) throw new Error("no lease yet");
      stored = { metadata: { resourceVersion: String(++version) }, spec: { ...stored.spec, holderIdentity } };
    },
  };
}

function candidates(...names: string[]) {
  const clock = new FakeClock();
  const store = leaseStore();
  const log: string[] = [];
  const made = names.map(identity => {
    const stop = new AbortController();
    const election = new LeaderElection({
      api: store.apiOf(identity),
      namespace: "system",
      name: "test",
      identity,
      leaseDurationMs: 15_000,
      renewDeadlineMs: 10_000,
      retryPeriodMs: 2_000,
      clock,
      random: () => 0,
      log: silentLogger,
      metrics: new Registry(),
      lead: async signal => {
        log.push(`${identity} leads`);
        await new Promise(resolve => signal.addEventListener("abort", resolve, { once: true }));
        log.push(`${identity} stops at ${clock.elapsedMs() - startMs}`);
      },
    });
    return { identity, stop, election, ended: election.run(stop.signal) };
  });
  const startMs = clock.elapsedMs();
  const of = (identity: string) => {
    const found = made.find(candidate => candidate.identity === identity);
    if (found === undefined) throw new Error(identity);
    return found;
  };
  const end = async () => {
    for (const { stop } of made) stop.abort();
    await clock.advance(20_000);
  };
  return { clock, store, log, of, end };
}

describe("leader election", () => {
  it("makes one of two lead, and keeps it so", async () => {
    const { clock, log, of, end, store } = candidates("a", "b");
    await clock.advance(120_000);
    expect(log).toEqual(["a leads"]);
    expect([of("a").election.isLeader, of("b").election.isLeader]).toEqual([true, false]);
    expect(store.spec).toMatchObject({ holderIdentity: "a", leaseDurationSeconds: 15, leaseTransitions: 0 });
    await end();
  });

  it("hands over at once when the leader stops", async () => {
    const { clock, log, of, end, store } = candidates("a", "b");
    await clock.advance(5_000);
    of("a").stop.abort();
    await of("a").ended;
    expect(store.spec?.holderIdentity).toBe("");
    await clock.advance(2_000);
    expect(log).toEqual(["a leads", "a stops at 5000", "b leads"]);
    expect(store.spec).toMatchObject({ holderIdentity: "b", leaseTransitions: 1 });
    await end();
  });

  it("a leader that cannot renew stops before another takes over", async () => {
    const { clock, log, store, end } = candidates("a", "b");
    await clock.advance(4_000);
    store.away.add("a");
    await clock.advance(60_000);
    expect(log.map(line => line.split(" at ")[0])).toEqual(["a leads", "a stops", "b leads"]);
    const stoppedMs = Number(log[1]?.split(" at ")[1]);
    expect(stoppedMs).toBeLessThanOrEqual(4_000 + 10_000 + 2_000);
    await end();
  });

  it("takes over from one that died only when its lease has not changed for its duration", async () => {
    const { clock, log, store, of, end } = candidates("a", "b");
    await clock.advance(4_000);
    store.away.add("a");
    const before = store.spec?.renewTime;
    await clock.advance(14_000);
    expect(of("b").election.isLeader).toBe(false);
    expect(store.spec?.renewTime).toBe(before);
    await clock.advance(6_000);
    expect(of("b").election.isLeader).toBe(true);
    expect(log.at(-1)).toBe("b leads");
    await end();
  });

  it("goes on leading through short failures", async () => {
    const { clock, log, store, end } = candidates("a", "b");
    await clock.advance(4_000);
    for (let time = 0; time < 5; time++) {
      store.away.add("a");
      await clock.advance(6_000);
      store.away.delete("a");
      await clock.advance(4_000);
    }
    expect(log).toEqual(["a leads"]);
    await end();
  });

  it("stops at once when it finds another holder in the lease, and leads again later", async () => {
    const { clock, log, store, end } = candidates("a");
    await clock.advance(4_000);
    store.seize("intruder");
    await clock.advance(2_000);
    expect(log).toEqual(["a leads", "a stops at 6000"]);
    await clock.advance(20_000);
    expect(log.at(-1)).toBe("a leads");
    await end();
  });

  it("survives a lease that someone deletes", async () => {
    const { clock, log, store, end } = candidates("a");
    await clock.advance(4_000);
    store.clear();
    await clock.advance(30_000);
    expect(log.at(-1)).toBe("a leads");
    expect(store.spec?.holderIdentity).toBe("a");
    await end();
  });

  it("keeps the lease until what it leads has ended", async () => {
    const { clock, store } = candidates();
    const stop = new AbortController();
    let finish = () => undefined as void;
    const election = new LeaderElection({
      api: store.apiOf("slow"),
      namespace: "system",
      name: "test",
      identity: "slow",
      leaseDurationMs: 15_000,
      renewDeadlineMs: 10_000,
      retryPeriodMs: 2_000,
      clock,
      random: () => 0,
      log: silentLogger,
      metrics: new Registry(),
      lead: () => new Promise<void>(resolve => (finish = resolve)),
    });
    const ended = election.run(stop.signal);
    await clock.advance(1_000);
    stop.abort();
    await settle();
    expect(store.spec?.holderIdentity).toBe("slow");
    finish();
    await ended;
    expect(store.spec?.holderIdentity).toBe("");
  });
});
