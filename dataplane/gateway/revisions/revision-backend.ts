import type { RevisionHint } from "../../../api/wire/stats.ts";
import { choosePod } from "../../../core/balancing/choose-pod.ts";
import { dividePlaces, homeGateway, MIN_PLACES_PER_GATEWAY } from "../../../core/flowcontrol/place-division.ts";
import type { FlowHash } from "../../../core/flowcontrol/flow-hash.ts";
import {
  PlaceQueue,
  type PlaceLevel,
  type PlaceLevelSnapshot,
  type PlaceQueueConfig,
  type PlaceTicket,
} from "../../../core/flowcontrol/place-queue.ts";
import type { Clock, Timer } from "../../shared/clock.ts";
import { ConcurrencyMeter } from "../../shared/concurrency-meter.ts";
import { ClientGoneError } from "../../shared/http/relay.ts";
import type { Upstream } from "../../shared/http/upstream.ts";
import {
  HomeMovedError,
  NoPodError,
  PlaceTimeoutError,
  RevisionFailedError,
  RevisionGoneError,
  RevisionQueueFullError,
} from "../errors.ts";
import type { GatewaySet } from "../peers/peers.ts";
import { Pod, type Endpoint } from "./pod.ts";
import type { RevisionSettings } from "./revision-settings.ts";

/** How a request takes part in the queue for a place. */
export interface FlowPlace {
  readonly level: string;
  readonly flow: FlowHash;
}

/** The client's side of a wait: a subset of `Exchange`. */
export interface WaitingClient {
  readonly gone: boolean;
  onGone(callback: (() => void) | undefined): void;
}

/** A place at a pod. Released exactly once, in `finally`. */
export interface Place {
  readonly pod: Pod;
  /** How long the request waited for it. */
  readonly waitedMs: number;
  release(): void;
}

export interface BackendOptions {
  readonly namespace: string;
  readonly name: string;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly settings: RevisionSettings;
  /** How long a request waits at a revision that has failed. */
  readonly failedWaitMs: number;
  /** The priority levels that share the places. */
  readonly levels: () => ReadonlyMap<string, PlaceLevel>;
  /** The gateways that share them. */
  readonly gateways: () => GatewaySet;
  readonly connect: (address: string, protocol: RevisionSettings["protocol"]) => Upstream;
  /** Hears that a request waits and that it needs a pod, see `needsPod`. Called at each such arrival; must not block. */
  readonly onNeedsPod: (backend: RevisionBackend) => void;
  /** Hears when somebody begins to wait, and when pods change while somebody does. */
  readonly onWaiting: (backend: RevisionBackend) => void;
}

const QUEUES = 64;
const HAND_SIZE = 8;
const LONGEST_RETRY_AFTER_S = 30;

interface Waiting {
  readonly client: WaitingClient;
  readonly flow: FlowPlace;
  readonly arrivedMs: number;
  /** May go to another gateway while it waits. */
  readonly mayMove: boolean;
  place: HeldPlace | undefined;
  resolve: ((place: Place) => void) | undefined;
  reject: ((error: Error) => void) | undefined;
}
type Ticket = PlaceTicket<Waiting>;

/**
 * One revision at this gateway: its pods, its places, who waits for one, and what it measured. A cold start is the
 * queue with no places.
 *
 * The number of places is what is held plus what is free at pods that take requests; so places held at pods that went
 * away never keep free ones from being used. With several gateways those places are this one's part of each pod; of a
 * revision with few places each gateway has all, and uses them only while it is the revision's home (or while it and the
 * others do not agree on that; then the pods' own limit holds).
 */
export class RevisionBackend {
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly meter: ConcurrencyMeter;
  readonly #options: BackendOptions;
  readonly #queue: PlaceQueue<Waiting>;
  readonly #pods = new Map<string, Pod>();
  readonly #waiters = new Set<Ticket>();
  #settings: RevisionSettings;
  #endpoints: readonly Endpoint[] = [];
  #hint: RevisionHint | undefined;
  #preferred: Pod[] = [];
  #demoted: Pod[] = [];
  #expiry: { readonly timer: Timer; readonly dueMs: number } | undefined;
  #grantedRate = new GrantRate();
  #home: string | undefined;
  #removed = false;
  /** False until its Revision was seen. */
  known = false;

