/**
 * From what gateways push and pods answer to the load of each revision, second by second:
 *
 *     load = sum over gateways of what they saw + (average over the asked pods of what no gateway saw) x ready pods
 *
 * A request that passed a gateway is counted by that gateway alone (a pod reports its proxied part apart), so nothing counts
 * twice. Base: knative.dev/serving v0.51.0 pkg/autoscaler/metrics. Beyond it, so that silence is never taken for zero:
 * - reports are aligned to seconds of the receiver (clock skew, jitter), each counts once (sequence, restart of a gateway);
 * - while some gateway is silent, what pods saw of it stands in for its reports;
 * - a scrape that failed is stood in for by the last one, for at most a stable window.
 *
 * Mutable, one per operator process (a new leader starts empty: no data, no decision). Windows exist only for revisions
 * with load in their last window, so an idle revision costs its registration only.
 */
import type { CloudRunLoad } from "./cloud-run-drivers.ts";
import type { ScalingMetric } from "./config.ts";
import type { InstanceLoad } from "./instance-windows.ts";
import { InstanceWindows } from "./instance-windows.ts";
import type { WindowedLoad } from "./kpa.ts";
import { RevisionWindows } from "./revision-windows.ts";
import type { WindowsSpec } from "./revision-windows.ts";
import { sampleSize } from "./sampling.ts";
import { SecondAligner } from "./second-aligner.ts";

/** One revision in a gateway's report. */
export interface GatewayReading {
  readonly namespace: string;
  readonly revision: string;
  readonly averageConcurrentRequests: number;
  readonly requestCount: number;
  /** Requests without a place, and requests at pods, at the end of the second. */
  readonly waiting: number;
  readonly inFlight: number;
}

/** The part of a gateway's report that the autoscaler reads. */
export interface GatewayLoadReport {
  readonly gateway: string;
  /** New at each start of the gateway. */
  readonly instance: string;
  readonly sequence: number;
  readonly timestampMs: number;
  readonly revisions: readonly GatewayReading[];
  /** Sent at once because a request needs a pod. The next regular report covers the same requests again. */
  readonly poke: boolean;
}

/** One pod's answer. */
export interface PodReading {
  readonly podName: string;
  readonly averageConcurrentRequests: number;
  readonly averageProxiedConcurrentRequests: number;
  readonly requestCount: number;
  readonly proxiedRequestCount: number;
  /** CPUs used by the pod over the second, where it can be measured. */
  readonly cpuUsage?: number | undefined;
  /** Where only a longer time can be measured: CPUs used by the pod on average over the last seconds. */
  readonly averageCpuUsage?: number | undefined;
}

/** What one round of asking a revision's pods brought; fewer answers than the sample needs make it a failed round. */
export interface ScrapeRound {
  readonly readyPods: number;
  readonly readings: readonly PodReading[];
}

/** A gateway not heard for so long is silent: three reports missed. */
export const GATEWAY_SILENT_MS = 3000;

/** What Cloud Run's policy observes of a revision. */
export interface InstancesLoad {
  /** Undefined when there are no data. */
  readonly load: CloudRunLoad | undefined;
  readonly waiting: number;
  /** Of them, those that did not wait yet when the second before the gateway's latest word ended. */
  readonly newlyWaiting: number;
  readonly inFlight: number;
  /** Places that freed up per second, over the last ten. */
  readonly freedPerSecond: number;
  readonly instances: readonly InstanceLoad[];
}

/** Who is to tell of a revision's load, and when each last did. */
export interface LoadSources {
  /** Gateways there are; `heardMs` undefined: not heard yet. */
  readonly gateways: readonly { readonly name: string; readonly heardMs: number | undefined }[];
  /** Whether its pods are asked. */
  readonly scraped: boolean;
  /** When enough of its pods last answered; undefined: not yet. */
  readonly answeredMs: number | undefined;
}

interface Load {
  readonly concurrency: number;
  readonly requests: number;
}

const ZERO: Load = { concurrency: 0, requests: 0 };

/** A gateway's latest word on a revision. */
interface LatestLoad extends Load {
  readonly waiting: number;
  readonly inFlight: number;
  /** At the end of the last reported second; the two above may be a poke's. */
  readonly atSecond: { readonly waiting: number; readonly inFlight: number };
  /** Waiting at the end of the last reported second before this word. */
  readonly waitedBefore: number;
}

const IDLE = { waiting: 0, inFlight: 0 };

/** What pokes recorded of a second still to be reported; `sequence` is the latest of them. */
interface Poked extends Load {
  readonly sequence: number;
}

/** Reports may overtake each other by so many; older ones count as heard. */
const REORDER_WINDOW = 32;

