import type { FlowSchema, PriorityLevelConfiguration } from "../../../api/flowcontrol/v1/types.ts";
import type { RequestAttributes } from "../../../core/flowcontrol/classifier.ts";
import {
  FlowController,
  type Classification,
  type ConfigurationReport,
  type FlowRejection,
  type FlowTicket,
  type LevelStatus,
} from "../../../core/flowcontrol/flow-controller.ts";
import { sharesOf } from "../../../core/flowcontrol/limits.ts";
import type { FlowSchemaObject } from "../../../core/flowcontrol/objects.ts";
import type { PlaceLevel } from "../../../core/flowcontrol/place-queue.ts";
import type { Clock, Timer } from "../../shared/clock.ts";
import { ClientGoneError } from "../../shared/http/relay.ts";
import type { RawHeaders } from "../../shared/http/exchange.ts";
import { SeatRejectedError } from "../errors.ts";
import type { WaitingClient } from "../revisions/revision-backend.ts";

/** A seat at the gateway. Released exactly once, in `finally`. */
export interface Seat {
  release(): void;
}

/** Why a request got no seat; `cancelled`: its client left. */
export type SeatRefusal = FlowRejection | "cancelled";

/** Hears what becomes of the requests of one schema at its level: for metrics. */
export interface FlowObserver {
  /** One comes that is so wide. */
  arrived(seats: number): void;
  /** It is in a queue, with so many that wait. */
  joined(queueLength: number): void;
  waits(seats: number): void;
  /** It waits no longer, however that ended. */
  waited(seats: number): void;
  dispatched(seats: number, waitedMs: number): void;
  refused(reason: SeatRefusal, waitedMs: number): void;
  finished(seats: number, executedMs: number): void;
}

export interface FlowControlObserver {
  of(classification: Classification): FlowObserver;
  /** Only these schemas are tried from now on; requests of others may still wait and run. */
  configured(schemas: readonly FlowSchemaObject[]): void;
}

export interface FlowControlOptions {
  readonly clock: Clock;
  /** Seats of this gateway, divided among the levels. */
  readonly totalSeats: number;
  /** Answers name schema and level, beside their UIDs. */
  readonly debug?: boolean;
  readonly observer: FlowControlObserver;
  /** Hears the levels as they are for the queues at revisions, whenever they change, and which objects are not used. */
  readonly onLevels: (levels: ReadonlyMap<string, PlaceLevel>, report: ConfigurationReport) => void;
}

/** Fields of answers. The UIDs' are the API server's. */
const SCHEMA_UID = "X-Kubernetes-PF-FlowSchema-UID";
const LEVEL_UID = "X-Kubernetes-PF-PriorityLevel-UID";
const SCHEMA_NAME = "X-Fairway-FlowSchema";
const LEVEL_NAME = "X-Fairway-PriorityLevel";

/** The same in lower case. */
export const FLOW_FIELDS: ReadonlySet<string> = new Set(
  [SCHEMA_UID, LEVEL_UID, SCHEMA_NAME, LEVEL_NAME].map(name => name.toLowerCase()),
);

/** Longest wait for a seat: a quarter of a minute, as upstream for a request that says no timeout. */
const MAX_SEAT_WAIT_MS = 15_000;

const CHANGE_DELAY_MS = 10;

interface Waiting {
  readonly observer: FlowObserver;
  resolve: (() => void) | undefined;
  reject: ((error: Error) => void) | undefined;
}
type Ticket = FlowTicket<Waiting>;

/**
 * Priority and fairness of this gateway: which level and flow a request belongs to, and its seat. Works with the
 * mandatory levels alone until objects are seen, and in whatever order they come.
 */