  constructor(options: BackendOptions) {
    this.#options = options;
    this.namespace = options.namespace;
    this.name = options.name;
    this.key = `${options.namespace}/${options.name}`;
    this.meter = new ConcurrencyMeter(options.clock.nowMs());
    this.#settings = options.settings;
    this.#queue = new PlaceQueue(this.#queueConfig(), 0);
  }

  get settings(): RevisionSettings {
    return this.#settings;
  }

  get waiting(): number {
    return this.#queue.waiting;
  }

  get inFlight(): number {
    return this.#queue.inUse;
  }

  get capacity(): number {
    return this.#queue.capacity;
  }

  /** The other gateway at which all requests for this revision wait; undefined: they wait here. */
  get home(): string | undefined {
    return this.#home;
  }

  /** Longest wait for a place. */
  get maxWaitMs(): number {
    return this.#maxWaitMs();
  }

  /** Levels with requests. */
  get levels(): readonly PlaceLevelSnapshot[] {
    return this.#queue.snapshot();
  }

  /** Who waits for a place. */
  *waiters(): Iterable<{ readonly client: WaitingClient; readonly flow: FlowPlace; readonly arrivedMs: number }> {
    for (const { payload } of this.#waiters) yield payload;
  }

  get pods(): readonly Pod[] {
    return [...this.#pods.values()];
  }

  /** True when at least one pod takes requests, busy or not. */
  get hasRoutablePod(): boolean {
    return this.#preferred.length + this.#demoted.length > 0;
  }

  /**
   * Requests wait for what the autoscaler alone can give: no pod takes any, or the scaling policy starts pods for requests that
   * find no place.
   */
  get needsPod(): boolean {
    // Where the cluster's default chooses that policy, the autoscaler's word on the wait is what shows it here.
    const startsOnDemand = this.#settings.assumedWaitMs !== undefined || this.#hint?.pendingTimeoutMs !== undefined;
    return this.waiting > 0 && (!this.hasRoutablePod || startsOnDemand);
  }

  /** Pods that have an address but never were ready: worth asking directly. */
  get startingPods(): Pod[] {
    return [...this.#pods.values()].filter(pod => pod.state === "starting");
  }

  /**
   * A place for one request: at once when one is free (then not a promise), else when its turn comes. Waiting ends with the
   * client, at its bound, or when there is nothing to wait for.
   *
   * @throws (or rejects with) RevisionQueueFullError, PlaceTimeoutError, NoPodError, RevisionFailedError,
   *   RevisionGoneError, ClientGoneError; HomeMovedError if it may move
   * @param arrivedMs when the request came: an attempt at another pod does not get a wait of its own
   * @param mayMove whether it may go to another gateway that becomes the revision's home
   */
  acquire(client: WaitingClient, flow: FlowPlace, arrivedMs: number, mayMove = false): Place | Promise<Place> {
    const { clock } = this.#options;
    const nowMs = clock.nowMs();
    if (this.#removed) throw new RevisionGoneError(this.key);
    const waiting: Waiting = {
      client,
      flow,
      arrivedMs,
      mayMove,
      place: undefined,
      resolve: undefined,
      reject: undefined,
    };
    const maxWaitMs = Math.max(0, arrivedMs + this.#maxWaitMs() - nowMs);
    const result = this.#queue.enqueue({ level: flow.level, flow: flow.flow, maxWaitMs, payload: waiting }, nowMs);
    if (result.kind === "rejected") throw this.#queueFull();
    result.displaced?.payload.reject?.(this.#queueFull());
    const { ticket } = result;
    this.#grant(nowMs);
    if (waiting.place !== undefined) return waiting.place;

    return new Promise<Place>((resolve, reject) => {
      const givingUp = this.#giveUpIfFailed(ticket);
      const leave = (): void => {
        this.#waiters.delete(ticket);
        client.onGone(undefined);
        if (givingUp !== undefined) clock.cancel(givingUp);
      };
      this.#waiters.add(ticket);
      waiting.resolve = place => {
        leave();
        resolve(place);
      };
      waiting.reject = error => {
        leave();
        reject(error);
      };
      client.onGone(() => {
        leave();
        this.#queue.cancel(ticket);
        reject(new ClientGoneError());
      });
      this.#armExpiry();
      if (this.needsPod) this.#options.onNeedsPod(this);
      this.#options.onWaiting(this);
    });
  }

  /** Takes on what its Revision says now. A failure ends the waits of those who came before it. */
  configure(settings: RevisionSettings): void {
    const before = this.#settings;
    const waitBeforeMs = this.#maxWaitMs();
    this.#settings = settings;
    this.known = true;
    this.#queue.configure(this.#queueConfig());
    this.#waitFrom(waitBeforeMs);
    if (before.protocol === settings.protocol) this.#recount();
    else {
      // Pods that were seen before their Revision are spoken to differently from now on.
      for (const pod of this.#pods.values()) this.#forget(pod);
      this.setEndpoints(this.#endpoints);
    }
    const failure = settings.failed;
    const isNews =
      failure !== undefined && (before.failed?.reason !== failure.reason || before.failed.message !== failure.message);
    if (isNews && !this.hasRoutablePod)
      this.#rejectAll(() => new RevisionFailedError(this.key, failure, this.#retryAfterS()));
  }

  /** The priority levels have changed. */
  levelsChanged(): void {
    this.#queue.configure(this.#queueConfig());
    this.#grant(this.#options.clock.nowMs());
  }

  /** Takes on the autoscaler's advice; undefined: none (any more). */
  advise(hint: RevisionHint | undefined): void {
    if (hint === undefined && this.#hint === undefined) return;
    const waitBeforeMs = this.#maxWaitMs();
    this.#hint = hint;
    this.#waitFrom(waitBeforeMs);
    this.#recount();
  }

  /** Gateways have come or gone. */
  gatewaysChanged(): void {
    this.#recount();
  }

  /** Takes on the pods that there are now. */
  setEndpoints(endpoints: readonly Endpoint[]): void {
    this.#endpoints = endpoints;
    const present = new Set<string>();
    for (const endpoint of endpoints) {
      let pod = this.#pods.get(endpoint.address);
      if (pod !== undefined && pod.uid !== endpoint.podUid) {
        this.#forget(pod);
        pod = undefined;
      }
      present.add(endpoint.address);
      if (pod === undefined) {
        if (endpoint.terminating) continue;
        const upstream = this.#options.connect(endpoint.address, this.#settings.protocol);
        pod = new Pod(endpoint, upstream, this.#limitOf(endpoint.podName));
        this.#pods.set(endpoint.address, pod);
      }
      if (endpoint.terminating) this.#forget(pod);
      else if (endpoint.ready) pod.state = "ready";
      else if (pod.state === "ready" && !pod.readyByProbe) pod.state = "unready";
      if (endpoint.ready) pod.readyByProbe = false;
    }
    for (const [address, pod] of this.#pods) if (!present.has(address)) this.#forget(pod);
    this.#recount();
    if (this.waiting > 0) this.#options.onWaiting(this);
  }

  /** A pod that never was ready answered for itself. */
  readyByProbe(pod: Pod): void {
    if (pod.state !== "starting") return;
    pod.state = "ready";
    pod.readyByProbe = true;
    this.#recount();
  }

  /** A pod took no connection: others are used for a while. */
  refusedBy(pod: Pod): void {
    const { clock } = this.#options;
    const durationMs = pod.refused(clock.nowMs());
    this.#recount();
    clock.after(durationMs, () => this.#recount());
    if (this.needsPod) this.#options.onNeedsPod(this);
  }

  /** The Revision was deleted. */
  remove(): void {
    this.#removed = true;
    this.#rejectAll(() => new RevisionGoneError(this.key));
    for (const pod of this.#pods.values()) this.#forget(pod);
    this.#recount();
    if (this.#expiry !== undefined) this.#options.clock.cancel(this.#expiry.timer);
  }

  #queueConfig(): PlaceQueueConfig {
    return {
      policy: this.#settings.queuePolicy,
      maxWaiting: this.#settings.queueLength,
      maxWaitMs: this.#maxWaitMs(),
      levels: this.#options.levels(),
      queues: QUEUES,
      handSize: HAND_SIZE,
    };
  }

  #maxWaitMs(): number {
    const { maxWaitMs, assumedWaitMs, timeouts } = this.#settings;
    return maxWaitMs ?? this.#hint?.pendingTimeoutMs ?? assumedWaitMs ?? timeouts.wholeMs;
  }

  /** Holds those who wait to the longest wait there is now, when it was another before. */
  #waitFrom(beforeMs: number): void {
    const maxWaitMs = this.#maxWaitMs();
    if (maxWaitMs === beforeMs || this.waiting === 0) return;
    this.#queue.setDeadlines(({ arrivedMs }) => arrivedMs + maxWaitMs);
    this.#armExpiry();
  }

  /** A revision that failed before may recover; it is given less time for that than one that is well takes to start. */
  #giveUpIfFailed(ticket: Ticket): Timer | undefined {
    const { clock, failedWaitMs } = this.#options;
    if (this.#settings.failed === undefined || this.hasRoutablePod) return undefined;
    return clock.after(failedWaitMs, () => {
      const { failed } = this.#settings;
      if (failed === undefined || this.hasRoutablePod || !this.#queue.cancel(ticket)) return;
      ticket.payload.reject?.(new RevisionFailedError(this.key, failed, this.#retryAfterS()));
    });
  }

  #limitOf(podName: string): number {
    return Math.min(this.#settings.podConcurrency, this.#hint?.podConcurrency[podName] ?? Infinity);
  }

  /** Finds out which part of the pods' places is this gateway's, and which gateway is the home if there is one. */
  #divide(): void {
    const { names, self } = this.#options.gateways();
    const isMember = names.includes(self);
    const isAlone = isMember && names.length === 1;
    for (const pod of this.#pods.values()) pod.limit = this.#limitOf(pod.name);
    this.#home = undefined;
    if (isAlone) return;
    const ready = [...this.#pods.values()].filter(pod => pod.state === "ready");
    const limited = ready.filter(pod => Number.isFinite(pod.limit));
    const isLimited =
      ready.length > 0 ? limited.length === ready.length : Number.isFinite(this.#settings.podConcurrency);
    if (!isMember) {
      if (isLimited) this.#home = homeGateway(this.key, names);
      return;
    }
    // Before the first pod it is one pod that is waited for.
    const expected = [{ pod: "", slots: this.#settings.podConcurrency }];
    const slots = limited.map(({ name, limit }) => ({ pod: name, slots: Math.max(1, Math.floor(limit)) }));
    const minPlaces = isLimited ? MIN_PLACES_PER_GATEWAY : 0;
    const division = dividePlaces(this.key, isLimited && slots.length === 0 ? expected : slots, names, self, minPlaces);
    if (division.kind === "home") this.#home = division.gateway === self ? undefined : division.gateway;
    else for (const pod of limited) pod.limit = division.slots.get(pod.name) ?? 0;
  }

  /** Those who may wait at the revision's home go there. */
  #moveWaiters(home: string): void {
    for (const ticket of [...this.#waiters])
      if (ticket.payload.mayMove && this.#queue.cancel(ticket))
        ticket.payload.reject?.(new HomeMovedError(this.key, home));
  }

  /** Counts places and pods anew after anything about the pods or the gateways changed. */
  #recount(): void {
    const nowMs = this.#options.clock.nowMs();
    this.#divide();
    if (this.#home !== undefined) this.#moveWaiters(this.#home);
    const demoted = this.#hint?.demotedPods;
    this.#preferred = [];
    this.#demoted = [];
    for (const pod of this.#pods.values()) {
      if (!pod.isRoutable(nowMs)) continue;
      pod.demoted = demoted?.includes(pod.name) ?? false;
      (pod.demoted ? this.#demoted : this.#preferred).push(pod);
    }
    this.#setCapacity();
    this.#grant(nowMs);
  }

  #setCapacity(): void {
    let free = 0;
    for (const pod of this.#preferred) free += Math.max(0, pod.limit - pod.inFlight);
    for (const pod of this.#demoted) free += Math.max(0, pod.limit - pod.inFlight);
    this.#queue.setCapacity(this.#queue.inUse + free);
  }

  #grant(nowMs: number): void {
    for (let ticket = this.#queue.takeNext(nowMs); ticket !== undefined; ticket = this.#queue.takeNext(nowMs)) {
      const { random } = this.#options;
      const pod = choosePod(this.#preferred, random) ?? choosePod(this.#demoted, random);
      if (pod === undefined) throw new Error(`revision ${this.key}: a place was given and no pod has room`);
      pod.inFlight++;
      this.#grantedRate.count(nowMs);
      const place = new HeldPlace(pod, nowMs - ticket.payload.arrivedMs, () => this.#release(ticket, pod));
      ticket.payload.place = place;
      ticket.payload.resolve?.(place);
    }
  }

  #release(ticket: Ticket, pod: Pod): void {
    const nowMs = this.#options.clock.nowMs();
    pod.inFlight--;
    this.#queue.release(ticket, nowMs);
    const isFreeAgain = pod.isRoutable(nowMs) && pod.inFlight < pod.limit;
    if (!isFreeAgain) this.#setCapacity();
    if (this.#queue.waiting > 0) this.#grant(nowMs);
  }

  #forget(pod: Pod): void {
    pod.state = "gone";
    pod.upstream.close();
    this.#pods.delete(pod.address);
  }

  #rejectAll(error: () => Error): void {
    for (const ticket of this.#queue.expire(Infinity)) ticket.payload.reject?.(error());
  }

  #armExpiry(): void {
    const { clock } = this.#options;
    const dueMs = this.#queue.nextExpiryMs();
    if (dueMs === undefined || (this.#expiry !== undefined && this.#expiry.dueMs <= dueMs)) return;
    if (this.#expiry !== undefined) clock.cancel(this.#expiry.timer);
    this.#expiry = { dueMs, timer: clock.after(Math.max(0, dueMs - clock.nowMs()), this.#expire) };
  }

  readonly #expire = (): void => {
    this.#expiry = undefined;
    const nowMs = this.#options.clock.nowMs();
    for (const ticket of this.#queue.expire(nowMs)) {
      const waitedMs = nowMs - ticket.payload.arrivedMs;
      ticket.payload.reject?.(this.#waitedInVain(waitedMs));
    }
    this.#armExpiry();
  };

  #waitedInVain(waitedMs: number): Error {
    if (this.hasRoutablePod) return new PlaceTimeoutError(this.key, this.capacity, waitedMs, this.#retryAfterS());
    const { failed, trouble } = this.#settings;
    if (failed !== undefined) return new RevisionFailedError(this.key, failed, this.#retryAfterS());
    return new NoPodError(this.key, waitedMs, trouble, this.#retryAfterS());
  }

  #queueFull(): Error {
    return new RevisionQueueFullError(this.key, this.waiting, this.#settings.queueLength, this.#retryAfterS());
  }

  /** The time until those who wait now would be served at the rate of late. */
  #retryAfterS(): number {
    const rate = this.#grantedRate.perSecond(this.#options.clock.nowMs());
    if (rate === 0) return this.waiting > 0 ? LONGEST_RETRY_AFTER_S : 1;
    return Math.min(LONGEST_RETRY_AFTER_S, Math.max(1, Math.ceil(this.waiting / rate)));
  }
}

class HeldPlace implements Place {
  readonly pod: Pod;
  readonly waitedMs: number;
  #release: (() => void) | undefined;

  constructor(pod: Pod, waitedMs: number, release: () => void) {
    this.pod = pod;
    this.waitedMs = waitedMs;
    this.#release = release;
  }

  release(): void {
    const release = this.#release;
    this.#release = undefined;
    release?.();
  }
}

/** Places given per second, over the last ten seconds or so. */
class GrantRate {
  #rate = 0;
  #lastMs = -Infinity;
  static readonly #windowMs = 10_000;

  count(nowMs: number): void {
    this.#rate = this.perSecond(nowMs) + 1000 / GrantRate.#windowMs;
    this.#lastMs = nowMs;
  }

  perSecond(nowMs: number): number {
    return this.#rate * Math.exp(-(nowMs - this.#lastMs) / GrantRate.#windowMs);
  }
}