interface GatewaySource {
  readonly instance: string;
  readonly aligner: SecondAligner;
  /** Sequence numbers heard, not older than the window. */
  readonly heard: Set<number>;
  highest: number;
  heardMs: number;
  poked: Map<string, Poked>;
  /** Latest word on revisions with load. */
  latest: Map<string, LatestLoad>;
  /** False before the first whole second: what was under way before it is not known. */
  hasSecond: boolean;
}

interface LastScrape {
  readonly atMs: number;
  readonly direct: Load;
}

interface Collected {
  spec: WindowsSpec;
  windows: RevisionWindows | undefined;
  perInstance: InstanceWindows | undefined;
  aligner: SecondAligner | undefined;
  /** The second of the last round, whole seconds since the epoch. */
  scrapedSecond: number;
  lastScrape: LastScrape | undefined;
}

const NOT_COLLECTING: WindowedLoad = { kind: "none", reason: "not-collecting" };
const NO_DATA: WindowedLoad = { kind: "none", reason: "no-data-in-window" };

/** `namespace/revision`. */
export function revisionKey(namespace: string, revision: string): string {
  return `${namespace}/${revision}`;
}

/** True for a report not heard before; it is from now on. */
function isNews(source: GatewaySource, sequence: number): boolean {
  if (sequence <= source.highest - REORDER_WINDOW || source.heard.has(sequence)) return false;
  source.heard.add(sequence);
  source.highest = Math.max(source.highest, sequence);
  for (const old of source.heard) if (old <= source.highest - REORDER_WINDOW) source.heard.delete(old);
  return true;
}

export class MetricCollector {
  readonly #revisions = new Map<string, Collected>();
  readonly #gateways = new Map<string, GatewaySource>();
  #expected: ReadonlySet<string> = new Set();
  /** When the first gateway was heard. */
  #begunMs: number | undefined;