export class FlowControl {
  readonly #options: FlowControlOptions;
  readonly #controller: FlowController<Waiting>;
  readonly #levels = new Map<string, PriorityLevelConfiguration>();
  readonly #schemas = new Map<string, FlowSchema>();
  readonly #fields = new WeakMap<object, RawHeaders>();
  #pending: Timer | undefined;
  #timer: { readonly timer: Timer; readonly dueMs: number } | undefined;
  #report: ConfigurationReport = { dangling: [], broken: [] };
  #isStopped = false;

  constructor(options: FlowControlOptions) {
    this.#options = options;
    this.#controller = new FlowController<Waiting>(
      {
        totalSeats: options.totalSeats,
        maxWaitMs: MAX_SEAT_WAIT_MS,
        hooks: {
          dispatched: ticket => ticket.payload.resolve?.(),
          expired: (ticket, retryAfterS) => this.#expired(ticket, retryAfterS),
        },
      },
      options.clock.nowMs(),
    );
    this.flush();
  }

  setLevel(level: PriorityLevelConfiguration): void {
    this.#levels.set(level.metadata.name ?? "", level);
    this.#changed();
  }

  removeLevel(name: string): void {
    this.#levels.delete(name);
    this.#changed();
  }

  setSchema(schema: FlowSchema): void {
    this.#schemas.set(schema.metadata.name ?? "", schema);
    this.#changed();
  }

  removeSchema(name: string): void {
    this.#schemas.delete(name);
    this.#changed();
  }

  get levelNames(): Iterable<string> {
    return this.#levels.keys();
  }

  get schemaNames(): Iterable<string> {
    return this.#schemas.keys();
  }

  classify(attributes: RequestAttributes): Classification {
    return this.#controller.classify(attributes);
  }

  /** The fields of an answer that name schema and level, as upstream's. */
  responseFields({ schema, level }: Classification): RawHeaders {
    let fields = this.#fields.get(schema);
    if (fields === undefined) {
      const named = [
        [SCHEMA_UID, schema.uid],
        [LEVEL_UID, level.uid],
        ...(this.#options.debug === true
          ? ([
              [SCHEMA_NAME, schema.name],
              [LEVEL_NAME, level.name],
            ] as const)
          : []),
      ] as const;
      // A mandatory one without an object has no UID.
      fields = named.flatMap(([name, uid]) => (uid === "" ? [] : [name, uid]));
      this.#fields.set(schema, fields);
    }
    return fields;
  }

  /**
   * A seat for one request: at once when its level has one (then not a promise), else when its turn comes.
   *
   * @param requestMs the whole time that the request has; 0: no limit
   * @throws (or rejects with) SeatRejectedError, ClientGoneError
   */
  acquire(client: WaitingClient, classification: Classification, width: number, requestMs = 0): Seat | Promise<Seat> {
    const { clock } = this.#options;
    const startMs = clock.nowMs();
    const seats = Math.max(1, Math.min(width, classification.maxSeats));
    const observer = this.#options.observer.of(classification);
    observer.arrived(seats);
    const waiting: Waiting = { observer, resolve: undefined, reject: undefined };
    const maxWaitMs = requestMs > 0 ? Math.min(MAX_SEAT_WAIT_MS, requestMs / 4) : MAX_SEAT_WAIT_MS;
    const result = this.#controller.start({ classification, seats, maxWaitMs, payload: waiting }, startMs);
    if (result.kind === "rejected") {
      observer.refused(result.reason, 0);
      throw new SeatRejectedError(classification.level.name, result.reason, result.retryAfterS);
    }
    const { ticket } = result;
    if (ticket.queueLength > 0) observer.joined(ticket.queueLength);
    const seat: Seat = {
      release: () => {
        const nowMs = clock.nowMs();
        if (this.#controller.finish(ticket, nowMs)) observer.finished(seats, nowMs - ticket.startedMs);
      },
    };
    if (result.kind === "execute") {
      observer.dispatched(seats, 0);
      return seat;
    }
    observer.waits(seats);
    this.#arm();
    return new Promise<Seat>((resolve, reject) => {
      waiting.resolve = () => {
        client.onGone(undefined);
        observer.waited(seats);
        observer.dispatched(seats, ticket.startedMs - startMs);
        resolve(seat);
      };
      waiting.reject = error => {
        client.onGone(undefined);
        reject(error);
      };
      client.onGone(() => {
        const nowMs = clock.nowMs();
        if (!this.#controller.cancel(ticket, nowMs)) return;
        observer.waited(seats);
        observer.refused("cancelled", nowMs - startMs);
        reject(new ClientGoneError());
      });
    });
  }

  /** All levels: limits, who waits, who runs. */
  status(): LevelStatus[] {
    return this.#controller.status();
  }

  /** What does not work of the objects: schemas without their level, levels that cannot be. */
  get report(): ConfigurationReport {
    return this.#report;
  }

  /** Which schema takes a request, why those before it do not, and the queue it would join. For people. */
  explain(attributes: RequestAttributes): ReturnType<FlowController<Waiting>["explain"]> & {
    readonly queue: ReturnType<FlowController<Waiting>["queueOf"]>;
  } {
    const explanation = this.#controller.explain(attributes);
    return { ...explanation, queue: this.#controller.queueOf(explanation.classification) };
  }

  /** The queues and requests of each level. Costs as much as there are requests. */
  dump(): ReturnType<FlowController<Waiting>["dump"]> {
    return this.#controller.dump();
  }

  /** Of upstream's `seat_fair_frac`: what the last adjustment gave over the levels' targets. */
  get fairFraction(): number {
    return this.#controller.fairFraction;
  }

  stop(): void {
    this.#isStopped = true;
    if (this.#pending !== undefined) this.#options.clock.cancel(this.#pending);
    if (this.#timer !== undefined) this.#options.clock.cancel(this.#timer.timer);
  }

  /** Takes on what has changed, at once. */
  flush(): void {
    if (this.#pending !== undefined) this.#options.clock.cancel(this.#pending);
    this.#pending = undefined;
    const levels = [...this.#levels.values()].map(({ metadata, spec }) => ({
      name: metadata.name ?? "",
      uid: metadata.uid ?? "",
      spec,
    }));
    const schemas = [...this.#schemas.values()].map(({ metadata, spec }) => ({
      name: metadata.name ?? "",
      uid: metadata.uid ?? "",
      spec,
    }));
    this.#report = this.#controller.configure(levels, schemas, this.#options.clock.nowMs());
    this.#options.observer.configured(this.#controller.schemas);
    const places = new Map<string, PlaceLevel>();
    for (const { level } of this.#controller.status())
      places.set(
        level.name,
        level.spec.type === "Exempt" ? { kind: "exempt" } : { kind: "limited", weight: sharesOf(level.spec) },
      );
    this.#options.onLevels(places, this.#report);
    this.#arm();
  }

  /** A thousand objects that come together are one change. */
  #changed(): void {
    this.#pending ??= this.#options.clock.after(CHANGE_DELAY_MS, () => this.flush());
  }

  #expired(ticket: Ticket, retryAfterS: number): void {
    const { classification, payload, seats, arrivedMs } = ticket;
    payload.observer.waited(seats);
    payload.observer.refused("time-out", this.#options.clock.nowMs() - arrivedMs);
    payload.reject?.(new SeatRejectedError(classification.level.name, "time-out", retryAfterS));
  }

  #arm(): void {
    if (this.#isStopped) return;
    const { clock } = this.#options;
    const dueMs = this.#controller.nextEventMs();
    if (this.#timer !== undefined && this.#timer.dueMs <= dueMs) return;
    if (this.#timer !== undefined) clock.cancel(this.#timer.timer);
    this.#timer = { dueMs, timer: clock.after(Math.max(0, dueMs - clock.nowMs()), this.#tick) };
  }

  readonly #tick = (): void => {
    this.#timer = undefined;
    this.#controller.tick(this.#options.clock.nowMs());
    this.#arm();
  };
}
