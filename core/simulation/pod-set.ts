import type { Distribution } from "./distribution.ts";
import { sample } from "./distribution.ts";
import type { EventQueue, ScheduledEvent } from "./event-queue.ts";
import type { Random } from "./random.ts";
import type { CpuModel } from "./simulated-pod.ts";
import { SimulatedPod } from "./simulated-pod.ts";
import { TimeIntegral } from "./time-integral.ts";

export interface PodSetOptions<R> {
  readonly events: EventQueue;
  readonly random: Random;
  /** From the decision to start a pod until a gateway may send it requests. */
  readonly start: Distribution;
  /** A pod that is stopped stays at least so long, until late requests cannot come any more. */
  readonly drainMs: number;
  /** Requests a pod takes at a time; Infinity: no limit. */
  readonly podConcurrency: number;
  readonly cpu: CpuModel | undefined;
  /** Hears that pods became ready or left. */
  readonly onChange: () => void;
  readonly onEnded: (request: R, pod: SimulatedPod<R>) => void;
}

/**
 * The Deployment of the revision with its pods: starts what is missing, and stops what is too much in the order of a
 * ReplicaSet (those named by the policy, pods that are not ready, then the youngest).
 */
export class PodSet<R> {
  readonly #options: PodSetOptions<R>;
  readonly #pods: SimulatedPod<R>[] = [];
  readonly #ends = new Map<SimulatedPod<R>, ScheduledEvent>();
  readonly #existing: TimeIntegral;
  readonly #readyCount: TimeIntegral;
  #ready: readonly SimulatedPod<R>[] = [];
  #replicas = 0;
  #started = 0;
  #becameReady = 0;
  #most = 0;

  constructor(options: PodSetOptions<R>) {
    this.#options = options;
    this.#existing = new TimeIntegral(options.events.nowMs);
    this.#readyCount = new TimeIntegral(options.events.nowMs);
  }

  /** Pods that take requests. */
  get ready(): readonly SimulatedPod<R>[] {
    return this.#ready;
  }

  get starting(): readonly SimulatedPod<R>[] {
    return this.#pods.filter(pod => pod.state === "starting");
  }

  /** Pods that exist, draining ones too. */
  get all(): readonly SimulatedPod<R>[] {
    return this.#pods;
  }

  get replicas(): number {
    return this.#replicas;
  }

  /** Pods started so far, without those that were there at the beginning. */
  get started(): number {
    return this.#started;
  }

  /** Times a pod became ready. */
  get becameReady(): number {
    return this.#becameReady;
  }

  /** Most pods that existed at a time. */
  get most(): number {
    return this.#most;
  }

  /** Pod-milliseconds so far, of pods that exist and of pods that take requests. */
  podMs(): { readonly existing: number; readonly ready: number } {
    const { nowMs } = this.#options.events;
    return { existing: this.#existing.total(nowMs), ready: this.#readyCount.total(nowMs) };
  }

  /** Pods that are there from the beginning. */
  begin(count: number): void {
    for (let i = 0; i < count; i++) this.#create(`pod-0-${i}`, 0);
    this.#replicas = count;
  }

  /** @param stopFirst names of pods that the policy wants to stop, the most wanted first */
  scale(replicas: number, stopFirst: readonly string[]): void {
    this.#replicas = replicas;
    const live = this.#pods.filter(pod => pod.state !== "draining");
    for (let i = live.length; i < replicas; i++) {
      this.#started++;
      this.#create(`pod-${this.#started}`, sample(this.#options.start, this.#options.random));
    }
    if (live.length <= replicas) return;
    const rank = (pod: SimulatedPod<R>): number => {
      const named = stopFirst.indexOf(pod.name);
      return named >= 0 ? named - stopFirst.length : pod.state === "starting" ? 0 : 1;
    };
    const order = live.sort((a, b) => rank(a) - rank(b) || b.createdMs - a.createdMs);
    for (const pod of order.slice(0, live.length - replicas)) this.#stop(pod);
    this.#options.onChange();
  }

  begins(pod: SimulatedPod<R>, request: R, serviceMs: number): void {
    pod.begin(request, serviceMs, this.#options.events.nowMs);
    this.#schedule(pod);
  }

  #create(name: string, startMs: number): void {
    const { events, podConcurrency, cpu, onChange } = this.#options;
    const pod = new SimulatedPod<R>(name, events.nowMs, podConcurrency, cpu);
    this.#pods.push(pod);
    this.#most = Math.max(this.#most, this.#pods.length);
    this.#existing.set(this.#pods.length, events.nowMs);
    events.at(events.nowMs + startMs, () => {
      if (pod.state !== "starting") return;
      pod.state = "ready";
      pod.readyMs = events.nowMs;
      this.#becameReady++;
      this.#recount();
      onChange();
    });
  }

  #recount(): void {
    this.#ready = this.#pods.filter(pod => pod.state === "ready");
    this.#readyCount.set(this.#ready.length, this.#options.events.nowMs);
  }

  #stop(pod: SimulatedPod<R>): void {
    const { events, drainMs } = this.#options;
    if (pod.state === "starting") {
      this.#remove(pod);
      return;
    }
    pod.state = "draining";
    pod.stoppedMs = events.nowMs;
    this.#recount();
    events.at(events.nowMs + drainMs, () => this.#removeIfDrained(pod, drainMs));
  }

  #removeIfDrained(pod: SimulatedPod<R>, drainMs: number): void {
    const { nowMs } = this.#options.events;
    if (pod.state === "draining" && pod.inFlight === 0 && nowMs >= pod.stoppedMs + drainMs) this.#remove(pod);
  }

  #remove(pod: SimulatedPod<R>): void {
    pod.state = "gone";
    this.#pods.splice(this.#pods.indexOf(pod), 1);
    this.#existing.set(this.#pods.length, this.#options.events.nowMs);
  }

  /** Keeps one event per pod: its next end. */
  #schedule(pod: SimulatedPod<R>): void {
    const { events } = this.#options;
    const before = this.#ends.get(pod);
    const nextMs = pod.nextEndMs();
    if (before !== undefined) {
      if (before.atMs === nextMs) return;
      events.cancel(before);
    }
    if (nextMs === undefined) this.#ends.delete(pod);
    else
      this.#ends.set(
        pod,
        events.at(nextMs, () => this.#end(pod)),
      );
  }

  #end(pod: SimulatedPod<R>): void {
    const { events, drainMs, onEnded } = this.#options;
    this.#ends.delete(pod);
    const ended = pod.ended(events.nowMs);
    this.#schedule(pod);
    for (const request of ended) onEnded(request, pod);
    this.#removeIfDrained(pod, drainMs);
  }
}