  /** Starts collecting for a revision, or takes its changed windows and keeps the data. */
  register(key: string, spec: WindowsSpec, nowMs: number): void {
    const known = this.#revisions.get(key);
    if (known === undefined) {
      this.#revisions.set(key, {
        spec,
        windows: undefined,
        perInstance: undefined,
        aligner: undefined,
        scrapedSecond: Number.NEGATIVE_INFINITY,
        lastScrape: undefined,
      });
      return;
    }
    known.windows?.update(spec, nowMs);
    if (spec.perInstance !== true) known.perInstance = undefined;
    known.spec = spec;
  }

  unregister(key: string): void {
    this.#revisions.delete(key);
    for (const source of this.#gateways.values()) {
      source.poked.delete(key);
      source.latest.delete(key);
    }
  }

  /** The gateways there are: others are forgotten, so that their silence is not waited on. Called when their set changes. */
  retainGateways(gateways: ReadonlySet<string>): void {
    this.#expected = gateways;
    for (const name of this.#gateways.keys()) if (!gateways.has(name)) this.#gateways.delete(name);
  }

  /** Takes one report; gives the keys of collected revisions it has load for (they are to be decided this tick). */
  acceptReport(report: GatewayLoadReport, nowMs: number): string[] {
    let source = this.#gateways.get(report.gateway);
    if (source === undefined || source.instance !== report.instance) {
      source = {
        instance: report.instance,
        aligner: new SecondAligner(report.timestampMs, nowMs),
        heard: new Set(),
        highest: report.sequence,
        heardMs: nowMs,
        poked: new Map(),
        latest: new Map(),
        hasSecond: false,
      };
      this.#gateways.set(report.gateway, source);
    }
    if (!isNews(source, report.sequence)) return [];
    this.#begunMs ??= nowMs;
    source.heardMs = nowMs;
    return report.poke ? this.#recordPoke(source, report, nowMs) : this.#recordSecond(source, report, nowMs);
  }

  #recordPoke(source: GatewaySource, report: GatewayLoadReport, nowMs: number): string[] {
    const active: string[] = [];
    for (const reading of report.revisions) {
      const key = revisionKey(reading.namespace, reading.revision);
      const collected = this.#revisions.get(key);
      if (collected === undefined) continue;
      const before = source.latest.get(key);
      const atSecond = before?.atSecond ?? IDLE;
      source.latest.set(key, {
        ...(before ?? ZERO),
        waiting: reading.waiting,
        inFlight: reading.inFlight,
        atSecond,
        waitedBefore: atSecond.waiting,
      });
      if (reading.inFlight > 0) {
        // Pods are busy: who waits counts for on-demand scaling; a moment's concurrency is no second's average.
        if (reading.waiting > 0) active.push(key);
        continue;
      }
      const poked = source.poked.get(key) ?? ZERO;
      // Those who wait now will wait for the rest of the second at least.
      const concurrency = Math.max(reading.averageConcurrentRequests, reading.waiting) - poked.concurrency;
      const requests = Math.max(reading.requestCount, reading.waiting) - poked.requests;
      if (concurrency <= 0) continue;
      this.#record(collected, nowMs, concurrency, Math.max(requests, 0));
      source.poked.set(key, {
        concurrency: poked.concurrency + concurrency,
        requests: poked.requests + Math.max(requests, 0),
        sequence: report.sequence,
      });
      active.push(key);
    }
    return active;
  }

  #recordSecond(source: GatewaySource, report: GatewayLoadReport, nowMs: number): string[] {
    const active: string[] = [];
    const atMs = source.aligner.align(report.timestampMs, nowMs);
    const latest = new Map<string, LatestLoad>();
    for (const reading of report.revisions) {
      const key = revisionKey(reading.namespace, reading.revision);
      const collected = this.#revisions.get(key);
      if (collected === undefined) continue;
      const poked = this.#takePoked(source, key, report.sequence);
      const concurrency = reading.averageConcurrentRequests;
      const requests = reading.requestCount;
      this.#record(
        collected,
        atMs,
        Math.max(concurrency - poked.concurrency, 0),
        Math.max(requests - poked.requests, 0),
      );
      const { waiting, inFlight } = reading;
      const before = source.latest.get(key)?.atSecond ?? IDLE;
      if (source.hasSecond && collected.perInstance !== undefined) {
        const ended = requests + before.waiting + before.inFlight - waiting - inFlight;
        collected.perInstance.recordFreed(atMs, Math.max(ended, 0));
      }
      if (concurrency > 0 || requests > 0 || waiting > 0)
        latest.set(key, {
          concurrency,
          requests,
          waiting,
          inFlight,
          atSecond: { waiting, inFlight },
          waitedBefore: before.waiting,
        });
      active.push(key);
    }
    // A report that was overtaken is no latest word.
    if (report.sequence === source.highest || !source.hasSecond) source.latest = latest;
    for (const [key, { sequence }] of source.poked) if (sequence < report.sequence) source.poked.delete(key);
    source.hasSecond = true;
    return active;
  }

  /** What pokes sent before the report have told of its second already. */
  #takePoked(source: GatewaySource, key: string, sequence: number): Load {
    const poked = source.poked.get(key);
    return poked !== undefined && poked.sequence < sequence ? poked : ZERO;
  }

  /** Takes one round of scraping; call it once a second for each revision with ready pods, also when nobody answered. */
  recordScrape(key: string, round: ScrapeRound, nowMs: number): void {
    const collected = this.#revisions.get(key);
    if (collected === undefined || round.readyPods <= 0) return;
    collected.aligner ??= new SecondAligner(nowMs, nowMs);
    const atMs = collected.aligner.align(nowMs, nowMs);
    const second = Math.floor(atMs / 1000);
    if (second === collected.scrapedSecond) return;
    collected.scrapedSecond = second;

    const readings = new Map(round.readings.map(reading => [reading.podName, reading]));
    if (readings.size < sampleSize(round.readyPods)) {
      const last = collected.lastScrape;
      if (last !== undefined && nowMs - last.atMs <= collected.spec.stableWindowMs) {
        this.#record(collected, atMs, last.direct.concurrency, last.direct.requests);
      }
      return;
    }
    this.#recordInstances(collected, readings, round.readyPods, atMs);
    const factor = round.readyPods / readings.size;
    let concurrency = 0;
    let requests = 0;
    let proxiedConcurrency = 0;
    let proxiedRequests = 0;
    for (const reading of readings.values()) {
      concurrency += reading.averageConcurrentRequests - reading.averageProxiedConcurrentRequests;
      requests += reading.requestCount - reading.proxiedRequestCount;
      proxiedConcurrency += reading.averageProxiedConcurrentRequests;
      proxiedRequests += reading.proxiedRequestCount;
    }
    const direct = { concurrency: Math.max(concurrency, 0) * factor, requests: Math.max(requests, 0) * factor };
    collected.lastScrape = { atMs: nowMs, direct };
    const missed = this.#missedByGateways(key, proxiedConcurrency * factor, proxiedRequests * factor, nowMs);
    this.#record(collected, atMs, direct.concurrency + missed.concurrency, direct.requests + missed.requests);
  }

  /** The load of the revision, or why there is none to decide on. */
  load(key: string, metric: ScalingMetric, nowMs: number): WindowedLoad {
    const collected = this.#revisions.get(key);
    if (collected === undefined) return NOT_COLLECTING;
    if (this.#isBeginning(nowMs)) return NO_DATA;
    if (collected.windows === undefined || collected.windows.isEmpty(nowMs)) {
      // Without scraping this means no requests, but only while every gateway is heard.
      const known = !collected.spec.scraped && !this.#silentGateway(nowMs);
      return known ? { kind: "measured", stable: 0, panic: 0 } : NO_DATA;
    }
    return collected.windows.load(metric, nowMs);
  }

  /** For people, when there are no data. Undefined for a revision that is not collected. */
  sources(key: string): LoadSources | undefined {
    const collected = this.#revisions.get(key);
    if (collected === undefined) return undefined;
    const names = new Set([...this.#expected, ...this.#gateways.keys()]);
    return {
      gateways: [...names].sort().map(name => ({ name, heardMs: this.#gateways.get(name)?.heardMs })),
      scraped: collected.spec.scraped,
      answeredMs: collected.lastScrape?.atMs,
    };
  }

  /** At first gateways are heard one after the other: what some have told is not all there is, and is too little to decide on. */
  #isBeginning(nowMs: number): boolean {
    return this.#begunMs !== undefined && nowMs - this.#begunMs <= GATEWAY_SILENT_MS && this.#lacksGateway();
  }

  /** True when some gateway that should report never was heard. */
  #lacksGateway(): boolean {
    for (const name of this.#expected) if (!this.#gateways.has(name)) return true;
    return false;
  }

  /** True when some gateway that should report is not heard, or none ever was. */
  #silentGateway(nowMs: number): boolean {
    if (this.#gateways.size === 0 || this.#lacksGateway()) return true;
    for (const source of this.#gateways.values()) if (nowMs - source.heardMs > GATEWAY_SILENT_MS) return true;
    return false;
  }

  /** What Cloud Run's policy observes; for revisions registered with `perInstance`. */
  instancesLoad(key: string, nowMs: number): InstancesLoad {
    const perInstance = this.#revisions.get(key)?.perInstance;
    let waiting = 0;
    let newlyWaiting = 0;
    let inFlight = 0;
    for (const source of this.#gateways.values()) {
      const latest = nowMs - source.heardMs > GATEWAY_SILENT_MS ? undefined : source.latest.get(key);
      if (latest === undefined) continue;
      waiting += latest.waiting;
      newlyWaiting += Math.max(0, latest.waiting - latest.waitedBefore);
      inFlight += latest.inFlight;
    }
    return {
      load: perInstance?.load(nowMs),
      waiting,
      newlyWaiting,
      inFlight,
      freedPerSecond: perInstance?.freedPerSecond(nowMs) ?? 0,
      instances: perInstance?.instances(nowMs) ?? [],
    };
  }

  /** Frees the windows of a revision without data; true when it has none. Called for revisions at zero. */
  release(key: string, nowMs: number): boolean {
    const collected = this.#revisions.get(key);
    if (collected === undefined || collected.windows === undefined) return true;
    if (!collected.windows.isEmpty(nowMs) || collected.perInstance?.isEmpty(nowMs) === false) return false;
    collected.windows = undefined;
    collected.perInstance = undefined;
    collected.aligner = undefined;
    collected.lastScrape = undefined;
    return true;
  }

  #record(collected: Collected, atMs: number, concurrency: number, requests: number): void {
    collected.windows ??= new RevisionWindows(collected.spec);
    collected.windows.record(atMs, concurrency, requests);
    if (collected.spec.perInstance === true) {
      collected.perInstance ??= new InstanceWindows();
      collected.perInstance.record(atMs, concurrency);
    }
  }

  #recordInstances(
    collected: Collected,
    readings: ReadonlyMap<string, PodReading>,
    readyPods: number,
    atMs: number,
  ): void {
    if (collected.spec.perInstance !== true) return;
    collected.perInstance ??= new InstanceWindows();
    let cpus = 0;
    let measured = 0;
    for (const reading of readings.values()) {
      const { cpuUsage, averageCpuUsage } = reading;
      const cpu = cpuUsage ?? averageCpuUsage;
      collected.perInstance.recordInstance(reading.podName, atMs, reading.averageConcurrentRequests, cpu, cpuUsage);
      if (cpu !== undefined) {
        cpus += cpu;
        measured++;
      }
    }
    if (measured > 0) collected.perInstance.recordCpu(atMs, (cpus / measured) * readyPods);
    collected.perInstance.prune(atMs);
  }

  /** What pods got through gateways that do not report: proxied load beyond what the heard gateways told of. */
  #missedByGateways(key: string, proxiedConcurrency: number, proxiedRequests: number, nowMs: number): Load {
    let concurrency = 0;
    let requests = 0;
    let silent = this.#gateways.size === 0;
    for (const source of this.#gateways.values()) {
      if (nowMs - source.heardMs > GATEWAY_SILENT_MS) {
        silent = true;
        continue;
      }
      const latest = source.latest.get(key) ?? ZERO;
      concurrency += latest.concurrency;
      requests += latest.requests;
    }
    if (!silent) return ZERO;
    return {
      concurrency: Math.max(proxiedConcurrency - concurrency, 0),
      requests: Math.max(proxiedRequests - requests, 0),
    };
  }
}
